"""A few rounds of `make chaos`."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.slow
def test_killed_at_random_moments_jobs_end_with_the_same_bits():
    command = [sys.executable, "tests/chaos.py", "--rounds=6", "--kills_per_job=2", "--seed=1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rounds            6" in done.stdout and "mismatches        0" in done.stdout
