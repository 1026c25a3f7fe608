"""submit: the real gcloud against a stand-in API; what arrives is compared with a golden file.

UPDATE_GOLDEN=1 rewrites tests/launch/golden/*.json.
"""

import json
import os
import pathlib
import shutil
import subprocess

import pytest
import yaml

from launch import __main__ as cli
from launch import checks, preflight, project, remembered, spec
from launch.vertex import request
from tests.shipped import CONFIGS
from tests.standin import StandIn, failure

PIPED = {"capture_output": True, "text": True, "check": True}
GOLDEN = pathlib.Path(__file__).with_name("golden")
VALUES = {
    "PROJECT": "my-project",
    "REGION": "europe-west4",
    "BUCKET": "my-bucket",
    "NAME": "digits",
    "JOB": "digits-job",
    "IMAGE": "europe-west4-docker.pkg.dev/my-project/trainyard/digits@sha256:" + "0" * 64,
    "PACKAGE": "gs://my-bucket/packages/trainyard-0.1.0-0123456789ab.tar.gz",
    "SERVICE_ACCOUNT": "trainer@my-project.iam.gserviceaccount.com",
    "TENSORBOARD": "projects/1/locations/europe-west4/tensorboards/2",
    "RESERVATION": "projects/owner/zones/europe-west4-a/reservations/h100",
}


def settings(**changed: str) -> list[str]:
    return [f"--set={name}={value}" for name, value in {**VALUES, **changed}.items() if value is not None]


@pytest.fixture
def api(tmp_path, monkeypatch):
    """The stand-in, with this process's environment pointing gcloud at it, and .cache/ in a folder of its own."""
    with StandIn() as server:
        for name in [*project.KNOWN, "MAKELEVEL"]:
            monkeypatch.delenv(name, raising=False)
        for name, value in server.environment(tmp_path / "gcloud", project="config-project").items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(remembered, "CACHE", tmp_path / "cache")
        monkeypatch.setattr(project, "ENV_FILE", tmp_path / "project.env")
        yield server


def takes_jobs(api: StandIn) -> None:
    def created(call):
        return {
            **call.body,
            "name": f"projects/1/locations/{call['region']}/{call['what']}/42",
            "state": "JOB_STATE_PENDING",
        }

    api.route("POST", r"/v1/projects/[^/]+/locations/(?P<region>[^/]+)/(?P<what>\w+)", created)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_what_arrives_is_the_request_as_made_and_what_the_golden_file_says(path, api):
    takes_jobs(api)
    made = request.make(spec.read(str(path), VALUES), VALUES)
    sent = request.submit_once(made)
    assert sent.name == "projects/1/locations/europe-west4/" + made.address.rpartition("/")[2] + "/42"
    (call,) = api.calls
    assert made.address == f"POST https://europe-west4-aiplatform.googleapis.com{call.path}"
    assert made.body == call.body
    call.body.get("labels", {}).pop("commit", None)
    golden = GOLDEN / f"{path.stem}.json"
    arrived = {"path": call.path, "body": call.body}
    if os.environ.get("UPDATE_GOLDEN"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(json.dumps(arrived, indent=2) + "\n")
    assert arrived == json.loads(golden.read_text())


@pytest.mark.parametrize("config", ["spot", "tune"])
def test_dry_run_prints_the_golden_request_and_sends_nothing(config, api, capsys):
    assert cli.main(["submit", str(project.ROOT / f"configs/{config}.yaml"), "--dry_run", *settings()]) == 0
    address, _, body = capsys.readouterr().out.partition("\n")
    golden = json.loads((GOLDEN / f"{config}.json").read_text())
    printed = json.loads(body)
    printed.get("labels", {}).pop("commit", None)
    assert address.endswith(golden["path"]) and printed == golden["body"]
    assert not api.calls


def test_it_shows_what_will_run_and_how_to_go_on(api, capsys):
    takes_jobs(api)
    flags = ["--no_preflight", "--web_access", "--label=team=vision"]
    assert cli.main(["submit", str(project.ROOT / "configs/multi_worker.yaml"), *flags, *settings()]) == 0
    told = capsys.readouterr().out
    for part in (
        "g2-standard-24",
        "2 x NVIDIA_L4",
        "@sha256:0000",
        "--batch_size=384",
        "gs://my-bucket/digits/digits-job",
    ):
        assert part in told
    name = "projects/1/locations/europe-west4/customJobs/42"
    assert f"launch watch {name}" in told and f"launch cancel {name}" in told
    assert "https://console.cloud.google.com/agent-platform/locations/europe-west4/training/42?project=1" in told
    assert remembered.last_job() == name
    assert api.calls[0].body["jobSpec"]["enableWebAccess"] is True
    assert api.calls[0].body["labels"]["team"] == "vision"


def test_what_preflight_calls_a_failure_stops_it(api, monkeypatch, capsys):
    takes_jobs(api)
    bad = checks.Check("quota", "failure", "0 of 1 NVIDIA_L4", "ask for more")
    monkeypatch.setattr(preflight, "look", lambda file, given: [bad])
    path = str(project.ROOT / "configs/gpu.yaml")
    assert cli.main(["submit", path, *settings()]) == 1
    told = capsys.readouterr().out
    assert "ask for more" in told and "Not submitted" in told
    assert not api.calls


@pytest.mark.skipif(not shutil.which("envsubst"), reason="envsubst (gettext) is not installed")
def test_envsubst_gives_what_the_launcher_reads_and_gcloud_takes_it(api):
    takes_jobs(api)
    for path in CONFIGS:
        filled = subprocess.run(["envsubst"], env={**os.environ, **VALUES}, input=path.read_text(), **PIPED).stdout
        assert yaml.safe_load(filled) == spec.read(str(path), VALUES).data
        if path.stem == "reserved":
            command = [
                "gcloud",
                "ai",
                "custom-jobs",
                "create",
                "--region=europe-west4",
                "--display-name=x",
                "--config=-",
            ]
            subprocess.run(command, input=filled, **PIPED)
            (call,) = api.calls
            assert call.body["jobSpec"] == json.loads((GOLDEN / "reserved.json").read_text())["body"]["jobSpec"]


def test_optional_settings_that_are_empty_are_left_out(api, capsys):
    path = str(project.ROOT / "configs/cpu.yaml")
    assert cli.main(["submit", path, "--dry_run", *settings(SERVICE_ACCOUNT="", TENSORBOARD="")]) == 0
    assert "serviceAccount" not in capsys.readouterr().out


def test_findings_stop_it(api, tmp_path, capsys):
    path = tmp_path / "job.yaml"
    path.write_text((project.ROOT / "configs/cpu.yaml").read_text().replace("--epochs=20", "--epohcs=20"))
    assert cli.main(["submit", str(path), *settings()]) == 1
    assert "did you mean --epochs" in capsys.readouterr().out
    assert not api.calls


def test_what_is_missing_is_asked_of_gcloud_and_then_named(api, monkeypatch, capsys):
    monkeypatch.setenv("CLOUDSDK_AI_REGION", "us-east1")
    path = str(project.ROOT / "configs/cpu.yaml")
    given = [flag for flag in settings() if not flag.startswith(("--set=PROJECT=", "--set=REGION="))]
    assert cli.main(["submit", path, "--dry_run", *given]) == 0
    assert "projects/config-project/locations/us-east1" in capsys.readouterr().out
    given = [flag for flag in given if not flag.startswith("--set=BUCKET=")]
    assert cli.main(["submit", path, "--dry_run", *given]) == 2
    assert "no value for BUCKET" in capsys.readouterr().err


def test_what_the_api_says_is_told(api, capsys):
    denied = failure(403, "PERMISSION_DENIED", "Permission 'aiplatform.customJobs.create' denied")
    api.route("POST", r"/v1/projects/.*", lambda call: denied)
    path = str(project.ROOT / "configs/cpu.yaml")
    assert cli.main(["submit", path, "--no_preflight", *settings()]) == 1
    assert "aiplatform.customJobs.create" in capsys.readouterr().err


def test_without_gcloud_it_says_how_to_get_it(api, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    path = str(project.ROOT / "configs/cpu.yaml")
    assert cli.main(["submit", path, "--no_preflight", *settings()]) == 2
    assert "https://cloud.google.com/sdk/docs/install" in capsys.readouterr().err


REPOSITORY = "europe-west4-docker.pkg.dev/my-project/trainyard/digits"
DIGEST = "sha256:" + "1" * 64


@pytest.mark.parametrize(("architecture", "machine"), [("cpu", "e2-standard-8"), ("gpu", "NVIDIA_L4"), ("tpu", "2x2")])
def test_the_image_built_last_is_submitted_by_digest_with_the_config_that_fits(api, capsys, architecture, machine):
    image = f"{REPOSITORY}:abc1234-{architecture}"
    remembered.write("image.json", {"architecture": architecture, "image": image, "digest": DIGEST})
    assert cli.main(["submit", "--dry_run", *settings(IMAGE=None)]) == 0
    told = capsys.readouterr().out
    assert f"{REPOSITORY}@{DIGEST}" in told and machine in told


def test_nothing_built_and_no_file_is_a_sentence(api, capsys):
    assert cli.main(["submit", *settings()]) == 2
    assert "no job file was named" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("built", "words"),
    [
        ({"architecture": "cpu", "image": f"{REPOSITORY}:abc-cpu", "digest": DIGEST}, "make build-gpu push"),
        ({"architecture": "gpu", "image": f"{REPOSITORY}:abc-gpu", "digest": None}, "make push"),
        (None, "make build-gpu push"),
    ],
)
def test_an_image_that_cannot_run_it_is_refused(api, capsys, built, words):
    if built:
        remembered.write("image.json", built)
    path = str(project.ROOT / "configs/gpu.yaml")
    assert cli.main(["submit", path, "--no_preflight", *settings(IMAGE=None)]) in (1, 2)
    assert words in capsys.readouterr().err
    assert not api.calls
