"""A few rounds of `make chaos`."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.soak
def test_killed_at_random_moments_jobs_end_with_the_same_bits():
    done = subprocess.run(
        [sys.executable, "tests/chaos.py", "--rounds=6", "--seed=1"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rounds            6" in done.stdout and "mismatches        0" in done.stdout
