"""ParameterServer: workers that step on their own, each on the newest variables, without waiting for another.

The chief hands out steps through tf.distribute.coordinator.ClusterCoordinator; a worker that dies has its step done
again by another, and takes part again once it is back. Keras would lose updates (it assigns `x + 1` where
several workers do so at once): the step is captured (captured.py), and what it adds to counters and moving statistics
is added in place, on the parameter server that holds the variable. What it adds to the metrics it gives back.
"""

import collections
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer.input.pipeline import Pipeline
from trainer.loop import Loop, plainly
from trainer.settings import Settings
from trainer.strategies.captured import Captured, Step

AHEAD = 2  # steps handed out for each worker: one being made, one that waits


class Seen:
    """What finished steps add to the metrics. A step that died with its worker is made again, and counts once."""

    def __init__(self, metrics: list[keras.Variable]):
        self.metrics = metrics
        self.totals: list[Any] = [0.0] * len(metrics)

    def add(self, values: list[np.ndarray]) -> None:
        """One step's, in the order of the metrics."""
        self.totals = [total + np.asarray(value, np.float64) for total, value in zip(self.totals, values, strict=True)]

    def tell(self) -> None:
        """Have the metrics know."""
        for variable, total in zip(self.metrics, self.totals, strict=True):
            variable.value.assign_add(tf.cast(total, variable.value.dtype))


class AsynchronousLoop(Loop):
    """The chief's loop under tf.distribute.experimental.ParameterServerStrategy.

    One step is one batch of --batch_size on one worker.
    """

    def __init__(self, model: keras.Model, strategy: Any, pipeline: Pipeline, *, settings: Settings):
        self.settings = settings
        self.coordinator = tf.distribute.experimental.coordinator.ClusterCoordinator(strategy)
        self.workers = strategy.extended._num_workers
        super().__init__(model, strategy, pipeline, jit=settings.jit)
        self.captured = Step(model, self.extras, jit=settings.jit)
        self._worker_call = tf.function(self._worker_step)
        self._here: Loop | None = None

    def _once(self, step: Any, batch: Any) -> None:
        with self.strategy.scope():
            step(batch)

    def iterator(self, first_step: int, last_step: int) -> Any:
        """What each worker takes its batches from.

        Data that fits its memory is there whole, and a step takes the batch of its number. A stream gives worker w of
        W the batches w, w + W, w + 2W ...; it doesn't end, since a fast worker makes more steps than its part.
        """
        split = self.pipeline.split("train")
        if split.fits:
            examples = split.examples
            return iter(
                self.coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.from_tensors(examples).repeat())
            )
        with self.strategy.scope():
            arrivals = tf.Variable(-1, dtype=tf.int64, trainable=False)

        def stream() -> tf.data.Dataset:
            mine = arrivals.assign_add(1, read_value=True) % self.workers
            batches = self.pipeline.training(first_step, 2**31).enumerate()
            return batches.filter(lambda n, _: n % self.workers == mine).map(lambda _, batch: batch)

        return iter(self.coordinator.create_per_worker_dataset(stream))

    def train(self, iterator: Any, steps: int) -> int:
        """Make `steps` updates, or fewer where this process was asked to stop or pause. Returns how many."""
        self.pipeline.reading = "train"
        start, waiting, seen = self.step, collections.deque(), Seen(self.captured.metrics)
        alone, done, asked = self.settings.one_worker_steps, 0, 0.0
        while done < steps and not asked:
            ahead = 1 if start + done < alone else AHEAD * self.workers
            while len(waiting) >= ahead:
                seen.add(waiting.popleft().get())
            waiting.append(
                self.coordinator.schedule(self._worker_call, args=(iterator, tf.constant(start + done, tf.int64)))
            )
            done += 1
            asked = float(self.request.numpy())
        self.coordinator.join()
        for result in waiting:
            seen.add(result.get())
        seen.tell()
        if self.step != start + done:  # a worker died inside its update, and the step was made again
            self.optimizer.iterations.value.assign(start + done)
        self.optimizer.agreed.assign(asked)
        return done

    def train_and_look(self, iterator: Any) -> dict[str, tf.Tensor]:
        """Make one update; its gradients stay on the worker that made it."""
        self.train(iterator, 1)
        return {}

    def _worker_step(self, iterator: Any, step: tf.Tensor) -> list[tf.Tensor]:
        batch = next(iterator)
        if self.pipeline.split("train").fits:
            batch = self.pipeline.batch_at(step, batch)
        return self.strategy.run(self._replica_step, args=(batch,))

    @plainly
    def _replica_step(self, batch: Any) -> list[tf.Tensor]:
        """One update; what it adds to each metric's variable."""
        began = tf.identity(self._count())
        with tf.control_dependencies([began]):
            captured = self.captured.train(batch)
        self._add_state(captured)
        self.extras.keep(captured.extras)
        rate = None
        if self.settings.scale_stale:
            with tf.control_dependencies(tf.nest.flatten(captured.gradients)):
                stale = self._count() - began
            rate = lambda: self._rate() / tf.cast(tf.maximum(stale, 1), tf.float32)  # noqa: E731
        self.optimizer.apply_whole(captured.gradients, self.captured.targets, rate)
        return captured.metrics

    def _rate(self) -> tf.Tensor:
        return tf.convert_to_tensor(self.optimizer.inner.learning_rate)

    def _count(self) -> tf.Tensor:
        """Updates made, read from the server now; the strategy would give the value that this step has read before."""
        variable = self.optimizer.iterations.value
        return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)

    def _add_state(self, captured: Captured) -> None:
        changes = zip(self.captured.state, captured.before, captured.after, self.captured.changed, strict=True)
        for variable, before, after, changed in changes:
            if changed and before.dtype == tf.bool:
                variable.value.assign(after)
            elif changed:
                variable.value.assign_add(after - before)

    def evaluate(self, split: str, stop: Callable[[bool], bool] = lambda last: False) -> dict[str, float] | None:
        """The metrics of a split, on the chief, by a copy of the model: each example counts once, whoever dies."""
        here = self._copy()
        for mine, shared in zip(here.model.weights, self.model.weights, strict=True):
            mine.assign(tf.convert_to_tensor(shared.value))
        values = here.evaluate(split, stop)
        self.test_graph = here.test_graph
        return values

    @property
    def model_at_hand(self) -> keras.Model:
        """The copy that evaluates."""
        return self._copy().model

    def _copy(self) -> Loop:
        if self._here is None:
            raise ValueError("give the loop a model to evaluate with: loop.evaluate_with(build)")
        return self._here

    def evaluate_with(self, build: Any) -> "AsynchronousLoop":
        """Have `build()` make the same model again, for the chief to evaluate with."""
        strategy = tf.distribute.OneDeviceStrategy("/job:chief/replica:0/task:0/device:CPU:0")
        with strategy.scope():
            model = build()
        self._here = Loop(model, strategy, self.pipeline)
        return self
