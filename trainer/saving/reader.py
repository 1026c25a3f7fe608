"""Reading checkpoints back: which one is whole, and whether it is of this job."""

import json
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from trainer.saving import folders, storage

VALUE = ".ATTRIBUTES/VARIABLE_VALUE"
# errors of a checkpoint that is damaged; any other is the storage's, and says nothing about the checkpoint
# (TensorFlow's reader gives IndexError for a file cut short, ValueError and KeyError come of garbled content)
DAMAGED = (
    tf.errors.DataLossError,
    tf.errors.NotFoundError,
    tf.errors.OutOfRangeError,
    tf.errors.InvalidArgumentError,
    IndexError,
    ValueError,
    KeyError,
)


class CheckpointError(Exception):
    """A checkpoint that can't be used; str() says which and what differs."""


class Found(NamedTuple):
    """A checkpoint that was read whole."""

    step: int
    described: dict[str, Any]  # what checkpoint.py wrote as JSON
    values: dict[str, np.ndarray]  # of the variables, by name
    rows: list[np.ndarray]  # each replica's share of every metric, [replicas, ...]
    arrays: list[bytes]  # of the callbacks


class Reader:
    """Reads the checkpoints of one job in `directory`, which may be gs://.

    Args:
        flags: what must be the same for a checkpoint to be of this job.
        shapes: of every variable, by name; neither more nor fewer are expected.
        metrics: how many variables the metrics have.
    """

    def __init__(self, directory: str, flags: dict[str, Any], shapes: dict[str, list[int]], metrics: int):
        self.directory, self.flags, self.shapes, self.metrics = directory, flags, shapes, metrics

    def steps(self) -> list[int]:
        """The steps of the checkpoints that have an index, oldest first."""
        return folders.steps(self.directory, ".index")

    def newest(self, warn: Callable[[str], None]) -> Found | None:
        """The newest that is whole; those before it are named. Raises CheckpointError where it is another job's."""
        indexed = set(self.steps())
        for step in sorted(indexed | set(folders.steps(self.directory, ".data-00000-of-00001")), reverse=True):
            path = f"{self.directory}/ckpt-{step}"
            if step not in indexed:
                warn(f"{path} is not whole: its index is missing; the one before is taken")
                continue
            try:
                return storage.with_retries(lambda path=path: self._whole(path), f"read {path}", DAMAGED)
            except DAMAGED as error:
                warn(f"{path} can't be read ({_brief(error)}); the one before is taken")
        return None

    def of_step(self, step: int) -> Found:
        """The checkpoint that the chief chose; a slow storage may show it to this worker a little later."""
        path, until = f"{self.directory}/ckpt-{step}", time.monotonic() + 60
        while True:
            try:
                return storage.with_retries(lambda: self._whole(path), f"read {path}", DAMAGED)
            except DAMAGED as error:
                if time.monotonic() > until:
                    raise CheckpointError(
                        f"the chief resumes from {path}, which this worker can't read ({_brief(error)}): "
                        "--checkpoint_dir must be a folder that all workers see, such as one on gs://"
                    ) from error
                time.sleep(1)

    def _whole(self, path: str) -> Found:
        """The checkpoint at `path`; an error of DAMAGED where it isn't whole."""
        try:
            return self._read(path)
        except tf.errors.OpError as error:
            if "Checksum does not match" in str(error):  # the reader gives it no class of its own
                raise tf.errors.DataLossError(None, None, str(error)) from error
            raise

    def _read(self, path: str) -> Found:
        reader = tf.train.load_checkpoint(path)
        described = json.loads(reader.get_tensor(f"host/{VALUE}"))
        self._check(path, described)
        reader.get_tensor("_CHECKPOINTABLE_OBJECT_GRAPH")  # not needed, but a file cut short is not trusted
        values = {name: reader.get_tensor(f"state/{index}/{VALUE}") for index, name in enumerate(described["shapes"])}
        rows = [reader.get_tensor(f"metrics/{index}/{VALUE}") for index in range(self.metrics)]
        return Found(described["step"], described, values, rows, list(reader.get_tensor(f"arrays/{VALUE}")))

    def _check(self, path: str, described: dict[str, Any]) -> None:
        theirs, mine = described["shapes"], self.shapes
        differs = differences(described["flags"], self.flags)
        differs += [
            f"{name.split('/', 2)[-1]} was {theirs.get(name, 'absent')}, is {mine.get(name, 'absent')}"
            for name in sorted(theirs.keys() | mine.keys())
            if theirs.get(name) != mine.get(name)
        ]
        if differs:
            more = f" and {len(differs) - 3} more" if len(differs) > 3 else ""
            raise CheckpointError(
                f"{path} is of another job ({'; '.join(differs[:3])}{more}): put that back, "
                "give another --job_dir, or --fresh to start over"
            )

    def belongs_to_this_cloud_job(self) -> bool:
        """Whether the newest checkpoint was written by this very job before the platform restarted it."""
        job = os.environ.get("CLOUD_ML_JOB_ID")
        for step in reversed(self.steps() if job else []):
            try:
                reader = tf.train.load_checkpoint(f"{self.directory}/ckpt-{step}")
                return json.loads(reader.get_tensor(f"host/{VALUE}")).get("job") == job
            except DAMAGED:
                continue
        return False


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What was one thing and is another, in words."""
    both = [name for name in now if name in before and before[name] != now[name]]
    return [f"{name} was {before[name]}, is {now[name]}" for name in both]


def _brief(error: Exception) -> str:
    return (getattr(error, "message", None) or str(error)).split("\n")[0][:160]
