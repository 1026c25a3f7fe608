"""CentralStorage: one copy of the variables in the host's memory, several devices that compute.

Keras' BatchNorm, Dropout and metrics assign in each replica, which this strategy can't add up. The steps are
captured (captured.py) and put together here: gradients and metrics summed, moving statistics averaged, in the
same order as MirroredStrategy with as many replicas, whose weights and metrics this gives to the last bit.
"""

from typing import Any

import keras
import tensorflow as tf

from trainer.loop import Loop, plainly, statistics
from trainer.metrics import Metrics
from trainer.strategies.captured import Captured, Step


class CentralMetrics(Metrics):
    """A row for each replica's share of every metric: one sum for all would round otherwise."""

    def __init__(self, model: keras.Model, *args: Any):
        super().__init__(model, *args)
        with self.strategy.scope():
            self.parts = [
                tf.Variable(tf.zeros([self.replicas, *v.shape], v.dtype), trainable=False)
                for v in model.metrics_variables
            ]

    def reset(self) -> None:
        """Forget what the metrics have seen."""
        super().reset()
        for part in self.parts:
            part.assign(tf.zeros_like(part))

    def add(self, metrics: list[list[tf.Tensor]]) -> None:
        """What a step of each replica adds."""
        for part, values in zip(self.parts, zip(*metrics, strict=True), strict=True):
            part.assign_add(tf.stack(values))

    def results(self) -> dict[str, float]:
        """The metrics since they were reset, over all replicas."""
        for variable, part in zip(self.model.metrics_variables, self.parts, strict=True):
            variable.value.assign(tf.add_n(tf.unstack(tf.convert_to_tensor(part))))
        return super().results()

    def rows(self) -> list[tf.Tensor]:
        """Each replica's own share of every metric, [replicas, ...]."""
        return [tf.convert_to_tensor(part) for part in self.parts]

    def put(self, rows: list[tf.Tensor]) -> None:
        """The reverse of `rows`."""
        for part, row in zip(self.parts, rows, strict=True):
            part.assign(row)


class CentralLoop(Loop):
    """The loop under tf.distribute.experimental.CentralStorageStrategy."""

    def prepare(self) -> None:
        """As Loop's, and the step to capture."""
        super().prepare()
        self.captured = Step(self.model, self.extras, jit=self.jit)
        averaged = {id(variable) for variable in statistics(self.model)}
        self.averaged = [id(v.value) in averaged for v in self.captured.state]

    def _metrics(self) -> CentralMetrics:
        return CentralMetrics(self.model, self.strategy, lambda kind: self.waits(kind))

    def _once(self, step: Any, batch: Any) -> None:
        with self.strategy.scope():
            step(batch)

    @plainly
    def _replica_step(self, batch: Any) -> None:
        captured = self.captured.train(batch, self.optimizer.micro_batches)
        tf.distribute.get_replica_context().merge_call(self._merge, args=(captured,))

    def _merge(self, strategy: tf.distribute.Strategy, captured: Captured) -> None:
        parts = [strategy.experimental_local_results(value) for value in tf.nest.flatten(captured)]
        replicas = [tf.nest.pack_sequence_as(captured, [part[i] for part in parts]) for i in range(len(parts[0]))]
        gradients = [_sum(values) for values in zip(*(replica.gradients for replica in replicas), strict=True)]
        self.metrics.add([replica.metrics for replica in replicas])
        afters = zip(*(replica.after for replica in replicas), strict=True)
        changes = zip(self.captured.state, afters, self.captured.changed, self.averaged, strict=True)
        for variable, values, changed, averaged in changes:
            if changed:
                variable.value.assign(_mean(values) if averaged else values[0])
        extras = [replica.extras for replica in replicas]
        self.extras.keep({name: tf.add_n([one[name] for one in extras]) / len(extras) for name in extras[0]})
        self.optimizer.agreed.assign(self.request)
        self.optimizer.apply_whole(gradients, self.captured.targets)

    @plainly
    def _replica_test(self, batch: Any) -> None:
        zeros = [tf.zeros(v.shape, v.dtype) for v in self.captured.metrics]
        some = tf.shape(tf.nest.flatten(batch)[0])[0] > 0
        metrics = tf.cond(some, lambda: self.captured.test(batch), lambda: zeros)
        tf.distribute.get_replica_context().merge_call(self._merge_test, args=(metrics,))

    def _merge_test(self, strategy: tf.distribute.Strategy, metrics: list[Any]) -> None:
        values = [strategy.experimental_local_results(value) for value in metrics]
        self.metrics.add(list(zip(*values, strict=True)))


def _mean(values: tuple[tf.Tensor, ...]) -> tf.Tensor:
    """The mean of moving statistics. Stacked: TensorFlow would else factor out of the sum what the replicas have in
    common, the old value times the momentum, and so round otherwise than MirroredStrategy does."""
    return tf.reduce_sum(tf.stack(values), 0) / len(values)


def _sum(parts: tuple[Any, ...]) -> Any:
    """The replicas' values in their order, added up; rows of an embedding side by side."""
    if not isinstance(parts[0], tf.IndexedSlices):
        return tf.add_n(list(parts))
    values, indices = tf.concat([p.values for p in parts], 0), tf.concat([p.indices for p in parts], 0)
    return tf.IndexedSlices(values, indices, parts[0].dense_shape)
