"""All that decides what comes next, as arrays: every variable, and each replica's own share of the metrics."""

import numpy as np
import tensorflow as tf

from trainer.input.share import Share
from trainer.loop import Loop


def variables_of(loop: Loop) -> dict[str, tf.Variable]:
    """name -> variable of everything that training changes besides the metrics, in a fixed order."""
    model, optimizer = loop.model, loop.optimizer
    metrics = {id(variable) for variable in model.metrics_variables}
    variables = [("model", v) for v in model.variables if id(v) not in metrics]
    variables += [("optimizer", v) for v in optimizer.variables]
    named = {f"{place}/{index:04d}/{v.path}": v.value for index, (place, v) in enumerate(variables)}
    named.update({f"update/{index}": v for index, v in enumerate(optimizer.own_state)})
    schedule = getattr(optimizer, "schedule", None)
    if schedule is not None:
        named["update/factor"] = schedule.factor
    return named


class State:
    """Reads and writes the state of a loop. Under several workers every method is called by all of them."""

    def __init__(self, loop: Loop):
        self.loop = loop
        self.strategy, self.variables = loop.strategy, variables_of(loop)
        self.metrics = [variable.value for variable in loop.model.metrics_variables]
        self.replicas = loop.strategy.num_replicas_in_sync
        self._sum = tf.function(self._summed)

    def metric_rows(self) -> list[tf.Tensor]:
        """Each replica's own share of every metric, [replicas, ...]: their sum alone would round otherwise."""
        return self.loop.metrics.rows()

    def local(self, name: str) -> tf.Tensor:
        """This process's copy of a variable, without a word to the other workers."""
        parts = getattr(self.variables[name], "values", None)
        return (parts[0] if parts else self.variables[name]).read_value()

    def put(self, values: dict[str, np.ndarray], metric_rows: list[np.ndarray]) -> None:
        """Take up values by the names of `variables`, and the rows of `metric_rows`."""
        for name, variable in self.variables.items():
            variable.assign(values[name])
        self.loop.metrics.put([tf.constant(_for_replicas(rows, self.replicas)) for rows in metric_rows])

    def gather(self, value: float, share: Share, kind: str = "gather") -> list[float]:
        """Every worker's value, the chief's first, at every worker. `kind` of wait: watchdog.py."""
        if share.workers == 1:
            return [value]
        mine = np.zeros(share.workers)
        mine[share.index] = value
        with self.loop.waits(kind):
            return [float(total) / share.replicas for total in self._sum(tf.constant(mine, tf.float64))]

    def _summed(self, values: tf.Tensor) -> tf.Tensor:
        def reduce() -> tf.Tensor:
            return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(values))

        return self.strategy.experimental_local_results(self.strategy.run(reduce))[0]


def _for_replicas(rows: np.ndarray, replicas: int) -> np.ndarray:
    """Rows of another number of replicas: the first gets all there is."""
    if len(rows) == replicas:
        return rows
    moved = np.zeros((replicas, *rows.shape[1:]), rows.dtype)
    moved[0] = rows.sum(0)
    return moved
