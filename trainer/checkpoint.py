"""Save and resume: all that decides what comes next, in one atomic checkpoint.

The restart policy, in order:
1. A finished job says so and changes nothing.
2. --fresh sets what is there aside and starts over.
3. The newest checkpoint that can be read whole is resumed; an unreadable one is named and passed over.
4. A checkpoint of another model or another job's flags stops the job with what differs.
5. Without a checkpoint, training starts from the seed.

Values are copied to the host first and written by a thread, so that training waits for the copy alone.
Only the chief writes. tf.train.CheckpointManager makes a checkpoint visible when it is complete.
"""

import concurrent.futures
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.loop import Loop


class CheckpointError(Exception):
    """A checkpoint that can't be used; str() says which and what differs."""


def state_of(loop: Loop) -> dict[str, Any]:
    """name -> tf.Variable of everything that training changes, in a fixed order."""
    model, optimizer = loop.model, loop.optimizer
    known = {id(metric_variable) for metric_variable in model.metrics_variables}
    variables = [("model", v) for v in model.variables if id(v) not in known]
    variables += [("optimizer", v) for v in optimizer.variables]
    named = {f"{place}/{index:04d}/{v.path}": v.value for index, (place, v) in enumerate(variables)}
    named.update({f"update/{index}": v for index, v in enumerate(optimizer.own_state)})
    schedule = getattr(optimizer, "schedule", None)
    if schedule is not None:
        named["update/factor"] = schedule.factor
    return named


class Checkpoints:
    """The checkpoints of one job in `directory`, which may be gs://.

    Args:
        loop: what is saved and restored.
        flags: what must be the same for a resumed job to be the same job.
        chief: whether this process writes.
        keep: how many of the newest stay.
    """

    def __init__(self, directory: str, loop: Loop, flags: dict[str, Any], *, chief: bool, keep: int = 3):
        self.directory, self.loop, self.flags, self.chief, self.keep = directory, loop, flags, chief, keep
        self.variables = state_of(loop)
        self.metrics = [variable.value for variable in loop.model.metrics_variables]
        self._read_metrics = tf.function(self._gather_metrics)
        self._write_metrics = tf.function(self._scatter_metrics)
        with tf.device("CPU:0"):
            self.holders = {name: _holder(tf.zeros(v.shape, v.dtype)) for name, v in self.variables.items()}
            replicas = loop.strategy.num_replicas_in_sync
            self.metric_holders = [_holder(tf.zeros([replicas, *v.shape], v.dtype)) for v in self.metrics]
            self.host = _holder(tf.constant(""))
        self.checkpoint = tf.train.Checkpoint(
            state=list(self.holders.values()), metrics=self.metric_holders, host=self.host
        )
        self.manager = tf.train.CheckpointManager(self.checkpoint, directory, keep)
        self._writer = concurrent.futures.ThreadPoolExecutor(1)
        self._pending: concurrent.futures.Future | None = None
        self.saved_step = -1
        self.blocked_s = 0.0

    def _gather_metrics(self) -> list[tf.Tensor]:
        """Each replica's own share of every metric, [replicas, ...]: their sum alone would round otherwise."""

        def rows() -> list[tf.Tensor]:
            context = tf.distribute.get_replica_context()
            return [context.all_gather(tf.expand_dims(variable, 0), 0) for variable in self.metrics]

        if self.loop.strategy.num_replicas_in_sync == 1:
            return [tf.expand_dims(variable, 0) for variable in self.metrics]
        return [self.loop.strategy.experimental_local_results(row)[0] for row in self.loop.strategy.run(rows)]

    def _scatter_metrics(self, rows: list[tf.Tensor]) -> None:
        def take() -> None:
            index = tf.distribute.get_replica_context().replica_id_in_sync_group
            for variable, row in zip(self.metrics, rows, strict=True):
                variable.assign(row[index])

        self.loop.strategy.run(take)

    def save(self, host: dict[str, Any]) -> None:
        """Take a copy of everything and have it written. Every worker calls it; the chief writes."""
        start = time.monotonic()
        self.wait()
        step = self.loop.step
        rows = self._read_metrics()
        self.saved_step = step
        if self.chief:
            for name, variable in self.variables.items():
                self.holders[name].assign(_local(variable))
            for holder, row in zip(self.metric_holders, rows, strict=True):
                holder.assign(row)
            described = {"step": step, "flags": self.flags, "names": list(self.variables), "host": host}
            described["shapes"] = [list(v.shape) for v in self.variables.values()]
            self.host.assign(json.dumps(described))
            self._pending = self._writer.submit(self.manager.save, step)
        self.blocked_s += time.monotonic() - start

    def wait(self) -> None:
        """Until what was saved is written. Raises CheckpointError where it could not be."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        try:
            pending.result()
        except tf.errors.OpError as error:
            raise CheckpointError(f"could not write a checkpoint to {self.directory}: {error.message}") from error

    def restore(self, warn: Callable[[str], None]) -> dict[str, Any] | None:
        """Resume from the newest checkpoint that is whole; its host state, or None where there is none.

        Raises:
            CheckpointError: it belongs to another model or other flags.
        """
        for path in reversed(self._paths()):
            try:
                described = self._described(path)
                self._check(path, described)
                self._load(path)
            except (tf.errors.OpError, ValueError, AssertionError) as error:
                warn(f"{path} can't be read ({_brief(error)}); trying the one before")
                continue
            self.saved_step = described["step"]
            return described["host"]
        return None

    def _paths(self) -> list[str]:
        """Every checkpoint that is there, oldest first; those that the manager has lost sight of too."""
        found = tf.io.gfile.glob(f"{self.directory}/ckpt-*.index") if tf.io.gfile.exists(self.directory) else []
        steps = sorted(int(path.rpartition("-")[2].removesuffix(".index")) for path in found)
        return [f"{self.directory}/ckpt-{step}" for step in steps]

    def _described(self, path: str) -> dict[str, Any]:
        reader = tf.train.load_checkpoint(path)
        return json.loads(reader.get_tensor("host/.ATTRIBUTES/VARIABLE_VALUE"))

    def _check(self, path: str, described: dict[str, Any]) -> None:
        shapes = dict(zip(described["names"], described["shapes"], strict=True))
        mine = {name: list(v.shape) for name, v in self.variables.items()}
        differs = [
            f"{name.split('/', 2)[-1]}: {shapes.get(name, 'absent')} there, {mine.get(name, 'absent')} here"
            for name in sorted(shapes.keys() | mine.keys())
            if shapes.get(name) != mine.get(name)
        ]
        differs += [
            f"--{name}: {described['flags'].get(name)} there, {value} here"
            for name, value in self.flags.items()
            if described["flags"].get(name) != value
        ]
        if differs:
            more = f" and {len(differs) - 3} more" if len(differs) > 3 else ""
            raise CheckpointError(
                f"{path} is of another job ({'; '.join(differs[:3])}{more}): give the old flags back, "
                "another --job_dir, or --fresh to start over"
            )

    def _load(self, path: str) -> None:
        tensors = tf.train.load_checkpoint(path)
        read = [tensors.get_tensor(f"state/{i}/.ATTRIBUTES/VARIABLE_VALUE") for i in range(len(self.variables))]
        rows = [tensors.get_tensor(f"metrics/{i}/.ATTRIBUTES/VARIABLE_VALUE") for i in range(len(self.metrics))]
        for variable, value in zip(self.variables.values(), read, strict=True):
            variable.assign(value)
        replicas = self.loop.strategy.num_replicas_in_sync
        self._write_metrics([tf.constant(_for_replicas(value, replicas)) for value in rows])

    def set_aside(self) -> str | None:
        """Move what is there out of the way; the folder it is in now, or None where there was nothing."""
        if not self._paths():
            return None
        aside = f"{self.directory.rstrip('/')}-{time.strftime('%Y%m%d-%H%M%S')}"
        tf.io.gfile.makedirs(aside)
        for name in tf.io.gfile.listdir(self.directory):
            tf.io.gfile.rename(f"{self.directory}/{name}", f"{aside}/{name}")
        self.manager = tf.train.CheckpointManager(self.checkpoint, self.directory, self.keep)
        return aside


def _holder(value: tf.Tensor) -> tf.Variable:
    return tf.Variable(value, trainable=False)


def _local(variable: Any) -> tf.Tensor:
    """This process's copy, without a word to the other workers."""
    parts = getattr(variable, "values", None)
    return (parts[0] if parts else variable).read_value()


def _for_replicas(rows: np.ndarray, replicas: int) -> np.ndarray:
    """Rows of another number of replicas: the first gets all there is."""
    if len(rows) == replicas:
        return rows
    moved = np.zeros((replicas, *rows.shape[1:]), rows.dtype)
    moved[0] = rows.sum(0)
    return moved


def _brief(error: Exception) -> str:
    return (getattr(error, "message", None) or str(error)).split("\n")[0][:160]
