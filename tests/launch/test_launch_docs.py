"""The pages on launching: their links lead somewhere, their findings are what validate prints."""

import pathlib
import re

import pytest

from launch import project, spec, validate
from tests.shipped import NAMES

DOCS = project.ROOT / "docs"
PAGES = ("launch.md", "hardware.md", "scheduling.md")

# page, config, [(old, new)]: the page shows what validate prints of the changed file, called `name`
SHOWN = [
    (
        "launch.md",
        "gpu",
        "mine",
        [
            ("replicaCount: 1", "replicaCuont: 1"),
            ("acceleratorCount: 1", "acceleratorCount: 2"),
            ("timeout: 3600s", "timeout: 1h"),
            ("--epochs=20", "--epohcs=20"),
        ],
    ),
    (
        "scheduling.md",
        "spot",
        "spot",
        [("baseOutputDirectory:\n  outputUriPrefix: gs://${BUCKET}/${NAME}/${JOB}\n", "")],
    ),
    ("hardware.md", "gpu", "mine", [("NVIDIA_L4", "NVIDIA_TESLA_T4")]),
]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", (DOCS / page).read_text()):
        assert (DOCS / target).exists(), target


def test_every_config_has_its_place():
    text = "".join((DOCS / page).read_text() for page in PAGES)
    configs = set(NAMES)
    linked = set(re.findall(r"configs/(\w+)\.yaml|CONFIG=(\w+)", text))
    assert configs - {"tune", "tune_grid"} <= {name for pair in linked for name in pair}


@pytest.mark.parametrize(("page", "config", "name", "changes"), SHOWN, ids=[one[0] for one in SHOWN])
def test_the_findings_shown_are_what_validate_prints(page, config, name, changes, tmp_path, monkeypatch):
    text = (project.ROOT / f"configs/{config}.yaml").read_text()
    for old, new in changes:
        head, _, body = text.partition("workerPoolSpecs:")
        assert old in body, old
        text = head + "workerPoolSpecs:" + body.replace(old, new, 1)
    monkeypatch.chdir(tmp_path)
    pathlib.Path("configs").mkdir()
    pathlib.Path(f"configs/{name}.yaml").write_text(text)
    found = validate.findings([spec.read(f"configs/{name}.yaml", {})])
    shown = (DOCS / page).read_text()
    assert found
    for one in found:
        for line in str(one).splitlines():
            start = line.split("n1-highmem-4", 1)[0]  # a long list is cut short with dots
            assert start in shown, line
