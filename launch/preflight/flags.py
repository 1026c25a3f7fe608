"""What the trainer's flags will be: the file's arguments over the trainer's own defaults."""

import dataclasses
import functools
import json
import subprocess
import sys

from launch.preflight.job import Job
from launch.project import ROOT


@dataclasses.dataclass(frozen=True)
class Flags:
    """Flag name -> text of the value, for those of the file; defaults for the rest."""

    given: dict[str, str]
    defaults: dict[str, object]

    def number(self, name: str) -> float:
        """The flag as a number; the default where what came is none (`launch validate` tells that)."""
        try:
            return float(self.given[name])
        except (KeyError, ValueError):
            return float(self.defaults.get(name) or 0)

    def text(self, name: str) -> str:
        """The flag as text, "" where it is unknown."""
        return str(self.given.get(name, self.defaults.get(name, "")))


def of_job(job: Job) -> Flags:
    """The flags of the chief."""
    return Flags(job.trainers[0].flags if job.trainers else {}, defaults())


@functools.cache
def defaults() -> dict[str, object]:
    """Flag name -> default. Asked of the trainer in a process of its own, which needs no TensorFlow.

    Raises ValueError with the trainer's own words where model.py keeps it from answering.
    """
    command = [sys.executable, "-m", "trainer.settings", "--schema"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=ROOT)
    if done.returncode:
        raise ValueError((done.stderr.strip().splitlines() or ["the trainer gave no list of its flags"])[-1])
    return {flag["name"].removeprefix("--"): flag.get("default") for flag in json.loads(done.stdout)["flags"]}
