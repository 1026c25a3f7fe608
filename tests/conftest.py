"""What every test stands on: the project's own settings, whoever starts the tests."""

import os
import pathlib
import sys

import pytest

from launch import project

# make exports project.env and says so with MAKELEVEL, which changes what comes first (launch/project.py)
for name in ("MAKELEVEL", *project.SETTINGS):
    os.environ.pop(name, None)

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent / "trainer")]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """.cache/ of another place: a test's rehearsal or image is none of the project's."""
    monkeypatch.setattr(project, "CACHE", tmp_path_factory.mktemp("cache"))
