"""`launch preflight FILE`: what would fail, said before it costs anything.

One module a subject; each lists its probes. They run at once, the offline ones without waiting for gcloud.
"""

import argparse
import collections
import json
import time
import types

from launch.checks import Check, exit_code
from launch.errors import LaunchError

TIMEOUT_S = 10.0
WORST_FIRST = ("failure", "warning", "unknown", "ok")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of the verb."""
    parser.add_argument("file", help="a job file, such as configs/gpu.yaml")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    parser.add_argument("--short", action="store_true", help="print only what is not fine")
    parser.add_argument("--offline", action="store_true", help="ask Google nothing")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable of the file")
    parser.add_argument(
        "--timeout_s", type=float, default=TIMEOUT_S, help=f"seconds for all of it together [{TIMEOUT_S:g}]"
    )


def run(options: argparse.Namespace) -> int:
    """Print the checks; 1 if any of them failed."""
    from launch import project

    if not 1 <= options.timeout_s <= 600:
        raise LaunchError(f"--timeout_s={options.timeout_s:g} came. Expected: 1 to 600 seconds")
    began = time.monotonic()
    given = project.overrides(options.set)
    checks = look(options.file, given, offline=options.offline, timeout_s=options.timeout_s)
    took_s = time.monotonic() - began
    if options.json:
        print(json.dumps({"file": options.file, "checks": [c.as_dict() for c in checks], "took_s": round(took_s, 1)}))
    else:
        show(checks, options.file, took_s, short=options.short)
    return exit_code(checks)


def rooms() -> tuple[types.ModuleType, ...]:
    """The modules with PROBES, one a subject; memory first, as TensorFlow takes longest to start."""
    from launch.preflight import (
        buckets,
        capacity,
        job_accounts,
        memory,
        numerics,
        packages,
        permissions,
        reservations,
        security,
        strategy,
    )

    return memory, packages, strategy, numerics, permissions, job_accounts, buckets, security, capacity, reservations


def look(
    file: str, given: dict[str, str] | None = None, *, offline: bool = False, timeout_s: float = TIMEOUT_S
) -> list[Check]:
    """The checks of a job file, in at most `timeout_s` and a little. Raises UnreadableError for no job file."""
    from launch import project
    from launch.preflight.account import Account, sign_in
    from launch.preflight.job import Job
    from launch.preflight.probe import run as run_probes

    def read(account: Account | None) -> Job:
        known = {"PROJECT": account.project, "REGION": account.region} if account else {}
        mine = {**{name: value for name, value in known.items() if value}, **project.settings(), **(given or {})}
        return Job.read(file, project.variables(file, mine))

    probes = [probe for room in rooms() for probe in room.PROBES]
    return run_probes(probes, read, None if offline else sign_in, timeout_s)


def perimeter_change(project: str, timeout_s: float = 60.0) -> Check | None:
    """What is known of the last change of a perimeter around the project; None where there is none or none is seen."""
    from launch.preflight import perimeters
    from launch.preflight.account import sign_in
    from launch.preflight.cloud import Cloud
    from launch.preflight.request import Trouble

    try:
        return perimeters.last_change(project, Cloud(sign_in(timeout_s), time.monotonic() + timeout_s))
    except Trouble:
        return None


def show(checks: list[Check], file: str, took_s: float, *, short: bool = False) -> None:
    """A table of what was found, then what to do about it, worst first."""
    from launch.console import console, status_text, table

    shown = [check for check in checks if not short or check.status != "ok"]
    if shown:
        rows = [(check.subject, check.name, status_text(check.status), check.found) for check in shown]
        console().print(table(("subject", "check", "status", "found"), rows))
    for check in sorted(shown, key=lambda one: WORST_FIRST.index(one.status)):
        if check.status != "ok" and (check.fix or check.command):
            console().print(status_text(check.status), f"{check.name}: {check.fix}", markup=False)
            if check.command:
                console().print(f"    {check.command}", markup=False)
    counted = collections.Counter(check.status for check in checks)
    told = ", ".join(f"{counted[status]} {status}" for status in reversed(WORST_FIRST) if counted[status])
    console().print(f"preflight {file}: {told} ({took_s:.1f} s)", markup=False)
