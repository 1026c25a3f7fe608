"""Save and resume: all that decides what comes next, in one atomic checkpoint.

The restart policy, in order:
1. A finished job says so and changes nothing; with more --epochs it goes on.
2. --fresh sets what is there aside and starts over; a restart of the same cloud job doesn't, it resumes.
3. The newest checkpoint that can be read whole is resumed; an unreadable one is named and passed over.
   The chief decides which, and all workers take that one.
4. A checkpoint of another model, data or other flags that matter stops the job with what differs.
5. Without a checkpoint, training starts from the seed.

Values are copied to the host first and written by a thread, so that training waits for the copy alone.
Only the chief writes. The index of a checkpoint is written last: without it there is no checkpoint.
"""

import concurrent.futures
import json
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from trainer.loop import Loop
from trainer.saving import folders, storage
from trainer.saving.state import State

OTHER_JOB, NOTHING = -2, -1
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
    described: dict[str, Any]
    values: dict[str, np.ndarray]
    rows: list[np.ndarray]


class Checkpoints:
    """The checkpoints of one job in `directory`, which may be gs://.

    Args:
        loop: what is saved and restored.
        flags: what must be the same for a resumed job to be the same job.
        others: flags that may change; those that did are named in `changed` after a restore.
        chief: whether this process writes.
        keep: how many of the newest stay.
        before_write: called by the writing thread before each checkpoint (to have the curves written first).
    """

    def __init__(
        self,
        directory: str,
        loop: Loop,
        flags: dict[str, Any],
        *,
        chief: bool,
        keep: int = 3,
        others: dict[str, Any] | None = None,
        before_write: Callable[[], None] = lambda: None,
    ):
        self.directory, self.loop, self.flags, self.chief, self.keep = directory, loop, flags, chief, keep
        self.others, self.before_write = others or {}, before_write
        self.state = State(loop)
        self.changed: list[str] = []
        self._holders: dict[str, tf.Variable] = {}
        self._writer = concurrent.futures.ThreadPoolExecutor(1)
        self._pending: concurrent.futures.Future | None = None
        self.saved_step = -1
        self.blocked_s = self.write_s = 0.0  # all that training has waited; what the last write took

    def _prepare(self, rows: list[tf.Tensor]) -> None:
        """Make the host's copies of the variables, once."""
        with tf.device("CPU:0"):
            self._holders = {name: _holder(self.state.local(name)) for name in self.state.variables}
            self._row_holders = [_holder(row) for row in rows]
            self._host = _holder(tf.constant(""))
        holders = list(self._holders.values())
        self._checkpoint = tf.train.Checkpoint(state=holders, metrics=self._row_holders, host=self._host)

    def save(self, host: dict[str, Any], *, best_step: int = -1) -> None:
        """Take a copy of everything and have it written. Every worker calls it; the chief writes.

        Raises storage.StorageError where the write before this one failed.
        """
        start = time.monotonic()
        self.wait()
        step = self.saved_step = self.loop.step
        rows = self.state.metric_rows()
        if self.chief:
            if not self._holders:
                self._prepare(rows)
            for name, holder in self._holders.items():
                holder.assign(self.state.local(name))
            for holder, row in zip(self._row_holders, rows, strict=True):
                holder.assign(row)
            described = {"step": step, "flags": self.flags, "others": self.others, "host": host}
            described["shapes"] = {name: list(v.shape) for name, v in self._holders.items()}
            described["job"] = os.environ.get("CLOUD_ML_JOB_ID", "")
            self._host.assign(json.dumps(described))
            self._pending = self._writer.submit(self._write, step, best_step)
        self.blocked_s += time.monotonic() - start

    def _write(self, step: int, best_step: int) -> None:
        """The writing thread's part: curves, checkpoint, then the removal of old ones."""
        start = time.monotonic()
        path = f"{self.directory}/ckpt-{step}"
        self.before_write()
        storage.with_retries(lambda: self._checkpoint.write(path), f"write the checkpoint {path}")
        self._prune(step, best_step)
        self.write_s = time.monotonic() - start

    def _prune(self, newest: int, best_step: int) -> None:
        """Keep the newest and the best. What is beyond `newest` is damaged, or from before a rewind."""
        steps = self.steps()
        stay = {*[step for step in steps if step <= newest][-self.keep :], best_step}
        for step in set(steps) - stay:
            # the index first: what is left without one is no checkpoint
            for path in [f"{self.directory}/ckpt-{step}.index", *self._data_files(step)]:
                folders.remove(path)

    def _data_files(self, step: int) -> list[str]:
        return tf.io.gfile.glob(f"{self.directory}/ckpt-{step}.data-*")

    def wait(self) -> None:
        """Until what was saved is written. Raises storage.StorageError where it could not be."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def steps(self) -> list[int]:
        """The steps of the checkpoints that have an index, oldest first."""
        return folders.steps(self.directory, ".index")

    def restore(self, warn: Callable[[str], None]) -> dict[str, Any] | None:
        """Resume from the newest checkpoint that is whole; its host state, or None where there is none.

        Every worker calls it. Raises CheckpointError where it belongs to another model, data or flags, and
        storage.StorageError where the folder can't be reached.
        """
        found, problem = None, None
        if self.chief:
            try:
                found = self._newest_whole(warn)
            except CheckpointError as error:
                problem = error
        chosen = OTHER_JOB if problem else found.step if found else NOTHING
        chosen = int(self.state.gather(chosen, self.loop.pipeline.share)[0])  # the chief's
        if problem or chosen == OTHER_JOB:
            raise problem or CheckpointError("the chief found a checkpoint that can't be used; its log says why")
        if chosen == NOTHING:
            return None
        found = found or self._read_for_chief(chosen)
        self.changed = _differences(found.described.get("others", {}), self.others)
        self.state.put(found.values, found.rows)
        self.saved_step = chosen
        return found.described["host"]

    def _newest_whole(self, warn: Callable[[str], None]) -> Found | None:
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

    def _read_for_chief(self, step: int) -> Found:
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
        names = list(described["shapes"])
        values = {name: reader.get_tensor(f"state/{index}/{VALUE}") for index, name in enumerate(names)}
        rows = [reader.get_tensor(f"metrics/{index}/{VALUE}") for index in range(len(self.state.metrics))]
        return Found(described["step"], described, values, rows)

    def _check(self, path: str, described: dict[str, Any]) -> None:
        theirs, mine = described["shapes"], {name: list(v.shape) for name, v in self.state.variables.items()}
        differs = _differences(described["flags"], self.flags)
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


def _differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    both = [name for name in now if name in before and before[name] != now[name]]
    return [f"{name} was {before[name]}, is {now[name]}" for name in both]


def _holder(value: tf.Tensor) -> tf.Variable:
    return tf.Variable(value, trainable=False)


def _brief(error: Exception) -> str:
    return (getattr(error, "message", None) or str(error)).split("\n")[0][:160]
