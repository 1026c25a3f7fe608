"""`launch validate FILE...`: everything wrong with job files, at once, without a network or credentials.

The API's own types come first (types.py); then what they can't know: machines and images (pools.py), restarts
and capacity (schedule.py), the study (study.py) and the trainer's flags (flags.py), which a subprocess checks
meanwhile.
"""

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence

from launch import project, spec
from launch.spec.document import MAX_FINDINGS, EnoughError, Finding, UnreadableError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `validate`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="job files, such as configs/gpu.yaml; - is stdin")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable's value")
    parser.add_argument("--json", action="store_true", help="findings as JSON on stdout")


def run(options: argparse.Namespace) -> int:
    """Print every finding; 0: none, 1: some, 2: a file that can't be read."""
    given = project.overrides(options.set)
    jobs, unreadable = [], []
    for file in options.files:
        try:
            jobs.append(spec.read(file, project.variables(file, given)))
        except UnreadableError as error:
            unreadable.append(str(error))
    found = findings(jobs)
    if options.json:
        print(json.dumps({"findings": [one.as_dict() for one in found], "unreadable": unreadable}, indent=2))
    else:
        for one in found:
            print(one)
        _summary(jobs, found)
    for message in unreadable:
        print(message, file=sys.stderr)
    return 2 if unreadable else int(bool(found))


def findings(jobs: Sequence[spec.JobFile]) -> list[Finding]:
    """All that is wrong with the files, by file and place; what reading them found is among it."""
    from launch.validate import flags

    if not jobs:
        return []
    asked = flags.ask(jobs)  # the trainer's answer takes as long as the rest: let it run beside it
    from launch.validate import pools, schedule, study, types

    for job in jobs:
        with contextlib.suppress(EnoughError):
            for rules in (types, pools, schedule, study):
                rules.check(job)
    asked.collect()
    return [one for job in jobs for one in _in_order(job)]


def _in_order(job: spec.JobFile) -> list[Finding]:
    found = sorted(set(job.document.findings), key=lambda one: one.mark)
    if len(job.document.findings) < MAX_FINDINGS:
        return found
    return [*found[:MAX_FINDINGS], Finding(job.file, found[-1].mark, "more findings than are told", "fewer at once")]


def _summary(jobs: Sequence[spec.JobFile], found: Sequence[Finding]) -> None:
    bad = {one.file for one in found}
    good = [job.file for job in jobs if job.file not in bad]
    if good:
        print(f"{len(good)} fine: {', '.join(good)}")
    if found:
        print(f"{len(found)} finding{'s' if len(found) > 1 else ''} in {', '.join(sorted(bad))}")
