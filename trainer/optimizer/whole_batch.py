"""The update: one optimizer around any other that acts on the gradient of the whole batch.

Keras clips, scales and checks gradients in each replica, before they are summed over the replicas, so
that the same batch trains differently on one device and on two. Here the order is: sum over
micro-batches, sum over replicas, undo the loss scale, clip, apply. What else the replicas must agree on at
every step travels in the same reduction: moving statistics (BatchNorm's) and requests to stop or pause.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from trainer.optimizer.gradients import summed_rows, times, without_none
from trainer.optimizer.inner import apply_mirrored, apply_shared, updates_by_step
from trainer.optimizer.loss_scale import SMALLEST, LossScale
from trainer.optimizer.replicated import replica_local, shares_variables

BAD = 1e6  # added to the agreed request where the gradient is not finite
TRACED = 16  # steps whose gradient norm and loss are kept on the device


class WholeBatchOptimizer(keras.optimizers.Optimizer):
    """Wraps `inner`; made under the strategy's scope, before model.compile or in place of its optimizer.

    Args:
        inner: the optimizer that makes the update. Its own clipping is taken over.
        clip_norm: the global norm at which the whole batch's gradient is clipped; 0: not.
        micro_batches: calls of `apply` that one update is summed from; 0: `apply` updates at once.
        loss_scale: the first dynamic loss scale (for float16); 0: none.
    """

    def __init__(
        self,
        inner: keras.optimizers.Optimizer,
        *,
        clip_norm: float = 0.0,
        micro_batches: int = 0,
        loss_scale: float = 0.0,
        name: str = "whole_batch",
    ):
        super().__init__(learning_rate=0.0, name=name)
        self.inner = inner
        self.clip_norm = inner.global_clipnorm or clip_norm
        inner.global_clipnorm = None
        if inner.gradient_accumulation_steps:
            raise ValueError("the optimizer accumulates gradients itself; use --accumulate instead")
        self.micro_batches = micro_batches
        self.loss_scale = LossScale(loss_scale) if loss_scale else None
        self.replicas = tf.distribute.get_strategy().num_replicas_in_sync
        self.averaged: list[tf.Variable] = []  # statistics that replicas must agree on, set by the loop
        self.request: tf.Variable | None = None  # this worker's wish to stop or pause, set by the loop
        self.captured: list[tuple] | None = None  # a list: `apply` puts what it gets there and does nothing else
        self.applied = False  # whether the trace called apply at all
        self.kept: list[tuple[Any, Any]] = []  # (gradient, variable) of the last trace, as applied

    def build(self, variables: list[keras.Variable]) -> None:
        """Create the inner optimizer's slots and the few variables of the update itself."""
        if self.built:
            return
        self.inner.build(variables)
        super().build(variables)
        self.gradient_norm = replica_local(0.0, tf.float32, "gradient_norm")
        self.first_bad_step = replica_local(-1, tf.int64, "first_bad_step")
        self.norms = replica_local(tf.zeros([TRACED]), tf.float32, "gradient_norms")  # of the last steps
        self.agreed = replica_local(0.0, tf.float32, "agreed_request")
        self.parameters = list(variables)
        if self.micro_batches and not shares_variables(tf.distribute.get_strategy()):
            add = tf.VariableAggregation.SUM
            self.sums = [replica_local(tf.zeros(v.shape, v.dtype), v.dtype, "sum", add) for v in variables]
            self.summed = {id(v): total for v, total in zip(variables, self.sums, strict=True)}

    @property
    def own_state(self) -> list[tf.Variable]:
        """What a checkpoint needs besides the inner optimizer's variables."""
        return self.loss_scale.variables if self.loss_scale else []

    @property
    def variables(self) -> list[keras.Variable]:
        """The inner optimizer's."""
        return self.inner.variables

    @property
    def iterations(self) -> keras.Variable:
        """Updates made."""
        return self.inner.iterations

    @property
    def learning_rate(self) -> Any:
        """The next update's, schedule and factor included."""
        return self.inner.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        # keras.optimizers.Optimizer.__init__ has set a learning rate of its own before `inner` is there
        if "inner" not in self.__dict__:
            return
        schedule = getattr(self, "schedule", None)
        if schedule is None:
            self.inner.learning_rate = value
            return
        now = float(tf.convert_to_tensor(self.inner.learning_rate))
        if now > 0:
            schedule.factor.assign(float(schedule.factor.numpy()) * float(value) / now)

    def scale_loss(self, loss: tf.Tensor) -> tf.Tensor:
        """The loss whose gradient train_step takes."""
        return loss * tf.cast(self.loss_scale.factor, loss.dtype) if self.loss_scale else loss

    def apply(self, grads: list[Any], trainable_variables: list[Any] | None = None) -> None:
        """One replica's gradients of one (micro-)batch."""
        variables = list(trainable_variables if trainable_variables is not None else self.parameters)
        if not self.built:
            self.build(variables)
        self.applied = True
        grads, variables = without_none(grads, variables)
        if self.captured is not None:
            self.captured.append((grads, variables))
            return
        if not self.micro_batches:
            self._update(grads, variables)
            return
        for gradient, variable in zip(grads, variables, strict=True):
            self.summed[id(variable)].assign_add(tf.convert_to_tensor(gradient) / self.micro_batches)

    def finish(self) -> None:
        """The end of a replica's step: the update of a whole batch after its micro-batches, if it was made of such."""
        if not self.applied:  # a train_step with optimizers of its own
            self._reduced([])
        elif self.micro_batches:
            self._update([tf.identity(total) for total in self.sums], self.parameters)
            for total in self.sums:
                total.assign(tf.zeros_like(total))

    def _update(self, grads: list[Any], variables: list[Any]) -> None:
        grads, finite = self._clipped(self._reduced(grads), variables)
        if self.replicas == 1:
            self._apply_if_good(grads, variables, finite, self.inner.apply)
        elif updates_by_step(self.inner):
            tf.distribute.get_replica_context().merge_call(self._apply_merged, args=(grads, variables, finite))
        else:  # sums over the replicas once more
            self._apply_if_good([times(g, 1 / self.replicas) for g in grads], variables, finite, self.inner.apply)

    def _apply_merged(self, strategy: tf.distribute.Strategy, grads: list, variables: list, finite: Any) -> None:
        """In the cross-replica context: the gradients are summed already, so no second reduction."""
        good = strategy.experimental_local_results(finite)[0]
        self._apply_if_good(grads, variables, good, lambda g, v: apply_mirrored(self.inner, strategy, g, v))

    def apply_whole(self, grads: list[Any], variables: list[Any], rate: Callable | None = None) -> None:
        """The update of variables that all replicas share, by the whole batch's gradient.

        `rate` is called for the learning rate, where it is another than the optimizer's own.
        """

        def apply(grads: list[Any], variables: list[Any]) -> None:
            now = tf.convert_to_tensor(rate() if rate else self.inner.learning_rate)
            apply_shared(self.inner, grads, variables, now)

        grads, finite = self._clipped(grads, variables)
        self._apply_if_good(grads, variables, finite, apply)

    def _reduced(self, grads: list[Any]) -> list[Any]:
        """Sums over the replicas; agrees on statistics and requests on the way."""
        if self.replicas == 1:
            if self.request is not None:
                self.agreed.assign(self.request)
            return grads
        # tf.identity puts the values on this replica's device, without which they can't be reduced
        statistics = [tf.identity(variable) for variable in self.averaged]
        request = [tf.identity(self.request)] if self.request is not None else []
        context = tf.distribute.get_replica_context()
        summed = context.all_reduce(tf.distribute.ReduceOp.SUM, [*grads, *statistics, *request])
        for variable, total in zip(self.averaged, summed[len(grads) :], strict=False):
            variable.assign(total / self.replicas)
        if request:
            self.agreed.assign(summed[-1])
        return summed[: len(grads)]

    def _clipped(self, grads: list[Any], variables: list[Any]) -> tuple[list[Any], tf.Tensor]:
        """(the whole batch's gradient without its scale, clipped; whether it is finite)."""
        if self.loss_scale:
            grads = [gradient / tf.cast(self.loss_scale.factor, gradient.dtype) for gradient in grads]
        norm = tf.linalg.global_norm([summed_rows(gradient) for gradient in grads])
        finite = tf.math.is_finite(norm)
        ratio = tf.minimum(1.0, self.clip_norm / tf.maximum(norm, 1e-30)) if self.clip_norm else 1.0
        ratio = tf.where(finite, ratio, 0.0)
        # a bad gradient leaves the weights as they were, so that what was bad can still be looked at
        grads = [times(gradient, ratio) for gradient in grads]
        self.kept = list(zip(grads, variables, strict=True))
        self.gradient_norm.assign(norm)
        self._note_bad(norm, finite)
        return grads, finite

    def _note_bad(self, norm: tf.Tensor, finite: tf.Tensor) -> None:
        """Remember the first step whose gradient no smaller loss scale would have saved."""
        bad = ~finite & (self.loss_scale.factor <= SMALLEST) if self.loss_scale else ~finite
        step = tf.cast(self.inner.iterations.value, tf.int64)
        place = tf.equal(tf.range(TRACED, dtype=tf.int64), step % TRACED)
        self.norms.assign(tf.where(place, norm, self.norms))
        self.first_bad_step.assign(tf.where(bad & (self.first_bad_step < 0), step, self.first_bad_step))
        self.agreed.assign_add(tf.where(bad, BAD, 0.0))  # ends the call, so that what was bad can be looked at

    def _apply_if_good(self, grads: list, variables: list, good: tf.Tensor, apply: Callable) -> None:
        if not self.loss_scale:
            apply(grads, variables)
            return

        def good_step() -> None:
            apply(grads, variables)
            self.loss_scale.good()

        def bad_step() -> None:
            self.loss_scale.bad()
            self.inner.iterations.assign_add(1)

        tf.cond(good, good_step, bad_step)

    def get_config(self) -> dict[str, Any]:
        """What Keras serializes."""
        return {"inner": keras.saving.serialize_keras_object(self.inner), "name": self.name}
