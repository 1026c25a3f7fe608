"""A build by hand, with the real gcloud: the request is what the API takes, the upload no more than it should be."""

import io
import pathlib
import shutil
import subprocess
import tarfile

import pytest
from google.cloud.devtools.cloudbuild_v1 import Build
from google.protobuf import json_format

from launch import cloud_build
from launch.__main__ import main
from launch.bootstrap import settings
from tests.standin import StandIn

ROOT = pathlib.Path(__file__).resolve().parents[2]
VALUES = {
    "PROJECT": "my-project",
    "REGION": "us-central1",
    "REPOSITORY": "trainyard",
    "BUCKET": "my-bucket",
    "NAME": "digits",
}


def archive(raw: bytes) -> bytes:
    """The second part of gcloud's multipart upload: the compressed tree."""
    boundary = raw.split(b"\n", 1)[0].strip()
    part = raw.split(boundary)[2]
    return part[part.index(b"\x1f\x8b") :].removesuffix(b"\n").removesuffix(b"\r")


def uploaded(call):
    """Cloud Storage's answer; gcloud compares the size."""
    size = len(archive(call.raw))
    return {"name": call.query["name"][0], "bucket": "my-bucket", "generation": "1", "size": str(size)}


def queued(call):
    """Cloud Build's answer: an operation with the build in it."""
    name = f"{call['home'].removeprefix('v1/')}/builds/b-1"
    build = {"id": "b-1", "projectId": "my-project", "name": name, "status": "QUEUED", **call.body}
    kind = "type.googleapis.com/google.devtools.cloudbuild.v1.BuildOperationMetadata"
    return {"name": "operations/1", "metadata": {"@type": kind, "build": build}}


def members(raw: bytes) -> set[str]:
    """The files in the archive."""
    with tarfile.open(fileobj=io.BytesIO(archive(raw)), mode="r:gz") as tar:
        return {member.name for member in tar.getmembers() if member.isfile()}


@pytest.mark.skipif(not shutil.which("gcloud"), reason="gcloud is not installed")
def test_the_tree_is_sent_without_secrets_and_the_build_is_asked_for(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("cloudbuild.yaml", ".gcloudignore", ".gitignore"):
        shutil.copy(ROOT / name, tree / name)
    for name in ("trainer/model.py", "jobs/one/result.json", "my-key.json", ".env", ".git/config", "a/b.pem"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("x")
    command = cloud_build.submission(settings.names(VALUES), "abc-dirty", "tests/trainer -k one,two")
    with StandIn() as api:
        api.route("GET", "/storage/v1/b/my-bucket", lambda call: {"name": "my-bucket"})
        api.route("POST", "/upload/storage/v1/b/my-bucket/o", uploaded)
        api.route("POST", "/(?P<home>v1/projects/my-project/locations/us-central1)/builds", queued)
        done = subprocess.run(
            command, cwd=tree, env=api.environment(tmp_path / "gcloud", "my-project"), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert api.unexpected == []
    upload, asked = api.writes()
    assert members(upload.raw) == {"cloudbuild.yaml", ".gcloudignore", "trainer/model.py"}
    raw = Build.pb()()
    json_format.ParseDict(asked.body, raw)
    assert raw.service_account == "projects/my-project/serviceAccounts/digits-build@my-project.iam.gserviceaccount.com"
    assert raw.substitutions["_TAG"] == "abc-dirty"
    assert raw.substitutions["_TEST_ARGS"] == "tests/trainer -k one,two"
    assert raw.substitutions["_SMOKE"] == "false"
    assert [step.id for step in raw.steps][:2] == ["test", "build-cpu"]
    assert raw.source.storage_source.bucket == "my-bucket"


def test_what_is_missing_is_said_under_the_verb_s_own_name(monkeypatch, capsys):
    for name in VALUES:
        monkeypatch.delenv(name, raising=False)
    assert main(["cloud_build", "--dry_run"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("cloud_build: no value for BUCKET") and "bootstrap" not in said


def test_a_dry_run_prints_the_command(monkeypatch, capsys):
    for name, value in {**VALUES, "SERVICE_ACCOUNT": "", "MAKELEVEL": "1"}.items():
        monkeypatch.setenv(name, value)
    assert main(["cloud_build", "--dry_run", "--tag=t1"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("gcloud builds submit --project=my-project --region=us-central1")
    assert "_TAG=t1" in printed
    assert "--async" in printed
