"""Bootstrap with the real gcloud, against a project that keeps its state behind the stand-in API."""

import os
import pathlib
import re
import shlex
import shutil

import pytest

from launch import bootstrap
from launch.__main__ import main
from launch.bootstrap import plan, roles, settings, state
from launch.errors import LaunchError
from tests.launch.cloud_project import NUMBER, CloudProject
from tests.standin import StandIn, failure

ROOT = pathlib.Path(__file__).resolve().parents[2]
VALUES = {
    "PROJECT": "my-project",
    "REGION": "us-central1",
    "REPOSITORY": "trainyard",
    "BUCKET": "my-bucket",
    "NAME": "digits",
}
TRAIN = "digits-train@my-project.iam.gserviceaccount.com"
BUILD = "digits-build@my-project.iam.gserviceaccount.com"
AGENT = f"service-{NUMBER}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
needs_gcloud = pytest.mark.skipif(not shutil.which("gcloud"), reason="gcloud is not installed")


@pytest.fixture
def environment(monkeypatch):
    """The settings, from the environment alone."""
    without = {"SERVICE_ACCOUNT": "", "TENSORBOARD": "", "MAKELEVEL": "1"}  # under make the environment wins
    for name, value in {**VALUES, **without}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(state, "PAUSE_S", 0.0)


@pytest.fixture
def api(tmp_path, monkeypatch, environment):
    """The stand-in, with this process's gcloud pointed at it."""
    with StandIn() as standin:
        for name, value in standin.environment(tmp_path / "gcloud", "my-project").items():
            monkeypatch.setenv(name, value)
        yield standin
        assert standin.unexpected == []


def cloud_and_steps(**changes):
    names = settings.names(VALUES | changes.pop("values", {}), **changes)
    return state.Cloud(names, shutil.which("gcloud")), list(plan.steps(names))


def complete(api) -> CloudProject:
    """A project that has all that bootstrap makes."""
    project = CloudProject(api)
    project.services = {*roles.APIS, "bigquery.googleapis.com"}
    path = "projects/my-project/locations/us-central1/repositories/trainyard"
    project.repositories[path] = {"name": path, "format": "DOCKER"}
    project.buckets["my-bucket"] = {"name": "my-bucket"}
    for email in (TRAIN, BUILD):
        project.accounts[email] = {"email": email, "name": f"projects/my-project/serviceAccounts/{email}"}
    names = settings.names(VALUES)
    for grant in (grant for grant in roles.GRANTS if not grant.needs):
        of = plan.resource(names, grant.on)[1][0].removeprefix("gs://")
        policy = project.policies.setdefault(of, {"etag": "AAA=", "bindings": []})
        policy["bindings"].append({"role": grant.role, "members": [plan.member(names, grant.who, NUMBER)]})
    return project


@needs_gcloud
def test_a_project_that_has_everything_is_only_read(api, capsys):
    complete(api)
    assert main(["bootstrap"]) == 0
    assert api.writes() == []
    printed = capsys.readouterr().out
    assert "Nothing changed" in printed
    assert "made" not in printed


@needs_gcloud
@pytest.mark.slow
def test_an_empty_project_gets_everything_and_a_second_run_changes_nothing(api, capsys):
    project = CloudProject(api)
    command = ["bootstrap", "--github=projects/my-project/locations/us-central1/connections/c/repositories/digits"]
    assert main([*command, "--smoke"]) == 0
    first = capsys.readouterr().out
    assert project.services == set(roles.APIS)
    assert [r["format"] for r in project.repositories.values()] == ["DOCKER"]
    assert project.buckets["my-bucket"]["location"].lower() == "us-central1"
    closed = project.buckets["my-bucket"]["iamConfiguration"]
    assert closed == {"publicAccessPrevention": "enforced", "uniformBucketLevelAccess": {"enabled": True}}
    assert project.grants() == {
        ("my-project", "roles/logging.logWriter", TRAIN),
        ("my-bucket", "roles/storage.objectUser", TRAIN),
        ("my-project", "roles/logging.logWriter", BUILD),
        ("trainyard", "roles/artifactregistry.writer", BUILD),
        ("my-bucket", "roles/storage.objectViewer", BUILD),
        ("my-project", "roles/aiplatform.user", BUILD),
        (TRAIN, "roles/iam.serviceAccountUser", BUILD),
    }
    trigger = project.triggers["digits-main"]
    assert trigger["repositoryEventConfig"]["push"] == {"branch": "^main$"}
    assert trigger["serviceAccount"] == f"projects/my-project/serviceAccounts/{BUILD}"
    assert (trigger["filename"], trigger["substitutions"]["_TAG"]) == ("cloudbuild.yaml", "$SHORT_SHA")
    assert "later  roles/artifactregistry.reader" in first  # Google makes that account with the first job
    assert f"SERVICE_ACCOUNT={TRAIN}" in first

    project.agents.add(AGENT)
    assert main([*command, "--smoke"]) == 0
    assert "1 made" in capsys.readouterr().out
    before = len(api.writes())
    assert main([*command, "--smoke"]) == 0
    assert len(api.writes()) == before
    assert "Nothing changed" in capsys.readouterr().out


@needs_gcloud
def test_the_service_agent_gets_its_role_once_it_is_there(api):
    project = CloudProject(api)
    project.agents.add(AGENT)
    cloud, steps = cloud_and_steps()
    assert bootstrap.apply(cloud, [s for s in steps if s.later]) == 1
    assert project.grants() == {("trainyard", "roles/artifactregistry.reader", AGENT)}


@needs_gcloud
def test_a_refusal_says_what_gcloud_said_and_what_to_do(api):
    CloudProject(api)
    api.route("POST", ".*:batchEnable", lambda call: failure(403, "PERMISSION_DENIED", "no permission to enable"))
    cloud, steps = cloud_and_steps()
    with pytest.raises(LaunchError) as caught:
        bootstrap.apply(cloud, steps[:1])
    assert caught.value.exit_code == 1
    assert "no permission to enable" in str(caught.value)
    assert "docs/bootstrap.md" in str(caught.value)


@needs_gcloud
def test_a_repository_of_another_format_and_a_changed_trigger_are_not_touched(api):
    project = CloudProject(api)
    path = "projects/my-project/locations/us-central1/repositories/trainyard"
    project.repositories[path] = {"name": path, "format": "PYTHON"}
    project.triggers["digits-main"] = {"name": "digits-main", "filename": "other.yaml"}
    cloud, steps = cloud_and_steps(github="me/digits")
    for step, said in ((steps[1], "holds PYTHON"), (steps[-1], "another filename")):
        with pytest.raises(LaunchError, match=said):
            bootstrap.apply(cloud, [step])
    assert api.writes() == []


def test_a_dry_run_prints_every_command_and_asks_nothing(environment, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["bootstrap", "--dry_run", "--smoke", "--github=me/digits"]) == 0
    printed = capsys.readouterr().out
    commands = [shlex.split(line) for line in printed.splitlines() if line.startswith("gcloud ")]
    names = settings.names(VALUES, "me/digits", True)
    expected = [["gcloud", *step.command("${PROJECT_NUMBER}")] for step in plan.steps(names)]
    assert [command[:-2] for command in commands] == expected
    assert all(command[-2:] == ["--project=my-project", "--quiet"] for command in commands)
    reasons = [grant.reason for grant in roles.GRANTS if grant.needs != "TENSORBOARD"]
    assert all(reason in printed for reason in reasons)


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_the_dry_run_is_a_script_that_bash_reads(environment, tmp_path, capsys):
    assert main(["bootstrap", "--dry_run", "--github=me/digits"]) == 0
    fake = tmp_path / "gcloud"
    fake.write_text('#!/bin/sh\n[ "$2" = describe ] && echo 42 || printf "%s\\n" "$*"\n')
    fake.chmod(0o755)
    script = tmp_path / "script.sh"
    script.write_text(capsys.readouterr().out)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    printed = os.popen(f"PATH={shlex.quote(path)} bash -eu {script}").read()
    assert "service-42@gcp-sa-aiplatform-cc" in printed
    assert "_TAG=$SHORT_SHA" in printed


def test_tensorboard_and_smoke_bring_roles_that_are_not_given_without():
    def given(**changes):
        return {step.title for step in cloud_and_steps(**changes)[1] if "roles/" in step.title}

    assert {t.split()[0] for t in given(values={"TENSORBOARD": "t"}) - given()} == {"roles/aiplatform.user"}
    assert {t.split()[0] for t in given(smoke=True) - given()} == {
        "roles/aiplatform.user",
        "roles/iam.serviceAccountUser",
    }


@pytest.mark.parametrize(
    ("values", "github", "said"),
    [
        ({"BUCKET": ""}, "", "no value for BUCKET"),
        ({"NAME": "d"}, "", None),
        ({"NAME": "a-name-that-is-much-too-long-for-it"}, "", "6 to 30"),
        ({"SERVICE_ACCOUNT": "me@other.iam.gserviceaccount.com"}, "", "of this project"),
        ({"BUCKET": "My_Bucket/folder"}, "", "without gs://"),
        ({"REPOSITORY": "Trainyard"}, "", "REPOSITORY=Trainyard came"),
        ({}, "gitlab.com/a/b/c", "OWNER/NAME"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_gcloud_is_asked(values, github, said):
    if said is None:
        assert settings.names(VALUES | values, github).training.startswith("d-train@")
        return
    with pytest.raises(LaunchError, match=re.escape(said)):
        settings.names(VALUES | values, github)


def test_each_role_has_its_reason_and_none_is_a_basic_one():
    for grant in roles.GRANTS:
        assert len(grant.reason) > 15
        assert grant.role not in ("roles/owner", "roles/editor", "roles/viewer")
        assert not grant.role.endswith(("admin", "Admin"))


def test_the_page_has_the_table_of_the_code():
    assert roles.table() in (ROOT / "docs/bootstrap.md").read_text()
