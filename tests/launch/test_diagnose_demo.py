"""Each of the seven can be provoked here, and is diagnosed as itself; the pages about them are up to date."""

import re

import pytest

from launch.__main__ import main
from launch.diagnose import causes, pages


@pytest.mark.parametrize("number", [3, 4, 7])
def test_what_google_refuses(number, capsys, monkeypatch):
    monkeypatch.setattr("launch.diagnose.demo._preflight", lambda demo: None)  # test_preflight.py tests it
    assert main(["demo", str(number)]) == 0
    said = capsys.readouterr().out
    assert f"; {number}, {causes.SEVEN[number]})" in said


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 5, 6])
def test_what_the_trainer_refuses(number, capsys):
    assert main(["demo", str(number)]) == 0
    said = capsys.readouterr().out
    assert f"; {number}, {causes.SEVEN[number]})" in said and "Preflight" in said


def test_there_are_seven(capsys):
    assert main(["demo", "8"]) == 2
    assert "Expected one of the seven: 1 packages, 2 strategy" in capsys.readouterr().err


def test_the_page_is_made_from_the_causes():
    assert pages.PAGE.read_text(encoding="utf-8") == pages.page(), "run `make troubleshooting`"


def test_each_cause_of_the_seven_is_named_on_their_page():
    said = (pages.ROOT / "docs" / "seven-failures.md").read_text(encoding="utf-8")
    parts = re.split(r"^## \d\. ", said, flags=re.MULTILINE)[1:]
    for number, part in enumerate(parts, 1):
        named = re.search(r"^\* \*\*Diagnose\*\*:(.*?)^\* ", part, re.MULTILINE | re.DOTALL)[1]
        expected = {cause.id for cause in causes.load()[0] if cause.seven == number}
        assert set(re.findall(r"`([a-z0-9_]+)`", named)) == expected


def test_the_commands_in_the_advice_exist():
    targets = set(re.findall(r"^([a-z-]+):", (pages.ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    text = causes.FILE.read_text(encoding="utf-8")
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets
