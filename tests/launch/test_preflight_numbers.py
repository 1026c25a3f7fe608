"""Preflight of batch, memory and numbers, without asking Google."""

import re

import pytest

from launch import project
from launch.preflight import memory, numerics, strategy
from launch.preflight.job import Job
from launch.preflight.request import Trouble
from tests.google_world import VARIABLES
from tests.launch.preflight_world import job_file
from tests.shipped import CONFIGS


def test_a_batch_that_does_not_divide(tmp_path):
    job = Job.read(str(job_file(tmp_path, "multi_gpu", batch_size=63)), VARIABLES)
    (check,) = memory.arithmetic(job)
    assert check.status == "failure"
    assert "--batch_size=64" in check.fix


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({"learning_rate": 0.5}, "learning rate"),
        ({"learning_rate": 1e-8}, "learning rate"),
        ({"batch_size": 4096, "warmup_steps": 0}, "warm-up"),
        ({"clip_norm": 0, "precision": "mixed_float16"}, "clipping"),
        ({"clip_norm": 1000}, "clipping"),
    ],
)
def test_numbers_out_of_their_usual_range_are_pointed_out(tmp_path, flags, name):
    found = {c.name: c.status for c in numerics.look(Job.read(str(job_file(tmp_path, "gpu", **flags)), VARIABLES))}
    assert found == {name: "warning"}


def test_a_precision_that_the_accelerator_has_not(tmp_path):
    path = job_file(tmp_path, "tpu_v3", precision="mixed_float16")
    (check,) = numerics.look(Job.read(str(path), VARIABLES))
    assert (check.name, "mixed_bfloat16" in check.command) == ("precision", True)


def test_usual_numbers_are_not_pointed_out(tmp_path):
    flags = {"learning_rate": 0.001, "batch_size": 256, "warmup_steps": 100, "clip_norm": 1, "precision": "float32"}
    (check,) = numerics.look(Job.read(str(job_file(tmp_path, "gpu", **flags)), VARIABLES))
    assert check.status == "ok"


def test_every_config_has_a_batch_and_a_strategy_that_fit_its_machines():
    for path in CONFIGS:
        assert next(iter(memory.arithmetic(Job.read(str(path), VARIABLES)))).status == "ok", path.stem
        assert next(iter(strategy.shape(Job.read(str(path), VARIABLES)))).status == "ok", path.stem


@pytest.mark.parametrize(("per_example", "status"), [(10**6, "ok"), (250 * 10**6, "warning"), (10**9, "failure")])
def test_the_estimate_against_the_accelerators_memory(monkeypatch, per_example, status):
    table = {str(n): 10**9 + n * per_example for n in (1, 2, 4, 128)}
    figures = {"parameters": 10**6, "gradient_bytes": 10**8, "bytes_by_batch": table, "unsized_tensors": 0}
    monkeypatch.setattr(memory, "estimate", lambda job: memory.Need.of(figures))
    job = Job.read(str(project.ROOT / "configs" / "gpu.yaml"), VARIABLES)
    (check,) = memory.fits(job)
    assert check.status == status
    assert re.match(r"about [\d.,]+ GB \([\d.,]+ GB to [\d.,]+ GB\) for 64 examples", check.found)
    if status == "failure":
        assert "--accumulate=8" in check.fix  # 64 examples in micro-batches of 8


@pytest.mark.parametrize(
    ("gb", "said"), [(0.0003, "0.3 MB"), (0.09996, "100 MB"), (32, "32 GB"), (999.7, "1,000 GB"), (1360, "1,360 GB")]
)
def test_sizes_are_read_without_an_exponent(gb, said):
    assert memory.size(gb) == said


def test_a_batch_of_a_billion_is_told_as_fast_as_any_other(monkeypatch, tmp_path):
    table = {str(n): 10**9 + n * 10**9 for n in (1, 2, 4, 128)}
    figures = {"parameters": 10**6, "gradient_bytes": 10**8, "bytes_by_batch": table, "unsized_tensors": 0}
    monkeypatch.setattr(memory, "estimate", lambda job: memory.Need.of(figures))
    (check,) = memory.fits(Job.read(str(job_file(tmp_path, "gpu", batch_size=10**9)), VARIABLES))
    assert check.status == "failure"
    assert "--accumulate=" in check.fix


def test_an_estimate_of_the_model_that_is_here(tmp_path):
    job = Job.read(str(project.ROOT / "configs" / "cpu.yaml"), VARIABLES)
    try:
        found = memory.estimate(job)
    except Trouble as trouble:
        pytest.fail(trouble.detail)
    assert found.parameters > 0
    assert found.bytes(1, False) >= 2 * 2 * found.parameters  # they and their gradients, in 16 bits at the least
    assert found.bytes(100, False) > found.bytes(10, False)
