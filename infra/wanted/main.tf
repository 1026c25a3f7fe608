# Who may do what, and what the trigger fills in: values only, no provider, so that a test can evaluate it and hold it
# against launch/bootstrap/roles.py, which says why each role is given.

locals {
  training = "serviceAccount:${var.training_account}"
  build    = "serviceAccount:${var.build_account}"
  agent    = "serviceAccount:service-${var.project_number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
}

output "grants" {
  description = "On what -> a name of its own -> member and role."
  value = {
    project = merge(
      {
        training_logs = { member = local.training, role = "roles/logging.logWriter" }
        build_logs    = { member = local.build, role = "roles/logging.logWriter" }
      },
      var.tensorboard ? { training_curves = { member = local.training, role = "roles/aiplatform.user" } } : {},
      var.smoke ? { build_smoke = { member = local.build, role = "roles/aiplatform.user" } } : {},
    )

    repository = merge(
      { build_push = { member = local.build, role = "roles/artifactregistry.writer" } },
      var.agent ? { agent_pull = { member = local.agent, role = "roles/artifactregistry.reader" } } : {},
    )

    bucket = {
      training_files = { member = local.training, role = "roles/storage.objectUser" }
      build_source   = { member = local.build, role = "roles/storage.objectViewer" }
    }

    training_account = merge(
      {},
      var.smoke ? { build_acts = { member = local.build, role = "roles/iam.serviceAccountUser" } } : {},
    )
  }
}

output "substitutions" {
  description = "What the trigger gives to cloudbuild.yaml."
  value = {
    _REGION           = var.region
    _REPOSITORY       = var.repository
    _NAME             = var.name
    _BUCKET           = var.bucket
    _BUILD_ACCOUNT    = var.build_account
    _TRAINING_ACCOUNT = var.training_account
    _TAG              = "$SHORT_SHA"
    _SMOKE            = tostring(var.smoke)
  }
}
