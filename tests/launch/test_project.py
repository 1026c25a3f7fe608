"""The settings: where a value comes from, what is missing, what was built and submitted last."""

import subprocess

import pytest

from launch import project, remembered
from launch.errors import LaunchError


@pytest.fixture(autouse=True)
def own_project(tmp_path, monkeypatch):
    for name in [*project.KNOWN, "MAKELEVEL"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(project, "ENV_FILE", tmp_path / "project.env")
    monkeypatch.setattr(remembered, "CACHE", tmp_path / "cache")


def write(text: str) -> None:
    project.ENV_FILE.write_text(text)


def test_the_shipped_file_can_be_read_and_names_every_setting():
    written = project.read_env(project.ROOT / "project.env")
    assert {"PROJECT", "REGION", "REPOSITORY", "BUCKET", "NAME", "SERVICE_ACCOUNT"} <= set(written)


def test_by_hand_the_file_wins_and_by_make_the_environment(monkeypatch):
    write("# a comment\n\nNAME=digits\nREGION=\n")
    monkeypatch.setenv("NAME", "the-hosts-name")
    monkeypatch.setenv("REGION", "us-east1")
    assert project.settings() == {"NAME": "digits", "REGION": "us-east1"}
    monkeypatch.setenv("MAKELEVEL", "1")  # make read the file and lets its command line win
    assert project.settings()["NAME"] == "the-hosts-name"


def test_set_wins_over_both(monkeypatch):
    write("REGION=us-east1\n")
    assert project.variables("configs/cpu.yaml", project.overrides(["REGION=asia-east1"]))["REGION"] == "asia-east1"


@pytest.mark.parametrize("line", ["NAME digits", "NAME='digits'", "1=2"])
def test_a_line_that_cannot_be_read_is_a_sentence_with_its_number(line):
    write(f"# first\n{line}\n")
    with pytest.raises(LaunchError, match=r"project.env:2: .*Expected"):
        project.settings()


@pytest.mark.parametrize("pair", ["REGION", "NOPE=1", "=x"])
def test_set_takes_known_names_only(pair):
    with pytest.raises(LaunchError, match="Expected: NAME=VALUE"):
        project.overrides([pair])


def test_make_and_launch_read_the_same_values():
    """The file is make's as well: what make exports is what launch reads."""
    makefile = f"-include {project.ENV_FILE}\nexport\nall:\n\t@echo $$NAME,$$BUCKET\n"
    write("NAME=digits\nBUCKET=my-bucket\n")
    done = subprocess.run(["make", "-f", "-"], input=makefile, capture_output=True, text=True, check=True)
    values = project.settings()
    assert done.stdout.strip() == f"{values['NAME']},{values['BUCKET']}"


def test_what_is_missing_is_named_with_the_way_to_set_it():
    sentence = project.missing(["BUCKET", "PROJECT"])
    assert "BUCKET (" in sentence and "gcloud config set project" in sentence and sentence.endswith(".")


@pytest.mark.parametrize(
    ("image", "digest", "reference"),
    [
        ("r-docker.pkg.dev/p/r/n:t", "sha256:1", "r-docker.pkg.dev/p/r/n@sha256:1"),
        ("localhost:5000/n", "sha256:1", "localhost:5000/n@sha256:1"),
        ("r-docker.pkg.dev/p/r/n:t", None, "r-docker.pkg.dev/p/r/n:t"),
    ],
)
def test_an_image_is_named_by_digest_once_it_has_one(image, digest, reference):
    remembered.write("image.json", {"architecture": "gpu", "image": image, "digest": digest})
    assert project.variables("configs/gpu.yaml")["IMAGE"] == reference


def test_a_cache_that_cannot_be_written_stops_nothing(monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(remembered, "CACHE", tmp_path / "file" / "cache")
    remembered.write("job.json", {"name": "a job that was sent"})
    assert "job.json can't be written (Not a directory)" in capsys.readouterr().err


def test_a_broken_cache_is_a_sentence():
    remembered.CACHE.mkdir()
    (remembered.CACHE / "image.json").write_text("{")
    with pytest.raises(LaunchError, match="remove it"):
        remembered.last_image()


def test_a_job_has_a_name_that_every_place_takes():
    write("NAME=My Digits_1\n")
    name = project.variables("configs/multi_gpu.yaml")["JOB"]
    assert name.startswith("my-digits-1-multi-gpu-20") and len(name) <= 63 and name == name.lower()


@pytest.mark.parametrize(
    ("goal", "given", "wanted"),
    [
        ("submit", "CONFIG=tpu", "launch submit configs/tpu.yaml"),
        ("submit", "ARGS=--dry_run", "launch submit --dry_run"),
        ("watch", "JOB=7", "launch watch 7"),
        ("validate", "CONFIG=gpu", "launch validate configs/gpu.yaml"),
    ],
)
def test_make_hands_config_and_job_on(goal, given, wanted):
    done = subprocess.run(["make", "-n", goal, given], cwd=project.ROOT, capture_output=True, text=True, check=True)
    assert wanted in " ".join(done.stdout.split())
