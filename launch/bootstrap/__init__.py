"""`launch bootstrap`: what a project needs before its first job, made where it isn't there yet.

Run it as often as you like: every step looks first, and a second run changes nothing. It takes nothing away.
"""

import argparse
import shlex
import shutil
from collections.abc import Iterable

from launch import project
from launch.bootstrap import plan, settings
from launch.bootstrap.roles import table
from launch.bootstrap.state import Cloud, NoSuchAccountError
from launch.errors import LaunchError

NUMBER = "${PROJECT_NUMBER}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `launch bootstrap`."""
    parser.add_argument("--dry_run", action="store_true", help="print every command, as a script; ask nothing")
    parser.add_argument(
        "--github",
        default="",
        metavar="REPOSITORY",
        help="the connected repository whose merges to main are built: OWNER/NAME, or projects/P/locations/R/"
        "connections/C/repositories/NAME",
    )
    parser.add_argument("--smoke", action="store_true", help="let the trigger submit a smoke job after each push")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of project.env")
    parser.add_argument("--roles", action="store_true", help="print the table of roles, each with its reason")


def run(options: argparse.Namespace) -> int:
    """Make what is missing; 0 when all is there, 1 where gcloud refuses, 2 for settings that can't be used."""
    if options.roles:
        print(table())
        return 0
    values = project.variables("bootstrap", project.overrides(options.set), ask_gcloud=not options.dry_run)
    names = settings.names(values, options.github, options.smoke)
    if options.dry_run:
        print(script(names))
        return 0
    gcloud = shutil.which("gcloud")
    if not gcloud:
        raise LaunchError(
            "bootstrap: gcloud is not on the PATH. Install it (https://cloud.google.com/sdk/docs/install), or see"
            " the commands with --dry_run"
        )
    made = apply(Cloud(names, gcloud), plan.steps(names))
    print(closing(names, made))
    return 0


def apply(cloud: Cloud, steps: Iterable[plan.Step]) -> int:
    """Take the steps that are wanting, say what became of each, and return how many changed something."""
    made = 0
    for step in steps:
        if step.there(cloud):
            print(f"there  {step.title}")
            continue
        try:
            cloud.change(step.command(cloud.number() if step.later else ""), patient=not step.later)
        except NoSuchAccountError:
            if not step.later:
                raise
            print(f"later  {step.title}\n       {step.later}")
            continue
        made += 1
        print(f"made   {step.title}", flush=True)
    return made


def script(names: settings.Names) -> str:
    """Every command as a shell script, each under its reason; the shell finds the project's number."""
    lines = [f"PROJECT_NUMBER=$(gcloud projects describe {names.project} --format='value(projectNumber)')\n"]
    for step in plan.steps(names):
        words = ["gcloud", *step.command(NUMBER), f"--project={names.project}", "--quiet"]
        lines.append(f"# {step.title}: {step.reason}\n{' '.join(map(_quoted, words))}\n")
    if not names.github:
        lines.append("# No trigger: --github=OWNER/NAME names the repository whose merges to main are built.")
    return "\n".join(lines)


def _quoted(word: str) -> str:
    return f'"{word}"' if NUMBER in word else shlex.quote(word)


def closing(names: settings.Names, made: int) -> str:
    """The last lines: what changed, and what is still the person's to do."""
    lines = [f"{made} made; everything else was there." if made else "Nothing changed: all of it was there."]
    lines.append(f"In project.env: SERVICE_ACCOUNT={names.training}")
    if not names.github:
        lines.append(
            "No trigger on main yet: connect the repository (docs/ci.md), then make bootstrap ARGS=--github=OWNER/NAME"
        )
    return "\n".join(lines)
