# Each role on the smallest thing that has a policy of its own.

resource "google_project_iam_member" "this" {
  for_each = module.wanted.grants.project
  project  = var.project
  role     = each.value.role
  member   = each.value.member
}

resource "google_artifact_registry_repository_iam_member" "this" {
  for_each   = module.wanted.grants.repository
  project    = var.project
  location   = var.region
  repository = google_artifact_registry_repository.images.name
  role       = each.value.role
  member     = each.value.member
}

resource "google_storage_bucket_iam_member" "this" {
  for_each = module.wanted.grants.bucket
  bucket   = google_storage_bucket.jobs.name
  role     = each.value.role
  member   = each.value.member
}

resource "google_service_account_iam_member" "training" {
  for_each           = module.wanted.grants.training_account
  service_account_id = google_service_account.training.name
  role               = each.value.role
  member             = each.value.member
}
