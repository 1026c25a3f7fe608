"""Mutated job files: no traceback, no hang, and nothing accepted that the API's types refuse."""

import random
import resource
import time

import pytest
from google.protobuf import json_format

from launch import project, spec, validate
from launch.spec import api
from launch.spec.document import MAX_FINDINGS, UnreadableError
from tests.launch.mutants import mutant
from tests.shipped import CONFIGS

HANG_S = 2.0  # processor time of one file, so that a busy machine can't fail it


def refused(data: dict) -> bool:
    """Whether the API's own types take it neither as a job nor as a study."""
    for message in api.types():
        try:
            json_format.ParseDict(data, message())
            return False
        except json_format.ParseError:
            continue
    return True


def run(tmp_path, seed: int, count: int) -> dict[str, int]:
    rng = random.Random(seed)
    texts = [path.read_text() for path in CONFIGS]
    seen = {"unreadable": 0, "findings": 0, "accepted": 0}
    jobs = []
    for number in range(count):
        path = tmp_path / f"{number}.yaml"
        path.write_bytes(mutant(rng, rng.choice(texts)))
        began = time.process_time()
        try:
            jobs.append(spec.read(str(path), {}))
        except UnreadableError as error:
            assert "Expected:" in str(error)
            seen["unreadable"] += 1
        assert time.process_time() - began < HANG_S, path.read_bytes()[:2000]
    began = time.process_time()
    found = {one.file for one in validate.findings(jobs)}  # together: the trainer is asked once
    assert time.process_time() - began < HANG_S * max(1, len(jobs)) / 20
    for job in jobs:
        seen["findings" if job.file in found else "accepted"] += 1
        if job.file not in found:
            assert not refused(job.data), job.data
    return seen


def test_two_hundred_mutants(tmp_path):
    seen = run(tmp_path, seed=1, count=200)
    assert seen["unreadable"] > 10 and seen["findings"] > 80, seen


@pytest.mark.slow
def test_three_thousand_mutants(tmp_path):
    seen = run(tmp_path, seed=2026, count=3000)
    assert seen["unreadable"] > 200 and seen["findings"] > 1000, seen


LARGE = {
    "keys": ("cpu", "scheduling:", "".join(f"kez{n}: 1\n" for n in range(9000)) + "scheduling:"),
    "arguments": ("cpu", "    args:\n", "    args:\n" + "".join(f"    - --nope{n}=1\n" for n in range(9000))),
    "variables": ("cpu", "--epochs=20", "${NOPE}" * 20_000),
    "pools": ("cpu", "scheduling:", "- {machineSpec: {machineType: e2-standard-9}}\n" * 1500 + "scheduling:"),
    "parameters": (
        "tune",
        "  measurementSelectionType",
        "".join(f"  - parameterId: p{n}\n    integerValueSpec: {{minValue: 1, maxValue: 2}}\n" for n in range(2000))
        + "  measurementSelectionType",
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_file_with_thousands_of_mistakes_ends_soon(tmp_path, name):
    config, old, new = LARGE[name]
    path = tmp_path / "job.yaml"
    text = (project.ROOT / f"configs/{config}.yaml").read_text()
    body = text.partition("workerPoolSpecs:" if config == "cpu" else "studySpec:")[2]
    path.write_text(text[: len(text) - len(body)] + body.replace(old, new, 1))
    began = time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    found = validate.findings([spec.read(str(path), {})])
    spent = time.process_time() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    assert found and len(found) <= MAX_FINDINGS + 1
    assert spent < 5 * HANG_S  # about 1 s of processor time
