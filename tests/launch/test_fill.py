"""`launch fill`: what gcloud's --config is given where this project's packages are not."""

import pathlib

import pytest
import yaml
from google.protobuf import json_format

from launch import fill
from launch.__main__ import main
from launch.errors import LaunchError
from launch.spec import api

ROOT = pathlib.Path(__file__).resolve().parents[2]
VALUES = {"PROJECT": "p", "REGION": "r", "BUCKET": "b", "NAME": "digits", "JOB": "digits-1", "IMAGE": "r/p/i@sha256:1"}
EMPTY = {"SERVICE_ACCOUNT": "", "TENSORBOARD": ""}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in {**VALUES, **EMPTY}:
        monkeypatch.setenv(name, "")


def test_it_is_what_the_api_takes_with_the_arguments_added_last():
    given = yaml.safe_load(fill.filled(str(ROOT / "configs/cpu.yaml"), VALUES | EMPTY, ["--epochs=1"]))
    job = api.types()[0]()
    json_format.ParseDict(given, job)
    [pool] = job.worker_pool_specs
    assert pool.container_spec.image_uri == "r/p/i@sha256:1"
    assert list(pool.container_spec.args)[-1] == "--epochs=1"
    assert job.base_output_directory.output_uri_prefix == "gs://b/digits/digits-1"
    assert "serviceAccount" not in given
    assert "tensorboard" not in given


def test_the_account_is_there_where_one_is_given():
    given = yaml.safe_load(fill.filled(str(ROOT / "configs/cpu.yaml"), VALUES | EMPTY | {"SERVICE_ACCOUNT": "a@b"}, []))
    assert given["serviceAccount"] == "a@b"


def test_a_variable_without_a_value_is_named(capsys, monkeypatch):
    monkeypatch.setenv("MAKELEVEL", "1")
    arguments = [f"--set={name}={value}" for name, value in VALUES.items() if name != "BUCKET"]
    assert main(["fill", str(ROOT / "configs/cpu.yaml"), *arguments]) == 2
    assert "no value for BUCKET" in capsys.readouterr().err


def test_a_file_with_findings_is_not_filled_in(tmp_path):
    file = tmp_path / "twice.yaml"
    file.write_text("workerPoolSpecs: []\nworkerPoolSpecs: []\n")
    with pytest.raises(LaunchError, match="launch validate"):
        fill.filled(str(file), VALUES, [])
