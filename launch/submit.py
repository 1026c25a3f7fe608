"""`launch submit [FILE]`: fill in, validate, show what will run, look ahead, send."""

import argparse
import json
import os
from collections.abc import Mapping

from launch import project, remembered, spec, validate, vertex
from launch.errors import LaunchError
from launch.spec import api
from launch.vertex import preview, request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `submit`."""
    parser.add_argument("file", nargs="?", help="a job file; without one, that of the image built last")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a variable's value")
    parser.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="a label of the job")
    parser.add_argument("--web_access", action="store_true", help="allow a shell into the running job")
    parser.add_argument("--dry_run", action="store_true", help="print the exact request, send nothing")
    parser.add_argument("--no_preflight", action="store_true", help="don't look ahead for what would fail")
    parser.add_argument("--retry", action="store_true", help="wait out what passes: perimeter, rate limit, stockout")
    parser.add_argument("--retry_for", default="6h", metavar="TIME", help="how long at most, such as 90m [6h]")
    parser.add_argument("--watch", action="store_true", help="watch the job until its end")


def run(options: argparse.Namespace) -> int:
    """Submit a job file; 0 when it was sent (with --watch: when it succeeded), 1 with findings, 2 if unusable."""
    given = project.overrides(options.set)
    bound_s = _bound_s(options.retry_for)
    labels = _labels(options.label)
    file = options.file or default_file()
    if file == "-":
        raise LaunchError("- (stdin) came. Expected: a file: it is read more than once")
    variables = project.variables(file, given, ask_gcloud=True)
    job = spec.read(file, variables)
    found = validate.findings([job])
    if found:
        print(*found, sep="\n")
        print(f"{file} was not submitted: {len(found)} finding{'s' if len(found) > 1 else ''}")
        return 1
    lacking = {*job.missing, *(name for name in ("PROJECT", "REGION", "NAME") if not variables.get(name))}
    if lacking:
        raise LaunchError(f"{file} can't be submitted: {project.missing(lacking)}")
    _check_image(job, given, pushed=not options.dry_run)
    made = request.make(job, variables, labels=labels, web_access=options.web_access)
    if options.dry_run:
        print(made.address)
        print(json.dumps(made.body, indent=2, ensure_ascii=False))
        return 0
    preview.show(job, made)
    if not options.no_preflight and not _preflight(file, {**given, "JOB": variables["JOB"]}, options.retry):
        return 1
    if options.retry:
        from launch import retry

        sent = retry.submit(made, bound_s)
    else:
        sent = request.submit_once(made)
    remembered.write("job.json", {"name": sent.name})
    _say_sent(sent)
    if options.watch:
        from launch import watch

        return watch.follow(sent)
    return 0


def default_file() -> str:
    """The job file that fits the image built last. Raises LaunchError where none was."""
    built = remembered.last_image()
    if not built.get("architecture"):
        came = "no job file was named and no image was built here."
        raise LaunchError(f"{came} Expected: a file such as configs/cpu.yaml (make: CONFIG=cpu)")
    return os.path.relpath(project.ROOT / "configs" / f"{built['architecture']}.yaml")


def _labels(pairs: list[str]) -> dict[str, str]:
    labels = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if not api.label_fits(key, value):
            alphabet = "a-z, 0-9, _ and -, at most 63 each, KEY beginning with a letter"
            raise LaunchError(f"--label {pair} came. Expected: KEY=VALUE of {alphabet}")
        labels[key] = value
    return labels


def _check_image(job: spec.JobFile, given: Mapping[str, str], *, pushed: bool) -> None:
    """The image built last must be there to pull, and be for the hardware that the file asks for."""
    if "IMAGE" in given or project.settings().get("IMAGE") or "IMAGE" not in job.used:
        return
    built = remembered.last_image()
    needed = job.architecture
    if built.get("architecture") not in (needed, None):
        came = f"{job.file} needs the {needed} image, and the one built last is for {built['architecture']}."
        raise LaunchError(f"{came} Fix: make build-{needed} push, or --set IMAGE=...", exit_code=1)
    if pushed and built and not built.get("digest"):
        raise LaunchError(f"{built.get('image')} was built and not pushed. Fix: make push", exit_code=1)


def _bound_s(text: str) -> float:
    from launch.retry.waiting import seconds

    try:
        return seconds(text)
    except ValueError as error:
        raise LaunchError(f"--retry_for: {error}") from None


def _preflight(file: str, given: dict[str, str], wait: bool) -> bool:
    """The checks of `launch preflight`, told where they aren't fine; whether the job may go.

    With `wait` a perimeter that has just changed is waited for.
    """
    import time

    from launch.__main__ import VERBS

    if "preflight" not in VERBS:
        return True
    from launch import preflight
    from launch.checks import exit_code

    began = time.monotonic()
    checks = preflight.look(file, given)
    preflight.show(checks, file, time.monotonic() - began, short=True)
    if wait:
        from launch import retry

        checks = retry.wait_for_perimeter(checks)
    if exit_code(checks):
        print("Not submitted. --no_preflight (make: ARGS=--no_preflight) submits all the same.")
        return False
    return True


def _say_sent(job: vertex.Job) -> None:
    print(f"submitted {job.name}")
    print(f"  console  {job.link}")
    print(f"  watch    python -m launch watch {job.name}")
    print(f"  cancel   python -m launch cancel {job.name}")
