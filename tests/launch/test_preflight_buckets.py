"""Preflight of buckets: there, near, and open to the account that will run the job."""

import pytest

from launch.preflight import buckets
from tests.google_world import BUCKET, DENIED, RUNS_AS
from tests.launch.preflight_world import look


def test_a_conditional_role_is_not_taken_for_the_role(google):
    google.may_impersonate = False
    binding = {
        "role": "roles/storage.admin",
        "members": [f"serviceAccount:{RUNS_AS}"],
        "condition": {"title": "nights"},
    }
    google.bucket_policy = {"bindings": [binding]}
    assert look(google, "gpu", buckets)["bucket access"].status == "failure"


def test_a_policy_that_cant_be_read_is_unknown_not_a_failure(google):
    google.may_impersonate = False
    google.api.route("GET", r"/storage/v1/b/[^/]+/iam", lambda call: DENIED)
    assert look(google, "gpu", buckets)["bucket access"].status == "unknown"


def test_read_only_where_the_job_writes(google):
    google.bucket_permissions = {"storage.objects.get", "storage.objects.list"}
    check = look(google, "gpu", buckets)["bucket access"]
    assert check.status == "failure"
    assert "storage.objects.create" in check.found
    assert check.command.endswith("--role=roles/storage.objectUser")


def test_a_bucket_that_does_not_exist(google):
    google.buckets = {}
    check = look(google, "gpu", buckets)["bucket"]
    assert check.command == f"gcloud storage buckets create gs://{BUCKET} --location=us-central1"


@pytest.mark.parametrize(
    ("location", "places", "status"),
    [("US", [], "ok"), ("NAM4", [], "ok"), ("US", ["US-CENTRAL1", "US-EAST1"], "ok"), ("EUROPE-WEST4", [], "warning")],
)
def test_where_a_bucket_is(google, location, places, status):
    google.buckets[BUCKET].update(location=location, customPlacementConfig={"dataLocations": places})
    assert look(google, "gpu", buckets)["bucket"].status == status
