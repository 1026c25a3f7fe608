"""`--preempt=worker:1@20s`: which replica is taken away, and when."""

import argparse
import re
from collections.abc import Iterable
from dataclasses import dataclass

from launch.local.plan import PlanError, Replica

_UNITS = {"s": 1.0, "m": 60.0}


@dataclass(frozen=True)
class Preemption:
    """Take `name` away `after_s` seconds after the job's first start."""

    name: str
    after_s: float


def preemption(text: str) -> Preemption:
    """Read REPLICA@TIME. Raises argparse.ArgumentTypeError, which argparse shows as a sentence."""
    match = re.fullmatch(r"(chief|(?:worker|ps|reducer|evaluator):\d+)(?::0)?@(\d+(?:\.\d+)?)([sm])", text)
    if not match:
        raise argparse.ArgumentTypeError(
            f"{text!r} came; a replica and a time were expected, such as worker:1@20s or chief@2m"
        )
    return Preemption(match[1], float(match[2]) * _UNITS[match[3]])


def check(wanted: Iterable[Preemption], replicas: Iterable[Replica]) -> None:
    """Raises PlanError where a preemption names a replica that the job doesn't have."""
    names = [replica.name for replica in replicas]
    for one in wanted:
        if one.name not in names:
            raise PlanError(f"--preempt={one.name}: this job has no such replica, only {', '.join(names)}")
