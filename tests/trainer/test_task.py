"""The entry point: exit codes, and what is said before TensorFlow is imported."""

import os
import pathlib
import subprocess
import sys

import pytest

from trainer import doctor, task
from trainer.doctor import Check

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def broken(monkeypatch):
    """An environment whose cuDNN is not TensorFlow's, and a run that ends at once."""
    finding = Check("cuDNN", "failure", "8.9.7", "9.3 or newer", "build from requirements/gpu.lock")
    monkeypatch.setattr(doctor, "check", lambda: [Check("Python", "ok", "3.12"), finding])
    import trainer.run

    monkeypatch.setattr(trainer.run, "run", lambda *_: 0)


def test_an_environment_that_is_not_fit_ends_the_job_with_the_fix(broken, capsys):
    assert task.main([]) == task.UNUSABLE
    assert capsys.readouterr().err == "cuDNN: 8.9.7, wanted 9.3 or newer; build from requirements/gpu.lock\n"


def test_it_trains_all_the_same_where_that_is_asked_for_and_says_so(broken, capsys):
    assert task.main(["--require_accelerator=no"]) == task.DONE
    assert "training all the same" in capsys.readouterr().err


def test_a_cluster_that_can_not_be_is_one_sentence(monkeypatch, capsys):
    monkeypatch.setenv("TF_CONFIG", "{not json")
    assert task.main([]) == task.UNUSABLE
    assert capsys.readouterr().err.startswith("TF_CONFIG is not JSON")


def test_help_lists_the_flags(capsys):
    assert task.main(["--help"]) == task.DONE
    assert "--learning_rate=number" in capsys.readouterr().out


def test_a_warm_up_longer_than_the_data_lasts_is_refused_where_it_was_asked_for(forks, tmp_path):
    job = forks.start(["--epochs=1", "--warmup_steps=30", f"--job_dir={tmp_path}/a"], tmp_path / "a.txt")
    assert job.wait() == 2
    assert "--warmup_steps=30 is not shorter than the run: 19 steps x --epochs=1 = 19 steps" in job.text
    job = forks.start(["--epochs=1", f"--job_dir={tmp_path}/b"], tmp_path / "b.txt")
    assert job.wait() == 0, job.text


MODEL = """
import atexit
from pydantic import BaseModel
atexit.register(print, "the run is uploaded")
class Hyperparameters(BaseModel):
    pass
def build_model(hyperparameters, optimizer):
    return None
"""
DATA = """
def records(split, data_dir):
    return "no records"
def parse(record, training):
    return record
"""


def test_what_a_fork_registered_for_the_end_is_done_and_the_code_kept(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "data.py").write_text(DATA)
    environ = {**os.environ, "TRAINYARD_EXAMPLE": str(tmp_path)}
    command = [sys.executable, "-m", "trainer.task", f"--job_dir={tmp_path}/job"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True)
    assert done.returncode == task.UNUSABLE, done.stderr
    assert "returned a str" in done.stderr
    assert done.stdout == "the run is uploaded\n"


def test_a_job_that_breaks_ends_in_python_s_own_way():
    setup = "import runpy, sys, trainer.flags as flags; flags.parse = None; sys.argv = ['task']; "
    command = [sys.executable, "-c", f"{setup} runpy.run_module('trainer.task', run_name='__main__')"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "'NoneType' object is not callable" in done.stderr
