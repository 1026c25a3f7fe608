variable "training_account" {
  description = "The e-mail address that jobs run as."
  type        = string
}

variable "build_account" {
  description = "The e-mail address that Cloud Build runs as."
  type        = string
}

variable "project_number" {
  description = "The project's number, which is in the name of Vertex AI's own accounts."
  type        = string
}

variable "region" {
  description = "See the variable of this name one folder up; so with those below."
  type        = string
}

variable "repository" {
  type = string
}

variable "bucket" {
  type = string
}

variable "name" {
  type = string
}

variable "tensorboard" {
  type = bool
}

variable "smoke" {
  type = bool
}

variable "agent" {
  type = bool
}
