"""The fourteen job files: complete, valid for the API's own types, and opening as they should."""

import pathlib

import pytest
from google.protobuf import json_format

from launch import spec
from launch.spec import api
from tests.shipped import CONFIGS


def test_all_fourteen_are_there():
    assert len(CONFIGS) == 14
    assert [path.stem for path in CONFIGS if not path.is_file()] == []


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_is_what_the_api_takes(path: pathlib.Path):
    job = spec.read(str(path), {})
    custom, tuning = api.types()
    assert job.document.findings == []
    assert job.kind == ("tuning" if path.stem.startswith("tune") else "custom")
    json_format.ParseDict(job.data, tuning() if job.kind == "tuning" else custom())


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_opens_with_what_it_runs_needs_and_gives_and_the_command(path: pathlib.Path):
    text = path.read_text()
    header = text[: text.index("\n", text.rindex("\n#   "))]
    for part in ("# What it runs:", "# What it needs:", "# What to expect:", "make local", f"CONFIG={path.stem}"):
        assert part in header or (part == "make local" and "make tune" in header)
    assert max(len(line) for line in text.splitlines()) <= 120
