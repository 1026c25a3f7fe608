"""What one replica takes, as trainer.estimate traces it, in a process of its own: the launcher imports no TensorFlow.

An estimate is kept under .cache/estimate/ by the content of what it depends on.
"""

import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys

from launch.preflight.job import Job
from launch.preflight.request import Trouble
from launch.project import ROOT

SOURCES = ("trainer/estimate.py", "trainer/model.py", "trainer/data.py")


@dataclasses.dataclass(frozen=True)
class Need:
    """What one replica takes: bytes for each size of its share of the batch, in rising order."""

    parameters: int
    gradient_bytes: int
    bytes_by_batch: dict[int, int]
    unsized_tensors: int

    @classmethod
    def of(cls, figures: dict) -> "Need":
        """From trainer.estimate's JSON, whose keys are text."""
        table = {int(n): int(size) for n, size in figures["bytes_by_batch"].items()}
        ordered = dict(sorted(table.items()))
        return cls(int(figures["parameters"]), int(figures["gradient_bytes"]), ordered, int(figures["unsized_tensors"]))

    def bytes(self, examples: float, accumulates: bool) -> float:
        """The whole, for a micro-batch; sums of gradients are kept where several make an update."""
        sizes = list(self.bytes_by_batch)
        above = next((i for i, n in enumerate(sizes) if n >= examples and i), len(sizes) - 1)
        low, high = sizes[above - 1], sizes[above]
        at_low, at_high = self.bytes_by_batch[low], self.bytes_by_batch[high]
        return at_low + (at_high - at_low) * (examples - low) / (high - low) + self.gradient_bytes * accumulates


def estimate(job: Job, root: pathlib.Path = ROOT) -> Need:
    """trainer.estimate's figures for the chief's flags. Raises Trouble("other") with its sentence."""
    args = job.trainers[0].args if job.trainers else []
    digest = hashlib.sha256("\0".join(args).encode())
    example = os.environ.get("TRAINYARD_EXAMPLE")  # another folder's model.py and data.py
    for source in SOURCES:
        file = root / source
        if example and (root / example / file.name).is_file():
            file = root / example / file.name
        digest.update(file.read_bytes() if file.is_file() else b"")
    kept = root / ".cache" / "estimate" / f"{digest.hexdigest()[:24]}.json"
    try:
        figures = json.loads(kept.read_text())
    except (OSError, ValueError):
        figures = _estimated(args, root, job.remaining_s())
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(figures))
        part.replace(kept)
    return Need.of(figures)


def _estimated(args: list[str], root: pathlib.Path, timeout_s: float) -> dict:
    command = [sys.executable, "-m", "trainer.estimate", *args]
    quiet = {"cwd": root, "capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
    try:
        done = subprocess.run(command, timeout=timeout_s, **quiet)
    except subprocess.TimeoutExpired:
        raise Trouble("late", f"TensorFlow took more than {timeout_s:.0f} s to start and trace the model") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() or ["no answer"]
        raise Trouble("other", f"the model can't be estimated: {said[-1]}")
    return json.loads(done.stdout)
