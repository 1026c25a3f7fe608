"""`launch demo N`: provokes one of the seven failures on this machine, and shows what this repository says about it.

Each has three parts: how it is prevented, what preflight says of a job file that would run into it, and the failure
itself, with the real trainer or Google's own client, and what diagnose makes of its log. Nothing leaves the machine:
where Google's APIs would answer, a server on loopback gives the answer that they give.
"""

import argparse
import contextlib
import io
import json
import tempfile
from pathlib import Path

from launch import console
from launch.diagnose.causes import SEVEN
from launch.diagnose.failures import FAILURES, Failure
from launch.errors import LaunchError

SHOWN = 14  # lines of a log


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's arguments."""
    parser.add_argument("number", type=int, metavar="N", help="which of the seven, 1 to 7")


def run(options: argparse.Namespace) -> int:
    """Show one failure from end to end; 0 where diagnose says that it is this one, else 1."""
    from launch.diagnose import entry, report, show

    number = options.number
    if number not in FAILURES:
        which = ", ".join(f"{key} {name}" for key, name in SEVEN.items())
        raise LaunchError(f"demo {number} came. Expected one of the seven: {which}")
    failure, out = FAILURES[number], console.console()
    out.print(f"[bold]Failure {number}: {SEVEN[number]}[/bold]\n\n[bold]Prevented[/bold]")
    out.print(failure.prevented, markup=False)
    out.print("\n[bold]Preflight[/bold]")
    _preflight(failure)
    out.print("\n[bold]Provoked[/bold]")
    command, log = failure.provoke()
    out.print(f"$ {command}", style="dim", markup=False)
    for line in log.splitlines()[-SHOWN:]:
        out.print(f"  {entry.plain(line.encode())}", markup=False)
    out.print("\n[bold]Diagnosed[/bold]")
    made = report.read(io.BytesIO(log.encode()))
    show.show(made, "this log", {})
    return 0 if made.findings and made.findings[0].cause.seven == number else 1


def _preflight(failure: Failure) -> None:
    """What preflight says about its subject, of a job file with the flags of the demonstration."""
    import yaml

    from launch.__main__ import main

    spec = yaml.safe_load(Path("configs", f"{failure.config}.yaml").read_text(encoding="utf-8"))
    for key in ("serviceAccount", "tensorboard"):  # the demonstration has none
        spec.pop(key, None)
    container = spec["workerPoolSpecs"][0]["containerSpec"]
    container["args"] = [*container.get("args", []), *failure.args]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{failure.config}.yaml")
        file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            main(["preflight", "--json", "--offline", "--timeout_s=30", str(file)])
    checks = [check for check in json.loads(said.getvalue())["checks"] if check["subject"] == failure.subject]
    out = console.console()
    for check in checks:
        out.print(f"  {check['status']}: {check['found']}", markup=False)
        if check["status"] != "ok" and check["fix"]:
            out.print(f"    {check['fix']}", markup=False)
    if not checks:
        out.print(f"  It asks Google about {failure.subject}, so it needs your project: make preflight CONFIG=gpu")
