"""A job's log is fetched with the real gcloud, from a stand-in of Google's APIs."""

import json
import os
import shutil

import pytest

from launch.__main__ import main
from launch.diagnose import fetch
from tests.standin import StandIn, failure

pytestmark = pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
NAME = "projects/my-project/locations/us-central1/customJobs/1234567890"
QUOTA = (
    "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_nvidia_l4_gpus"
)


@pytest.fixture
def api(tmp_path, monkeypatch):
    with StandIn() as stand_in:
        for name, value in stand_in.environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        for name in set(os.environ) & {"PROJECT", "REGION"}:
            monkeypatch.delenv(name)
        yield stand_in


def entry(number: int, message: str, replica: str) -> dict:
    return {
        "insertId": str(number),
        "logName": "projects/my-project/logs/ml",
        "timestamp": f"2026-11-21T02:33:{number:02}Z",
        "severity": "ERROR",
        "resource": {"type": "ml_job", "labels": {"job_id": "1234567890", "task_name": replica}},
        "jsonPayload": {"message": message},
    }


def test_the_log_of_all_replicas(api, capsys):
    api.route("GET", f"/v1/{NAME}", lambda call: {"name": NAME, "state": "JOB_STATE_FAILED"})
    newest_first = [
        entry(30, "UnavailableError: Socket closed", "workerpool0-0"),
        entry(
            20, "OOM when allocating tensor with shape[9,9] on /device:GPU:0 by allocator GPU_0_bfc", "workerpool1-1"
        ),
        entry(10, "step 1/400  loss 0.1", "workerpool0-0"),
    ]
    api.route("POST", "/v2/entries:list", lambda call: {"entries": newest_first})
    assert main(["diagnose", "--json", NAME]) == 0
    causes = json.loads(capsys.readouterr().out)["causes"]
    assert [cause["cause"] for cause in causes] == ["gpu_oom", "distributed_peer_lost"]
    asked = next(call.body for call in api.calls if call.path == "/v2/entries:list")
    assert fetch.log_filter("1234567890") in asked["filter"]
    assert asked["resourceNames"] == ["projects/my-project"]
    assert main(["diagnose", NAME]) == 0
    assert "workerpool1-1" in capsys.readouterr().out


def test_a_name_with_the_project_s_number_is_read_under_its_id(api, monkeypatch, capsys):
    """The API names jobs by the project's number, which gcloud refuses in --project."""
    monkeypatch.setenv("PROJECT", "my-project")
    monkeypatch.setenv("REGION", "us-central1")
    name = NAME.replace("my-project", "123456")
    api.route("GET", f"/v1/{name}", lambda call: {"name": name, "state": "JOB_STATE_FAILED"})
    lost = entry(30, "UnavailableError: Socket closed", "workerpool0-0")
    api.route("POST", "/v2/entries:list", lambda call: {"entries": [lost]})
    assert main(["diagnose", name]) == 0, capsys.readouterr().err
    asked = next(call.body for call in api.calls if call.path == "/v2/entries:list")
    assert asked["resourceNames"] == ["projects/my-project"]


def test_the_error_that_the_job_carries_where_nothing_ran(api, capsys):
    failed = {"name": NAME, "state": "JOB_STATE_FAILED", "error": {"code": 8, "message": QUOTA}}
    api.route("GET", f"/v1/{NAME}", lambda call: failed)
    api.route("POST", "/v2/entries:list", lambda call: {})
    assert main(["diagnose", NAME]) == 0
    said = capsys.readouterr().out
    assert "7, capacity" in said
    assert "metric:aiplatform.googleapis.com/custom_model_training_nvidia_l4_gpus" in said


def test_no_right_to_read_the_log(api, capsys):
    api.route("GET", f"/v1/{NAME}", lambda call: {"name": NAME, "state": "JOB_STATE_FAILED"})
    denied = failure(403, "PERMISSION_DENIED", "Permission 'logging.logEntries.list' denied")
    api.route("POST", "/v2/entries:list", lambda call: denied)
    assert main(["diagnose", NAME]) == 1
    assert "logging.logEntries.list" in capsys.readouterr().err


def test_no_log(api, capsys):
    api.route("GET", f"/v1/{NAME}", lambda call: {"name": NAME, "state": "JOB_STATE_SUCCEEDED"})
    api.route("POST", "/v2/entries:list", lambda call: {})
    assert main(["diagnose", NAME]) == 1
    assert "is SUCCEEDED and has no log" in capsys.readouterr().err
