"""Preflight of the perimeter: its last change, what is on which side, and what a job needs from outside."""

from launch.preflight import buckets, security
from tests.google_world import BUCKET, DENIED, NUMBER, PERIMETER_DENIAL, ago, perimeter
from tests.launch.preflight_world import look


def test_a_perimeter_that_changed_just_now(google):
    google.perimeters = [perimeter(NUMBER, updated=ago(5))]
    check = look(google, "gpu", security)["perimeter change"]
    assert check.status == "failure"
    assert check.fix.startswith(("wait 9 min", "wait 10 min"))
    assert check.command.startswith("sleep ")
    google.perimeters = [perimeter(NUMBER, updated=ago(16))]
    assert look(google, "gpu", security)["perimeter change"].status == "ok"


def test_a_change_is_looked_up_in_the_audit_log_where_the_perimeter_has_no_date(google):
    google.perimeters = [perimeter(NUMBER)]
    assert look(google, "gpu", security)["perimeter change"].status == "ok"
    name = "accessPolicies/1/servicePerimeters/fence"
    google.changes = [{"timestamp": ago(1), "protoPayload": {"resourceName": name}}]
    check = look(google, "gpu", security)["perimeter change"]
    assert (check.status, check.found.split()[0]) == ("failure", "fence")


def test_a_bucket_on_the_other_side(google):
    google.perimeters = [perimeter(NUMBER, updated=ago(600))]
    google.buckets[BUCKET]["projectNumber"] = "42"
    check = look(google, "gpu", security)["perimeter sides"]
    assert check.status == "failure"
    assert f"gs://{BUCKET} is outside" in check.found
    google.perimeters.append(perimeter(NUMBER, "42", title="bridge", kind="BRIDGE", updated=ago(600)))
    assert look(google, "gpu", security)["perimeter sides"].status == "ok"


def test_a_dry_run_of_a_perimeter_is_none(google):
    dry = perimeter(updated=ago(1))
    dry["spec"] = {"resources": [f"projects/{NUMBER}"], "restrictedServices": ["storage.googleapis.com"]}
    google.perimeters = [dry]
    google.buckets[BUCKET]["projectNumber"] = "42"
    assert look(google, "gpu", security)["perimeter sides"].status == "ok"


def test_what_a_job_needs_from_outside(google):
    google.perimeters = [perimeter(NUMBER, updated=ago(600))]
    assert look(google, "python_package", security)["egress"].status == "warning"
    assert "Reduction Server" in look(google, "reduction_server", security)["egress"].found
    assert look(google, "gpu", security)["egress"].status == "ok"


def test_perimeters_that_cant_be_seen(google):
    google.api.route("GET", "/v1/accessPolicies", lambda call: DENIED)
    check = look(google, "gpu", security)["perimeter"]
    assert (check.status, "accesscontextmanager.policyReader" in check.fix) == ("unknown", True)


def test_a_denial_by_the_perimeter_is_said_as_such(google):
    google.api.route("GET", "/storage/v1/b/.*", lambda call: PERIMETER_DENIAL)
    check = look(google, "gpu", buckets)["bucket"]
    assert check.status == "failure"
    assert "vpcServiceControlsUniqueIdentifier" in check.found
    assert "perimeter" in check.fix
