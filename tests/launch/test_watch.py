"""watch, cancel and list: the real gcloud against a stand-in API, and the log reader's bookkeeping."""

import datetime
import json
import os
import signal
import subprocess
import sys

import pytest

from launch import __main__ as cli
from launch import project, remembered, vertex, watch
from launch.vertex import logs
from tests.standin import StandIn, failure

CUSTOM = "projects/p/locations/us-central1/customJobs/42"
TUNING = "projects/p/locations/us-central1/hyperparameterTuningJobs/43"


@pytest.fixture
def api(tmp_path, monkeypatch):
    with StandIn() as server:
        for name in [*project.KNOWN, "MAKELEVEL"]:
            monkeypatch.delenv(name, raising=False)
        for name, value in server.environment(tmp_path / "gcloud", project="p").items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("CLOUDSDK_AI_REGION", "us-central1")
        monkeypatch.setattr(remembered, "CACHE", tmp_path / "cache")
        monkeypatch.setattr(project, "ENV_FILE", tmp_path / "project.env")
        monkeypatch.setattr(watch, "LATE_S", 0.0)
        yield server


def plays(api: StandIn, path: str, *answers) -> None:
    """Answer one after the other, the last one for ever."""
    left = list(answers)
    api.route("GET", f"/v1/{path}", lambda call: left.pop(0) if len(left) > 1 else left[0])


def entry(number: int, message: str, task: str = "workerpool0-0", severity: str = "INFO") -> dict:
    return {
        "insertId": str(number),
        "timestamp": f"2026-11-21T10:00:{number:02d}.5Z",
        "severity": severity,
        "jsonPayload": {"message": message},
        "resource": {"type": "ml_job", "labels": {"job_id": "42", "task_name": task}},
    }


def described(state: str, **more) -> dict:
    return {
        "name": CUSTOM,
        "displayName": "digits-job",
        "state": f"JOB_STATE_{state}",
        "createTime": "2026-11-21T10:00:00Z",
    } | more


def test_a_failing_job_is_told_to_its_end_over_a_broken_connection(api, capsys):
    busy = failure(429, "RESOURCE_EXHAUSTED", "too many requests")
    error = {"error": {"code": 3, "message": "The replica workerpool1-0 exited with a non-zero status of 1."}}
    plays(api, CUSTOM, described("PENDING"), busy, described("RUNNING"), described("FAILED", **error))
    first = [entry(1, "step 1"), entry(2, "a warning", "workerpool1-0", "WARNING")]
    pages = [
        [],
        first,
        [*first, entry(3, "ResourceExhaustedError: OOM when allocating tensor", "workerpool1-0", "ERROR")],
    ]
    api.route("POST", "/v2/entries:list", lambda call: {"entries": pages.pop(0) if len(pages) > 1 else pages[0]})
    assert cli.main(["watch", CUSTOM, "--every=0.05"]) == 1
    told = capsys.readouterr().out
    for part in (
        "digits-job: PENDING",
        "too many requests",
        "connected again",
        "PENDING -> RUNNING",
        "RUNNING -> FAILED",
    ):
        assert part in told
    assert told.count("chief      step 1") == 1
    assert told.count("worker 0   WARNING a warning") == 1
    assert "ERROR ResourceExhaustedError" in told and "non-zero status of 1" in told
    diagnosis = told[told.index("non-zero status of 1") :]
    assert "gpu_oom; 5, batch size and memory" in diagnosis and "What to do" in diagnosis
    asked = next(call.body["filter"] for call in api.calls if call.path == "/v2/entries:list")
    assert 'resource.type="ml_job" AND resource.labels.job_id="42" AND timestamp>=' in asked
    assert not api.unexpected


def test_ctrl_c_ends_the_watch_and_not_the_job(api, tmp_path):
    """A real Ctrl-C, which the terminal sends to gcloud as well."""
    plays(api, CUSTOM, described("RUNNING"))
    api.route("POST", "/v2/entries:list", lambda call: {})
    command = [sys.executable, "-u", "-m", "launch", "watch", CUSTOM, "--every=0.1"]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    watching = subprocess.Popen(command, cwd=project.ROOT, start_new_session=True, **streams)
    try:
        told = ""
        while "RUNNING" not in told and (line := watching.stdout.readline()):
            told += line
        os.killpg(watching.pid, signal.SIGINT)
        told += watching.communicate(timeout=300)[0]
    finally:
        watching.kill()
    assert watching.returncode == 130, told
    assert f"The job goes on. Watch it again: python -m launch watch {CUSTOM}" in told
    assert "Traceback" not in told and "KeyboardInterrupt" not in told
    assert not [call for call in api.calls if call.path.endswith(":cancel")]


def test_a_study_that_succeeds_ends_with_its_trials_best_first(api, capsys):
    def trial(number: int, state: str, accuracy: float | None) -> dict:
        measured = (
            {"finalMeasurement": {"metrics": [{"metricId": "val_accuracy", "value": accuracy}]}} if accuracy else {}
        )
        return {
            "id": str(number),
            "state": state,
            "parameters": [{"parameterId": "width", "value": 16 * number}],
        } | measured

    study = {"studySpec": {"metrics": [{"metricId": "val_accuracy", "goal": "MAXIMIZE"}]}, "name": TUNING}
    running = described("RUNNING", trials=[trial(1, "ACTIVE", None)]) | study
    ended = [trial(1, "SUCCEEDED", 0.91), trial(2, "SUCCEEDED", 0.97), trial(3, "INFEASIBLE", None)]
    plays(api, TUNING, running, described("SUCCEEDED", trials=ended) | study)
    api.route("POST", "/v2/entries:list", lambda call: {})
    assert cli.main(["watch", TUNING, "--every=0.05"]) == 0
    told = capsys.readouterr().out
    assert "trial 1 ACTIVE" in told and "trial 1 SUCCEEDED  val_accuracy=0.91  width=16" in told
    table = told[told.index("best first") :]
    assert table.index("0.97") < table.index("0.91") < table.index("INFEASIBLE")


def test_a_job_that_is_not_there_is_told_at_once(api, capsys):
    api.route("GET", f"/v1/{CUSTOM}", lambda call: failure(404, "NOT_FOUND", "no such job"))
    assert cli.main(["watch", CUSTOM]) == 1
    assert "no such job" in capsys.readouterr().err


def test_without_the_right_to_read_logs_the_states_still_come(api, capsys):
    plays(api, CUSTOM, described("SUCCEEDED"))
    denied = failure(403, "PERMISSION_DENIED", "logging.logEntries.list denied")
    api.route("POST", "/v2/entries:list", lambda call: denied)
    assert cli.main(["watch", CUSTOM, "--every=0.05"]) == 0
    told = capsys.readouterr().out
    assert "roles/logging.viewer" in told and "SUCCEEDED" in told


def test_cancel_asks_for_the_job_submitted_last(api, capsys):
    remembered.write("job.json", {"name": CUSTOM})
    plays(api, CUSTOM, described("RUNNING"))
    api.route("POST", f"/v1/{CUSTOM}:cancel", lambda call: {})
    assert cli.main(["cancel"]) == 0
    assert api.writes()[-1].path == f"/v1/{CUSTOM}:cancel"
    assert f"launch watch {CUSTOM}" in capsys.readouterr().out


def test_a_job_is_found_by_the_name_that_submit_gave_it_and_list_shows_both_kinds(api, capsys):
    base = "/v1/projects/p/locations/us-central1"
    api.route("GET", f"{base}/customJobs", lambda call: {"customJobs": [described("SUCCEEDED")]})
    study = described("RUNNING", createTime="2026-11-21T11:00:00Z", name=TUNING, displayName="search")
    api.route("GET", f"{base}/hyperparameterTuningJobs", lambda call: {"hyperparameterTuningJobs": [study]})
    assert vertex.find("digits-job").name == CUSTOM
    assert cli.main(["list"]) == 0
    told = capsys.readouterr().out
    assert told.index("search") < told.index("digits-job")
    assert cli.main(["list", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == [TUNING, CUSTOM]


def test_no_job_named_and_none_submitted(api, capsys):
    assert cli.main(["watch"]) == 2
    assert "none was submitted from here" in capsys.readouterr().err


def at(second: float, number: int) -> dict:
    time = datetime.datetime(2026, 11, 21, 10, tzinfo=datetime.UTC) + datetime.timedelta(seconds=second)
    return entry(0, f"line {number}") | {"insertId": str(number), "timestamp": logs.stamp(time)}


def serve(monkeypatch, store: list[dict]) -> None:
    """log_entries as the service answers: from `since` on, oldest first, one page."""

    def log_entries(job, since, severity, limit):
        return sorted((one for one in store if one["timestamp"] >= since), key=lambda one: one["timestamp"])[:limit]

    monkeypatch.setattr(logs, "entries", log_entries)


def test_lines_that_arrive_late_come_once_and_in_order(monkeypatch):
    store = [at(10, 1), at(12, 3)]
    serve(monkeypatch, store)
    reader = logs.Reader(vertex.Job.parse(CUSTOM), "2026-11-21T10:00:00Z")
    assert [line.message for line in reader.read()] == ["line 1", "line 3"]
    store += [at(11, 2), at(13, 4)]
    assert [line.message for line in reader.read()] == ["line 2", "line 4"]
    assert reader.read() == []


def test_more_lines_than_a_page_holds_all_come(monkeypatch):
    monkeypatch.setattr(logs, "PAGE", 10)
    store = [at(number / 4, number) for number in range(100)]
    serve(monkeypatch, store)
    reader = logs.Reader(vertex.Job.parse(CUSTOM), "2026-11-21T10:00:00Z")
    assert [line.message for line in reader.read()] == [f"line {number}" for number in range(100)]


def test_a_page_of_one_instant_ends(monkeypatch):
    monkeypatch.setattr(logs, "PAGE", 10)
    serve(monkeypatch, [at(1, number) for number in range(25)] + [at(2, 99)])
    reader = logs.Reader(vertex.Job.parse(CUSTOM), "2026-11-21T10:00:00Z")
    assert reader.read()[-1].message == "line 99"


@pytest.mark.parametrize(
    ("task", "role"), [("workerpool0-0", "chief"), ("workerpool1-3", "worker 3"), ("workerpool2-0", "ps 0"), ("x", "x")]
)
def test_roles(task, role):
    assert logs.role(task) == role
