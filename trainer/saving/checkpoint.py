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
from typing import Any

import tensorflow as tf

from trainer.loop import Loop
from trainer.saving import folders, storage
from trainer.saving.reader import CheckpointError, Reader, differences
from trainer.saving.state import State

OTHER_JOB, NOTHING = -2, -1


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
        shapes = {name: list(variable.shape) for name, variable in self.state.variables.items()}
        self.reader = Reader(directory, flags, shapes, len(self.state.metrics))
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
            self._arrays = tf.Variable(tf.constant([], tf.string), shape=[None], trainable=False)
        holders = list(self._holders.values())
        self._checkpoint = tf.train.Checkpoint(
            state=holders, metrics=self._row_holders, host=self._host, arrays=self._arrays
        )

    def save(self, host: dict[str, Any], *, best_step: int = -1) -> None:
        """Take a copy of everything and have it written. Every worker calls it; the chief writes.

        `host` is plain JSON but for its "arrays", a list of bytes.
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
            self._arrays.assign(tf.constant(host.get("arrays", []), tf.string))
            plain = {name: value for name, value in host.items() if name != "arrays"}
            described = {"step": step, "flags": self.flags, "others": self.others, "host": plain}
            described["shapes"] = self.reader.shapes
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
        return self.reader.steps()

    def restore(self, warn: Callable[[str], None]) -> dict[str, Any] | None:
        """Resume from the newest checkpoint that is whole; its host state, or None where there is none.

        Every worker calls it. Raises CheckpointError where it belongs to another model, data or flags, and
        storage.StorageError where the folder can't be reached.
        """
        found, problem = None, None
        if self.chief:
            try:
                found = self.reader.newest(warn)
            except CheckpointError as error:
                problem = error
        chosen = OTHER_JOB if problem else found.step if found else NOTHING
        chosen = int(self.state.gather(chosen, self.loop.pipeline.share)[0])  # the chief's
        if problem or chosen == OTHER_JOB:
            raise problem or CheckpointError("the chief found a checkpoint that can't be used; its log says why")
        if chosen == NOTHING:
            return None
        found = found or self.reader.of_step(chosen)
        self.changed = differences(found.described.get("others", {}), self.others)
        self.state.put(found.values, found.rows)
        self.saved_step = chosen
        return found.described["host"] | {"arrays": found.arrays}


def _holder(value: tf.Tensor) -> tf.Variable:
    return tf.Variable(value, trainable=False)
