"""`--preempt=worker:1@20s`, `--preempt=chief@500steps`: which replica is taken away, and when."""

import argparse
import re
from collections.abc import Iterable
from dataclasses import dataclass

from launch.local.plan import PlanError, Replica

_SECONDS = {"s": 1.0, "m": 60.0}
_PROGRESS = re.compile(r"step (\d+)/\d+\b")


@dataclass(frozen=True)
class Preemption:
    """Take `name` away `after_s` seconds after the job's first start, or when the chief's progress reaches `step`."""

    name: str
    after_s: float | None = None
    step: int | None = None


def preemption(text: str) -> Preemption:
    """Read REPLICA@WHEN. Raises argparse.ArgumentTypeError, which argparse shows as a sentence."""
    match = re.fullmatch(
        r"(chief|(?:worker|ps|reducer|evaluator):\d+)(?::0)?@(?:(\d+(?:\.\d+)?)([sm])|(\d+)steps)", text
    )
    if not match:
        raise argparse.ArgumentTypeError(
            f"{text!r} came; a replica and a time or a step were expected: worker:1@20s, chief@2m or chief@500steps"
        )
    name, number, unit, step = match.groups()
    return Preemption(name, step=int(step)) if step else Preemption(name, after_s=float(number) * _SECONDS[unit])


def progress(line: str) -> int | None:
    """The step of a progress line of the trainer's; None for any other line."""
    match = _PROGRESS.match(line)
    return int(match[1]) if match else None


def check(wanted: Iterable[Preemption], replicas: Iterable[Replica]) -> None:
    """Raises PlanError where a preemption names a replica that the job doesn't have."""
    names = [replica.name for replica in replicas]
    for one in wanted:
        if one.name not in names:
            raise PlanError(f"--preempt={one.name}: this job has no such replica, only {', '.join(names)}")
