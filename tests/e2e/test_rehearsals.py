"""Every file of configs/ on this machine, with the real trainer and a few steps of it.

One runs with `make test`; the rest, with up to six processes each, with `make test-all`.
"""

import json
import pathlib

import jobs
import pytest

from launch import __main__ as command_line
from tests.shipped import CONFIGS

QUICK = {"cpu"}
SHORT = ["--epochs=1", "--steps_per_epoch=4", "--warmup_steps=0", "--histogram_epochs=1"]
SAID = {  # by the launcher, of what is not as in the cloud
    "multi_gpu": "4 x NVIDIA_L4 stood in for by 4 logical CPU devices",
    "reduction_server": "reducer:0 to reducer:3: stood in for",
    "tpu": "static shapes, bfloat16 and XLA stay",
    "tpu_v3": "stood in for by 8 logical CPU devices",
    "tune": "one trial of it",
    "tune_grid": "one trial of it",
}


def rehearse(config, output, *launcher, trainer=()):
    """The exit code of `launch local` with a few steps of training."""
    return command_line.main(["local", str(config), f"--output={output}", *launcher, "--", *SHORT, *trainer])


@pytest.mark.parametrize(
    "config",
    [pytest.param(one, id=one.stem, marks=[] if one.stem in QUICK else pytest.mark.slow) for one in CONFIGS],
)
def test_a_config_trains_here_from_end_to_end(config, tmp_path, capsys):
    code = rehearse(config, tmp_path)
    out = capsys.readouterr().out
    assert code == 0, out
    assert SAID.get(config.stem, "") in out
    base = tmp_path / "1" if config.stem.startswith("tune") else tmp_path
    assert json.loads((base / "result.json").read_text())["steps"] == 4
    assert list((base / "model").rglob("saved_model.pb"))
    assert list((base / "checkpoints").iterdir())
    assert any(tag.startswith("weights/") for tag, _ in jobs.histograms(base / "logs"))


LONG = ["--steps_per_epoch=300", "--log_every_steps=10", "--checkpoint_every=10steps"]


@pytest.mark.slow
def test_a_spot_machine_that_is_taken_away_comes_back_where_it_was(tmp_path, capsys):
    assert rehearse(pathlib.Path("configs/spot.yaml"), tmp_path, "--preempt=chief@20steps", trainer=LONG) == 0
    out = capsys.readouterr().out
    assert "taking chief away" in out
    assert "Spot: the whole job restarts (1 of 6)" in out
    assert "resuming at step" in out
    assert json.loads((tmp_path / "result.json").read_text())["steps"] == 300


@pytest.mark.slow
def test_a_lost_worker_takes_the_synchronous_job_with_it(tmp_path, capsys):
    config = pathlib.Path("configs/multi_worker.yaml")
    assert rehearse(config, tmp_path, "--preempt=worker:1@20steps", trainer=LONG) == 0
    out = capsys.readouterr().out
    assert "worker:1 was taken away; restartJobOnWorkerRestart: the whole job restarts (1 of 3)" in out
    assert "resuming at step" in out
