"""Images as the launcher names, builds and refuses them; what an engine says is in tests/images."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launch import gcloud, project, remembered
from launch.errors import LaunchError
from launch.image import build, engine, names, push, trial

PROJECT = {"PROJECT": "p", "REGION": "us-central1", "REPOSITORY": "trainyard", "NAME": "digits"}


@pytest.fixture
def no_registry(monkeypatch):
    monkeypatch.delenv("REGISTRY", raising=False)


@pytest.fixture
def git(tmp_path):
    def run(*command):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True, capture_output=True)

    run("init")
    (tmp_path / "file").write_text("1")
    run("add", "file")
    run("commit", "-m", "first")
    return tmp_path


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty project in place of this one."""
    monkeypatch.setattr(project, "ROOT", tmp_path)
    monkeypatch.setattr(remembered, "CACHE", tmp_path / ".cache")
    return tmp_path


def told(image="digits-cpu:1", machine="amd64", label="cpu", system="linux"):
    """What docker's inspect says of an image; the fields that push reads."""
    labels = {"org.trainyard.accelerator": label} if label else None
    return {"Os": system, "Architecture": machine, "Config": {"Labels": labels}, "RepoTags": [image]}


def test_an_image_is_named_after_registry_name_architecture_and_commit(no_registry):
    expected = "us-central1-docker.pkg.dev/p/trainyard/digits-gpu:abc"
    assert names.image_name("gpu", PROJECT, "abc") == expected


def test_a_project_of_an_old_domain_stands_with_a_slash(no_registry):
    values = PROJECT | {"PROJECT": "example.com:p"}
    assert names.registry(values) == "us-central1-docker.pkg.dev/example.com/p/trainyard"


def test_without_a_project_an_image_has_a_local_name(no_registry):
    assert names.image_name("cpu", {}, "abc") == "trainyard-cpu:abc"


def test_registry_in_the_environment_comes_first(monkeypatch):
    monkeypatch.setenv("REGISTRY", "localhost:5000/")
    assert names.image_name("tpu", PROJECT, "abc") == "localhost:5000/digits-tpu:abc"


@pytest.mark.parametrize("name", ["Digits", "my digits", "-x", "a__b/", ""])
def test_a_name_that_no_image_can_have_is_refused_with_the_rule(name, no_registry):
    if not name:
        assert names.image_name("cpu", {"NAME": name}, "abc") == "trainyard-cpu:abc"
        return
    with pytest.raises(LaunchError, match="lower-case letters and digits"):
        names.image_name("cpu", {"NAME": name}, "abc")


def test_the_base_is_named_by_tensorflow_and_cuda(no_registry):
    assert names.base_name("gpu", {}, "2.21.0", "12") == "tensorflow:tf2.21-cuda12"
    assert names.base_name("tpu", {}, "2.20.0") == "tensorflow:tf2.20-tpu"


def test_the_tag_is_the_commit_and_says_when_files_differ_from_it(git):
    tag, revision = names.commit(git)
    assert len(tag) == 12
    assert revision.startswith(tag)
    (git / "file").write_text("2")
    assert names.commit(git) == (f"{tag}-dirty", f"{revision}-dirty")


def test_a_tree_without_git_has_a_tag_too(tmp_path):
    assert names.commit(tmp_path) == ("unversioned", "unversioned")


def test_a_build_is_for_amd64_on_every_machine_and_hands_the_base_on(monkeypatch):
    monkeypatch.setenv("BASE_IMAGE", "tensorflow/tensorflow:2.21.0")
    arguments = build.arguments("cpu", "digits-cpu:1", "abc", target="tensorflow")
    assert "--platform=linux/amd64" in arguments
    assert "--build-arg=BASE_IMAGE=tensorflow/tensorflow:2.21.0" in arguments
    assert "--target=tensorflow" in arguments
    monkeypatch.delenv("BASE_IMAGE")
    assert not any("BASE_IMAGE" in argument for argument in build.arguments("cpu", "digits-cpu:1", "abc"))


def test_push_and_test_act_on_what_was_built_last(root):
    remembered.write("image.json", {"architecture": "gpu", "image": "digits-gpu:1", "digest": None})
    assert json.loads((root / ".cache/image.json").read_text())["architecture"] == "gpu"
    assert build.image_of(None) == ("gpu", "digits-gpu:1")
    assert build.kind_or_last(None) == "gpu"


def test_nothing_built_yet_is_said_with_the_command(root):
    with pytest.raises(LaunchError, match="make build-cpu"):
        build.kind_or_last(None)


@pytest.mark.parametrize(("machine", "system"), [("arm64", "linux"), ("amd64", "windows")])
def test_an_image_for_another_machine_is_not_pushed(monkeypatch, machine, system):
    monkeypatch.setattr(engine, "inspect", lambda image: told(machine=machine, system=system))
    with pytest.raises(LaunchError, match=f"{system}/{machine}.*exec format error") as caught:
        push.check("cpu", "digits-cpu:1")
    assert caught.value.exit_code == 1


def test_an_image_of_another_architecture_is_not_pushed(monkeypatch):
    monkeypatch.setattr(engine, "inspect", lambda image: told(label="cpu"))
    with pytest.raises(LaunchError, match="labelled for cpu, not for gpu"):
        push.check("gpu", "digits-gpu:1")


def test_a_missing_image_is_not_pushed(monkeypatch):
    monkeypatch.setattr(engine, "inspect", lambda image: None)
    with pytest.raises(LaunchError, match="make build-tpu"):
        push.check("tpu", "digits-tpu:1")


def test_a_push_without_a_project_names_what_is_missing(no_registry, monkeypatch):
    monkeypatch.setattr(gcloud, "settings", dict)
    monkeypatch.setattr(project, "settings", lambda: {"REGION": "us-central1"})
    with pytest.raises(LaunchError, match=r"PROJECT \(.*REPOSITORY \(.*REGISTRY=localhost:5000"):
        push.require_registry()


def test_an_image_built_before_the_project_was_known_gets_its_registry(root, monkeypatch):
    monkeypatch.setenv("REGISTRY", "localhost:5000")
    assert push.destination("digits-gpu:1") == "localhost:5000/digits-gpu:1"


def test_a_trial_has_no_rights_and_the_outputs_of_a_job():
    arguments = trial.test_arguments("tpu", "digits-tpu:1")
    assert {"--read-only", "--network=none", "--cap-drop=ALL", "--env=TPU_SKIP_MDS_QUERY=1"} <= set(arguments)
    assert "--env=AIP_MODEL_DIR=/tmp/output/model/" in arguments
    assert arguments[-1] == "digits-tpu:1"


def test_without_docker_the_sentence_says_where_to_get_it(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-m", "launch", "image", "test", "cpu"],
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "no docker on this machine" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_engine_that_does_not_answer_is_a_sentence(tmp_path):
    if not any(Path(folder, "docker").exists() for folder in os.environ["PATH"].split(":")):
        pytest.skip("no docker command on this machine")
    ran = subprocess.run(
        [sys.executable, "-m", "launch", "image", "test", "cpu"],
        env=os.environ | {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert "no container engine answers" in ran.stderr
