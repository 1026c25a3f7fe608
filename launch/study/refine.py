"""`launch refine STUDY`: the next tuning job, from what a finished one found, here or on Vertex AI."""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from launch.arguments import whole
from launch.console import console, table
from launch.errors import LaunchError
from launch.study import finished, narrow, space
from launch.study.narrow import Change, Trial
from launch.study.space import Parameter, Value

HEADER = """\
# What it runs: the search of {source}, refined around its best trial ({number}: {metric} {score:.5g}).
# What it needs: what {source} needs.
# What to expect: {expect}
#
#   python -m launch tune {file}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `launch refine`."""
    parser.add_argument(
        "study",
        metavar="STUDY",
        help="the folder of a `launch tune`, or the JSON of `gcloud ai hp-tuning-jobs describe ID --format=json`",
    )
    parser.add_argument("--output", type=Path, help="the file to write; default NAME_2.yaml beside the study")
    parser.add_argument("--grid", action="store_true", help="write a grid around the best instead of ranges")
    parser.add_argument(
        "--points", type=whole(1), default=3, metavar="N", help="values of each parameter of a grid; default 3"
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def run(options: argparse.Namespace) -> int:
    """Write the next file; 0, or 2 where the study can't be used."""
    job, place = finished.read(Path(options.study))
    trials = finished.ended(job)
    parameters = space.read(job["studySpec"])
    refined, changes = narrow.refine(
        parameters, trials, _trainer_accepts if finished.runs_trainer(job) else lambda *_: True
    )
    template = finished.template(job)
    count = None
    if options.grid or job["studySpec"].get("algorithm") == "GRID_SEARCH":
        refined, count = narrow.gridded(refined, options.points)
        changes = [
            Change(one.name, one.before, narrow.describe(grid), f"{one.why}, as a grid")
            for one, grid in zip(changes, space.everyone(refined), strict=True)
        ]
    body = _next(template, refined, count)
    file = options.output or _name(place, job)
    if file.exists() and not options.force:
        raise LaunchError(f"{file} is there already; --force replaces it, --output=... writes another")
    try:
        file.write_text(_header(job, trials[0], file, count) + _dump(body), encoding="utf-8")
    except OSError as error:
        raise LaunchError(f"{file} can't be written ({error.strerror}); --output=... takes another file") from None
    rows = [(one.name, one.before, one.after, one.why) for one in changes]
    console().print(table(["parameter", "before", "next", "why"], rows))
    console().print(f"{file}: {body['maxTrialCount']} trials. Run it: python -m launch tune {file}", markup=False)
    return 0


def _trainer_accepts(name: str, value: Value) -> bool:
    """Whether the trainer's own check takes this flag (asked in a process of its own, without TensorFlow)."""
    request = json.dumps([{"args": [f"--{name}={value}"], "replicas": None}])
    command = [sys.executable, "-m", "trainer.settings", "--check"]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LaunchError(f"the trainer could not be asked about --{name}: {done.stderr.strip()[-300:]}")
    return not any(finding.get("flag") == f"--{name}" for finding in json.loads(done.stdout)[0])


def _next(template: Mapping, parameters: Sequence[Parameter], count: int | None) -> dict:
    """The next file's content; `count` trials of a grid, else as many as before."""
    study = {**template["studySpec"], "parameters": [space.as_spec(one) for one in parameters]}
    if count is None:
        return {**template, "studySpec": study}
    study = {"algorithm": "GRID_SEARCH", **{key: value for key, value in study.items() if key != "algorithm"}}
    parallel = min(int(template.get("parallelTrialCount") or 1), count)
    return {**template, "maxTrialCount": count, "parallelTrialCount": parallel, "studySpec": study}


def _name(place: Path, job: Mapping) -> Path:
    """tune.yaml -> tune_2.yaml -> tune_3.yaml, beside the study."""
    stem = Path(str(job.get("source") or place)).stem
    head, _, number = stem.rpartition("_")
    following = f"{head}_{int(number) + 1}" if head and number.isdigit() else f"{stem}_2"
    return place.with_name(f"{following}.yaml")


def _header(job: Mapping, best: Trial, file: Path, count: int | None) -> str:
    source = (
        Path(str(job["source"])).name if job.get("source") else str(job.get("displayName") or "a study on Vertex AI")
    )
    expect = (
        f"a grid: {count} trials, each combination once."
        if count
        else "ranges around what was best, wider at the edges."
    )
    return HEADER.format(
        source=source,
        number=best.number,
        metric=finished.metric(job)["metricId"],
        score=best.score,
        expect=expect,
        file=file,
    )


class _Dumper(yaml.SafeDumper):
    """Quotes what holds a ${VARIABLE}: filled in, it may be empty, which without quotes would be null."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if "${" in text else None)


_Dumper.add_representer(str, _text)


def _dump(body: Mapping) -> str:
    return yaml.dump(dict(body), Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)
