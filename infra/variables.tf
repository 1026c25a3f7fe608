variable "project" {
  description = "The Google Cloud project's id; PROJECT in project.env."
  type        = string
}

variable "region" {
  description = "The region that jobs, images and the bucket live in; REGION in project.env."
  type        = string
}

variable "bucket" {
  description = "The bucket for what jobs read and write, without gs://; BUCKET in project.env."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$", var.bucket))
    error_message = "A bucket's name is 3 to 63 of a-z, 0-9, -, _ and ., without gs:// and folders."
  }
}

variable "repository" {
  description = "The Artifact Registry repository for images; REPOSITORY in project.env."
  type        = string
  default     = "trainyard"
}

variable "name" {
  description = "The name of what is trained; NAME in project.env. The accounts are NAME-train and NAME-build."
  type        = string
  default     = "digits"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{0,23}$", var.name))
    error_message = "An account's name has 6 to 30 characters, so NAME has at most 24 of a-z, 0-9 and -, beginning with a letter."
  }
}

variable "tensorboard" {
  description = "Whether jobs send curves to a managed TensorBoard, which takes one more role."
  type        = bool
  default     = false
}

variable "smoke" {
  description = "Whether the trigger submits a smoke job after each push, which takes two more roles."
  type        = bool
  default     = false
}

variable "github" {
  description = "The connected repository whose merges to main are built: projects/P/locations/R/connections/C/repositories/NAME. Empty: no trigger."
  type        = string
  default     = ""
}

variable "agent" {
  description = "Whether Vertex AI's Custom Code Service Agent is there already: Google makes it with the project's first job."
  type        = bool
  default     = false
}
