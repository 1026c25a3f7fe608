# What `make bootstrap` makes, for those who keep their projects in Terraform.

module "wanted" {
  source           = "./wanted"
  training_account = google_service_account.training.email
  build_account    = google_service_account.build.email
  project_number   = data.google_project.this.number
  region           = var.region
  repository       = var.repository
  bucket           = var.bucket
  name             = var.name
  tensorboard      = var.tensorboard
  smoke            = var.smoke
  agent            = var.agent
}

# The set of APIs stands on its own: nothing may be asked of the accounts before it is there.
module "apis" {
  source = "./wanted/apis"
}

data "google_project" "this" {
  project_id = var.project
}

resource "google_project_service" "api" {
  for_each           = module.apis.names
  project            = var.project
  service            = each.value
  disable_on_destroy = false
}

resource "google_artifact_registry_repository" "images" {
  project       = var.project
  location      = var.region
  repository_id = var.repository
  format        = "DOCKER"
  description   = "Training images of ${var.name}"
  depends_on    = [google_project_service.api]
}

resource "google_storage_bucket" "jobs" {
  project                     = var.project
  name                        = var.bucket
  location                    = var.region
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"
  depends_on                  = [google_project_service.api]
}

resource "google_service_account" "training" {
  project      = var.project
  account_id   = "${var.name}-train"
  display_name = "${var.name}: training jobs run as this account"
  depends_on   = [google_project_service.api]
}

resource "google_service_account" "build" {
  project      = var.project
  account_id   = "${var.name}-build"
  display_name = "${var.name}: Cloud Build runs as this account"
  depends_on   = [google_project_service.api]
}

resource "google_cloudbuild_trigger" "main" {
  count           = var.github == "" ? 0 : 1
  project         = var.project
  location        = split("/", var.github)[3]
  name            = "${var.name}-main"
  filename        = "cloudbuild.yaml"
  service_account = google_service_account.build.id

  repository_event_config {
    repository = var.github
    push {
      branch = "^main$"
    }
  }

  substitutions = module.wanted.substitutions
}

output "project_env" {
  description = "The line for project.env."
  value       = "SERVICE_ACCOUNT=${google_service_account.training.email}"
}
