"""Mutated job files: no traceback, no hang, and nothing accepted that the API's types refuse."""

import random
import time

import pytest
from google.protobuf import json_format

from launch import project, spec, validate
from launch.document import UnreadableError
from tests.launch.mutants import mutant

CONFIGS = sorted((project.ROOT / "configs").glob("*.yaml"))
HANG_S = 2.0  # processor time of one file, so that a busy machine can't fail it


def refused(data: dict) -> bool:
    """Whether the API's own types take it neither as a job nor as a study."""
    for message in spec.api_types():
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
    seen = run(tmp_path, seed=2026, count=2000)
    assert seen["unreadable"] > 200 and seen["findings"] > 1000, seen
