"""What every test stands on: the pinned example, and the project's own settings, whoever starts the tests."""

import os
import pathlib
import sys

import pytest

from launch import project, remembered

# make exports project.env and says so with MAKELEVEL, which changes what comes first (launch/project.py)
for name in ("MAKELEVEL", *project.SETTINGS):
    os.environ.pop(name, None)

TESTS = pathlib.Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS / "trainer")]

# Tests of anything but the two files that a fork replaces need a model that they know: it lies with them, and this,
# which processes inherit, puts it in the place of trainer/model.py and trainer/data.py. tests/contract takes those.
PINNED = TESTS / "examples" / "digits"
os.environ["TRAINYARD_EXAMPLE"] = str(PINNED)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """.cache/ of another place: a test's rehearsal or image is none of the project's."""
    monkeypatch.setattr(remembered, "CACHE", tmp_path_factory.mktemp("cache"))


def pytest_terminal_summary(terminalreporter):
    files = ("model.py", "data.py")
    if any((TESTS.parent / "trainer" / name).read_bytes() != (PINNED / name).read_bytes() for name in files):
        terminalreporter.write_line(
            "trainer/model.py and trainer/data.py are yours: tests/contract is about them, the other tests train "
            "tests/examples/digits"
        )
