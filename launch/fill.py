"""`launch fill FILE`: the job file with its variables filled in, as gcloud's --config takes it.

For a machine that has gcloud but not this project's packages, such as a step of Cloud Build. `launch submit` does
the same on the way.
"""

import argparse

from launch import project, spec
from launch.errors import LaunchError
from launch.spec import shape

TRAINER_ARGS = True  # what comes after -- is added to every container's arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `launch fill`."""
    parser.add_argument("file", metavar="FILE", help="a job file such as configs/cpu.yaml")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable's value")


def run(options: argparse.Namespace) -> int:
    """Print the file as YAML; 2 where a variable has no value."""
    print(filled(options.file, project.overrides(options.set), options.trainer_args), end="")
    return 0


def filled(file: str, given: dict[str, str], trainer_args: list[str]) -> str:
    """The file's YAML with every variable in it; fields that were left empty are left out."""
    import yaml

    job = spec.read(file, project.variables(file, given))
    shape.check(job)
    if job.document.findings:
        raise LaunchError(f"fill: {file} has findings; see them with `python -m launch validate {file}`")
    if job.missing:
        raise LaunchError(f"fill: {project.missing(job.missing)}")
    for pool in job.pools:
        for code in (pool.container, pool.package):
            if trainer_args and code:
                code["args"] = [*(code.get("args") or []), *trainer_args]
    for key in [key for key, value in job.job.items() if value == ""]:
        del job.job[key]
    return yaml.safe_dump(job.data, sort_keys=False)
