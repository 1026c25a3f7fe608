"""A Keras step whose assignments are captured instead of made, for strategies that share one copy of each variable.

Keras assigns `x + 1` where several replicas of an asynchronous job, or of CentralStorage, write the same
variable: one of two updates is lost. Here a step runs in keras.StatelessScope and gives back what it would
have assigned, so that the caller can add it to the shared variables, each replica's part once.
"""

from typing import Any, NamedTuple

import keras
import tensorflow as tf

from trainer.metrics import Extras
from trainer.optimizer.whole_batch import WholeBatchOptimizer


class Captured(NamedTuple):
    """What a step would have assigned; all tensors, in the order of Step's variables."""

    gradients: list[Any]
    metrics: list[tf.Tensor]  # what the step adds to each metric's variable
    before: list[tf.Tensor]  # of the state, as the step read it
    after: list[tf.Tensor]
    extras: dict[str, tf.Tensor]  # what train_step returns and no metric holds


class Step:
    """Runs a model's train_step or test_step without side effects.

    Args:
        model: built, with every metric's variables made.
        extras: tells what train_step returns besides the metrics.
        jit: compile it with XLA.
    """

    def __init__(self, model: keras.Model, extras: Extras, *, jit: bool = False):
        self.model, self.extras, self.jit = model, extras, jit
        self.metrics = list(model.metrics_variables)
        known = {id(variable) for variable in self.metrics}
        self.state = [v for v in model.non_trainable_variables if id(v) not in known]
        self.changed: list[bool] = []  # which of the state a training step assigns
        self.targets: list[keras.Variable] = []  # the variables that the gradients belong to

    def train(self, batch: Any, micro_batches: int = 1) -> Captured:
        """One replica's step; gradients are the mean over its micro-batches (or calls of `apply`)."""
        run = tf.function(self._train, jit_compile=True, autograph=False) if self.jit else self._train
        return run(batch, max(1, micro_batches))

    def _train(self, batch: Any, parts: int) -> Captured:
        optimizer: WholeBatchOptimizer = self.model.optimizer
        before = [tf.identity(v.value) for v in self.state]
        optimizer.captured, extras = [], {}
        rows = (tf.nest.flatten(batch)[0].shape[0] or 0) // parts
        with self._scope(before) as scope:
            for part in range(parts):
                micro = batch if parts == 1 else _slice(batch, part * rows, rows)
                extras = self.extras.of(self.model.train_step(micro))
        held, optimizer.captured = optimizer.captured, None
        after = [scope.get_current_value(v) for v in self.state]
        self.changed = [new is not old for new, old in zip(after, scope.first, strict=True)]
        metrics = [scope.get_current_value(v) for v in self.metrics]
        return Captured(self._mean(held), metrics, before, after, extras)

    def _mean(self, held: list[tuple[list[Any], list[Any]]]) -> list[Any]:
        """The mean of the gradients that each call of `apply` brought."""
        if not held:
            raise ValueError("train_step made no update through the model's optimizer, which this strategy needs")
        self.targets = held[0][1]
        if len(held) == 1:
            return held[0][0]
        columns = zip(*(gradients for gradients, _ in held), strict=True)
        return [tf.add_n([tf.convert_to_tensor(part) / len(held) for part in column]) for column in columns]

    def test(self, batch: Any) -> list[tf.Tensor]:
        """What test_step adds to each metric's variable."""
        with self._scope([tf.identity(v.value) for v in self.state]) as scope:
            self.model.test_step(batch)
        return [scope.get_current_value(v) for v in self.metrics]

    def _scope(self, state: list[tf.Tensor]) -> keras.StatelessScope:
        zeros = [(v, tf.zeros(v.shape, v.dtype)) for v in self.metrics]
        scope = keras.StatelessScope([*zeros, *zip(self.state, state, strict=True)], collect_losses=True)
        scope.first = [scope.get_current_value(v) for v in self.state]
        return scope


def _slice(batch: Any, start: int, rows: int) -> Any:
    return tf.nest.map_structure(lambda tensor: tensor[start : start + rows], batch)
