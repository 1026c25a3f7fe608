"""Preflight of permissions: who submits, who runs the job, who pulls the image, and what can't be asked."""

from launch import project
from launch.preflight import buckets, job_accounts, permissions
from launch.preflight.job import Job
from tests import google_world
from tests.google_world import AGENT, BUCKET, RUNS_AS
from tests.launch.preflight_world import bad, look


def test_no_permission_to_submit(google):
    google.permissions.discard("aiplatform.customJobs.create")
    check = look(google, "gpu", permissions)["submit"]
    assert check.status == "failure"
    assert "--member=user:me@example.com --role=roles/aiplatform.user" in check.command
    assert look(google, "tune", permissions)["submit"].status == "ok"


def test_no_permission_to_act_as(google):
    google.act_as = []
    check = look(google, "gpu", permissions)["act as"]
    assert check.status == "failure"
    assert check.command.startswith(f"gcloud iam service-accounts add-iam-policy-binding {RUNS_AS} ")


def test_a_service_account_of_another_project_needs_more(google):
    found = look(google, "gpu", permissions, SERVICE_ACCOUNT="train@other.iam.gserviceaccount.com")
    check = found["service account's project"]
    assert check.status == "warning"
    assert "service-415104041262@gcp-sa-aiplatform.iam.gserviceaccount.com" in check.command
    assert "service account's project" not in look(google, "gpu", permissions)


def test_vertex_ais_own_agent_needs_no_act_as(google):
    assert look(google, "gpu", permissions, SERVICE_ACCOUNT="")["act as"].status == "ok"


def test_an_api_that_is_off(google):
    google.enabled.discard("aiplatform")
    check = look(google, "gpu", permissions)["APIs"]
    assert check.command == "gcloud services enable aiplatform.googleapis.com --project=yard"


def test_a_project_that_cant_be_seen(google):
    del google.policies["yard"]
    assert look(google, "gpu", permissions)["project"].status == "failure"


def test_logs_that_would_vanish(google):
    google.permissions.discard("logging.logEntries.create")
    check = look(google, "gpu", job_accounts)["log writing"]
    assert check.status == "failure"
    assert "tried as that account" in check.found
    assert "--role=roles/logging.logWriter" in check.command


def test_without_impersonation_the_policy_is_read_and_that_is_said(google):
    google.may_impersonate = False
    found = look(google, "gpu", job_accounts, buckets)
    assert found["log writing"].status == found["bucket access"].status == "failure"
    member = f"serviceAccount:{RUNS_AS}"
    google.policies["yard"] = {"bindings": [{"role": "roles/logging.logWriter", "members": [member]}]}
    google.bucket_policy = {"bindings": [{"role": "roles/storage.objectUser", "members": [member]}]}
    found = look(google, "gpu", job_accounts, buckets)
    assert "read from the project's IAM policy" in found["log writing"].found
    assert f"read from the IAM policy of gs://{BUCKET}" in found["bucket access"].found
    assert bad(found) == {}


def test_an_image_of_another_project_needs_the_agents_access(google):
    google.policies["other"] = {"bindings": []}
    image = google_world.IMAGE.replace("/yard/", "/other/")
    check = look(google, "gpu", job_accounts, IMAGE=image)["image pull"]
    assert check.status == "failure"
    assert f"--project=other --location=us-central1 --member=serviceAccount:{AGENT}" in check.command
    reader = {"role": "roles/artifactregistry.reader", "members": [f"serviceAccount:{AGENT}"]}
    google.repository_policy = {"bindings": [reader]}
    assert look(google, "gpu", job_accounts, IMAGE=image)["image pull"].status == "ok"


def test_settings_without_a_value_are_named(google):
    file = str(project.ROOT / "configs" / "gpu.yaml")
    (check,) = permissions.filled_in(Job.read(file, {"IMAGE": "i", "JOB": "j", "NAME": "n", "SERVICE_ACCOUNT": ""}))
    assert check.status == "failure"
    assert "BUCKET" in check.found
