import pathlib
import sys

import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent / "trainer")]


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """.cache/ of another place: a test's rehearsal or image is none of the project's."""
    from launch import project

    monkeypatch.setattr(project, "CACHE", tmp_path_factory.mktemp("cache"))
