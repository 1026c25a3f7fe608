"""make batch-size, as a person runs it."""

import re
import subprocess
import sys

import pytest


def search(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "trainer.batch_size", *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_largest_batch_is_found_and_a_power_of_two_advised(monkeypatch):
    monkeypatch.setenv("TRAINYARD_EXAMPLE", "tests/examples/digits")
    done = search()
    assert done.returncode == 0, done.stderr
    fits, advised, flag = re.search(
        r"^(\d+) examples fit one CPU.*a batch of (\d+) per replica.*\n +--batch_size=(\d+) on 1 device", done.stdout
    ).groups()
    assert int(advised) <= int(fits) < 2 * int(advised)
    assert flag == advised
    assert "Traceback" not in done.stderr and "retracing" not in done.stderr


def test_a_wrong_flag_is_a_sentence():
    done = search("--batch_size=abc")
    assert done.returncode == 2
    assert done.stderr.startswith("--batch_size=abc: ") and len(done.stderr.splitlines()) == 1
