"""Preflight of the file without asking Google: is it valid, does its shape fit, was it rehearsed?"""

import json
import subprocess

import pytest

from launch import project, remembered
from launch import rehearsed as rehearsals
from launch.preflight import strategy
from launch.preflight.job import Job
from tests.google_world import VARIABLES
from tests.launch.preflight_world import job_file


def test_a_file_that_validate_refuses(tmp_path):
    path = tmp_path / "gpu.yaml"
    text = (project.ROOT / "configs" / "gpu.yaml").read_text()
    path.write_text(text.replace("replicaCount", "replicaCuont").replace("--batch_size", "--bach_size"))
    (check,) = strategy.valid(Job.read(str(path), VARIABLES))
    assert check.status == "failure"
    assert check.command == f"python -m launch validate {path}"
    (good,) = strategy.valid(Job.read(str(project.ROOT / "configs" / "gpu.yaml"), VARIABLES))
    assert good.status == "ok"


@pytest.mark.parametrize(
    ("config", "flag", "fits"), [("multi_worker", "mirrored", "multi_worker"), ("tpu", "one_device", "tpu")]
)
def test_a_strategy_that_the_pools_dont_have(tmp_path, config, flag, fits):
    job = Job.read(str(job_file(tmp_path, config, strategy=flag)), VARIABLES)
    (check,) = strategy.shape(job)
    assert (check.status, f"--strategy={fits} " in check.fix) == ("failure", True)


def test_a_rehearsal_counts_for_its_file_and_commit(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=n@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def status():
        (check,) = strategy.rehearsed(job, tmp_path)
        return check.status, check.found

    job = Job.read(str(project.ROOT / "configs" / "gpu.yaml"), VARIABLES)
    git("init", "-q")
    (tmp_path / "code.py").write_text("a = 1")
    git("add", "code.py")
    git("commit", "-qm", "one")
    assert "never rehearsed" in status()[1]
    commit, dirty = rehearsals.state(tmp_path)
    (tmp_path / ".cache").mkdir()
    record = tmp_path / ".cache" / "rehearsed.json"
    record.write_text(json.dumps({"gpu.yaml": {"commit": commit, "dirty": dirty, "at": "2026-11-21T02:00:00Z"}}))
    assert status()[0] == "ok"
    (tmp_path / "project.env").write_text("PROJECT=mine")
    git("add", "project.env")
    assert status()[0] == "ok"
    (tmp_path / "code.py").write_text("a = 2")
    assert "uncommitted" in status()[1]
    git("commit", "-qam", "two")
    assert "last rehearsed on commit" in status()[1]
    record.write_text("not JSON")
    assert status()[0] == "warning"


def test_what_local_writes_down_is_what_preflight_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(remembered, "CACHE", tmp_path)
    rehearsals.remember("configs/gpu.yaml", "abc", False)
    rehearsals.remember("elsewhere/cpu.yaml", "def", True)
    assert {name: (one["commit"], one["dirty"]) for name, one in rehearsals.records().items()} == {
        "gpu.yaml": ("abc", False),
        "cpu.yaml": ("def", True),
    }
