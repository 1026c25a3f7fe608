"""Strategy against API: do the file's shape and the trainer's flags fit, and was this code rehearsed here?"""

import pathlib
from collections.abc import Iterator

from launch import rehearsed as rehearsals
from launch.checks import Check
from launch.preflight.flags import of_job
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.project import ROOT


def shape(job: Job) -> Iterator[Check]:
    """--strategy against the pools: what it would run as, or why it can't."""
    flags = of_job(job)
    asked = flags.text("strategy") or "auto"
    fits = shapes(job)
    machines = sum(pool.replicas for pool in job.trainers)
    each = max([pool.devices for pool in job.trainers] or [0])
    what = f"{machines} machine{'s' * (machines != 1)}"
    what += f" with {each} device{'s' * (each != 1)} each" if each else " without accelerators"
    if any(pool.role == "ps" for pool in job.pools):
        what += " and parameter servers"
    if asked == "auto" or asked in fits:
        yield Check("strategy", "ok", f"--strategy={asked} for {what}")
    else:
        fix = f"--strategy={fits[0]} fits, and auto finds it by itself"
        command = f"make local CONFIG={pathlib.Path(job.file.file).stem} ARGS=--strategy={fits[0]}"
        yield Check("strategy", "failure", f"--strategy={asked} doesn't fit {what}", fix, command)


def shapes(job: Job) -> list[str]:
    """The strategies that the pools allow, the best first."""
    roles = {pool.role for pool in job.pools}
    workers = sum(pool.replicas for pool in job.trainers)
    if any(pool.architecture == "tpu" for pool in job.trainers):
        return ["tpu"]
    if "ps" in roles:
        return ["parameter_server"]
    if workers > 1:
        return ["multi_worker"]
    if max([pool.devices for pool in job.trainers] or [0]) > 1:
        return ["mirrored", "central_storage", "multi_worker", "one_device"]
    return ["one_device", "mirrored", "multi_worker", "central_storage"]


def rehearsed(job: Job, root: pathlib.Path = ROOT) -> Iterator[Check]:
    """Whether `launch local` of this file has succeeded on this commit."""
    stem = pathlib.Path(job.file.file).stem
    command = f"make local CONFIG={stem}"
    fix = "rehearse it here: minutes now instead of a failed start in the cloud"
    commit, dirty = rehearsals.state(root)
    last = rehearsals.records(root).get(pathlib.Path(job.file.file).name)
    if not last:
        yield Check("rehearsal", "warning", f"{stem} was never rehearsed on this machine", fix, command)
    elif last.get("commit") != commit:
        found = f"{stem} was last rehearsed on commit {str(last.get('commit'))[:8]}, this is {commit[:8] or 'none'}"
        yield Check("rehearsal", "warning", found, fix, command)
    elif dirty or last.get("dirty"):
        found = f"{stem} was rehearsed on {commit[:8]}, with uncommitted changes then or since"
        yield Check("rehearsal", "warning", found, "commit, and rehearse that", command)
    else:
        yield Check("rehearsal", "ok", f"rehearsed on this commit at {last.get('at', 'an unknown time')}")


def valid(job: Job) -> Iterator[Check]:
    """`launch validate` of the file: the API's types, machines, scheduling and the trainer's flags."""
    from launch.validate import findings

    # read once more: validate adds its findings to the document, which other checks read meanwhile
    found = findings([job.again()])
    if not found:
        yield Check("job file", "ok", "the file fits the API, its machines and the trainer's flags")
        return
    first = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    said = f"line {first.mark.line}: {first.came}, where {first.expected} is expected{more}"
    yield Check("job file", "failure", said, first.fix, f"python -m launch validate {job.file.file}")


PROBES = (
    Probe("strategy", "job file", valid),
    Probe("strategy", "strategy", shape),
    Probe("strategy", "rehearsal", rehearsed),
)
