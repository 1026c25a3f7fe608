"""What a model reports: each replica's share of its metrics, and what its train_step returns besides them."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf

from trainer.optimizer.replicated import replica_local

EXTRAS = 16  # values besides the metrics that a train_step may return


class Metrics:
    """The metrics of a model under a strategy. Under several workers every method is called by all of them.

    Args:
        waits: a context around what needs all workers, by its kind (watchdog.py).
    """

    def __init__(
        self, model: keras.Model, strategy: tf.distribute.Strategy, waits: Callable[[str], AbstractContextManager]
    ):
        self.model, self.strategy, self.waits = model, strategy, waits
        self.replicas = strategy.num_replicas_in_sync
        self._reset = tf.function(self._reset_replicas)
        self._read, self._write = tf.function(self._gathered), tf.function(self._scatter)

    def reset(self) -> None:
        """Forget what the metrics have seen."""
        if self.replicas > 1:  # each its own: one assignment for all would read them all first
            self._reset()
        else:
            self.model.reset_metrics()

    def _reset_replicas(self) -> None:
        def reset() -> int:
            self.model.reset_metrics()
            return 0

        self.strategy.run(reset)

    def results(self) -> dict[str, float]:
        """The metrics since they were reset, over all replicas."""
        with self.waits("metrics"):
            return {name: float(value) for name, value in _flat(self.model.get_metrics_result()).items()}

    def rows(self) -> list[tf.Tensor]:
        """Each replica's own share of every metric, [replicas, ...]: their sum alone would round otherwise."""
        with self.waits("rows"):
            return self._read()

    def put(self, rows: list[tf.Tensor]) -> None:
        """The reverse of `rows`; on as many replicas."""
        self._write(rows)

    @property
    def _variables(self) -> list[tf.Variable]:
        return [variable.value for variable in self.model.metrics_variables]

    def _gathered(self) -> list[tf.Tensor]:
        def rows() -> list[tf.Tensor]:
            context = tf.distribute.get_replica_context()
            return [context.all_gather(tf.expand_dims(variable, 0), 0) for variable in self._variables]

        if self.replicas == 1:
            return [tf.expand_dims(variable, 0) for variable in self._variables]
        return [self.strategy.experimental_local_results(row)[0] for row in self.strategy.run(rows)]

    def _scatter(self, rows: list[tf.Tensor]) -> None:
        def take() -> None:
            index = tf.distribute.get_replica_context().replica_id_in_sync_group if self.replicas > 1 else 0
            for variable, row in zip(self._variables, rows, strict=True):
                variable.assign(row[index])

        if self.replicas > 1:
            self.strategy.run(take)
        else:
            take()


class Extras:
    """Values that the model's own train_step returns and no metric holds: the last step's are reported.

    Made under the strategy's scope.
    """

    def __init__(self, model: keras.Model):
        self.model, self.names = model, []
        self._values = replica_local(tf.zeros([EXTRAS]), tf.float32, "extras", tf.VariableAggregation.MEAN)

    def of(self, logs: dict[str, Any]) -> dict[str, tf.Tensor]:
        """What a train_step returned besides the model's metrics, which are read from their own variables.

        Those of `compile` go by the names in get_metrics_result; model.metrics has one for all of them.
        """
        if not isinstance(logs, dict):
            raise TypeError(f"train_step returned a {type(logs).__name__}; a dict of values by their names is expected")
        known = {metric.name for metric in self.model.metrics} | set(_flat(self.model.get_metrics_result()))
        others = {name: value for name, value in logs.items() if name not in known and not isinstance(value, dict)}
        return {name: tf.cast(tf.reduce_mean(others[name]), tf.float32) for name in sorted(others)[:EXTRAS]}

    def keep(self, extras: dict[str, tf.Tensor]) -> None:
        """Those of one step, as `of` gives them."""
        self.names = list(extras)
        if extras:
            self._values.assign(tf.pad(tf.stack(list(extras.values())), [[0, EXTRAS - len(extras)]]))

    def results(self) -> dict[str, float]:
        """The last step's, the replicas' mean."""
        return dict(zip(self.names, map(float, self._values.numpy()), strict=False)) if self.names else {}


def _flat(results: dict[str, Any]) -> dict[str, Any]:
    """Scalars by name; a metric that returns several (a dict) gives each its own line."""
    flat = {}
    for name, value in results.items():
        if isinstance(value, dict):
            flat.update(value)
        elif tf.convert_to_tensor(value).shape.rank == 0:
            flat[name] = value
    return flat
