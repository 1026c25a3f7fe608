"""The shipped tests pass, unedited, in forks of this repository with models of other kinds.

Here those that see a fork's own two files or ask for its flags; `make test-forks` runs all of them.
"""

import re
import subprocess

import pytest

from tests.fork import clone, shipped_tests

TELLING = (
    "tests/contract",
    "tests/trainer/test_flags.py",
    "tests/trainer/test_data.py",
    "tests/trainer/test_finished.py",
    "tests/launch/test_configs.py",
    "tests/launch/test_validate.py",
    "tests/launch/test_launch_docs.py",
)


@pytest.mark.slow
@pytest.mark.parametrize("example", ["tabular", "two_heads", "text"])
def test_the_shipped_tests_pass_with_another_model(example, tmp_path):
    fork = clone(tmp_path / "fork", example)
    done = shipped_tests(fork, *TELLING, "-rs", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3600)
    assert done.returncode == 0, done.stdout[-6000:]
    assert "tests/contract is about them" in done.stdout
    passed = int(re.search(r"(\d+) passed", done.stdout)[1])
    skipped = re.findall(r"^SKIPPED .*", done.stdout, re.MULTILINE)
    assert passed > 150 and not skipped, done.stdout[-3000:]
