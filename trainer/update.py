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

BAD = 1e6  # added to the agreed request where the gradient is not finite
TRACED = 16  # steps whose gradient norm and loss are kept on the device


def shares_variables(strategy: tf.distribute.Strategy) -> bool:
    """Whether all replicas read and write the same copy of each variable."""
    kinds = (tf.distribute.experimental.CentralStorageStrategy, tf.distribute.experimental.ParameterServerStrategy)
    return isinstance(strategy, kinds)


def replica_local(value: Any, dtype: tf.DType, name: str) -> tf.Variable:
    """A variable of which each replica has its own; read across replicas, it is the first one's.

    A strategy that keeps one copy for all replicas has no such variables: there it is a shared one.
    """
    if shares_variables(tf.distribute.get_strategy()):
        return tf.Variable(value, dtype=dtype, trainable=False, name=name)
    return tf.Variable(
        value,
        dtype=dtype,
        trainable=False,
        name=name,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )


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
        self.micro_batches, self.initial_scale = micro_batches, loss_scale
        self.replicas = tf.distribute.get_strategy().num_replicas_in_sync
        self.averaged: list[tf.Variable] = []  # statistics that replicas must agree on, set by the loop
        self.request: tf.Variable | None = None  # this worker's wish to stop or pause, set by the loop
        self.captured: list[tuple] | None = None  # a list: `apply` puts what it gets there and does nothing else
        self.applied = False  # whether the trace called apply at all
        self.kept: list[tuple[Any, Any]] = []  # (gradient, variable) of the last trace, as applied

    @property
    def scales_loss(self) -> bool:
        """Whether the loss is scaled (float16)."""
        return self.initial_scale > 0

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
        if self.scales_loss:
            self.scale = self._own_variable(self.initial_scale, tf.float32, "loss_scale")
            self.good_steps = self._own_variable(0, tf.int64, "good_steps")
        self.parameters = list(variables)
        if self.micro_batches and not shares_variables(tf.distribute.get_strategy()):
            self.sums = [
                tf.Variable(
                    tf.zeros(v.shape, v.dtype),
                    trainable=False,
                    synchronization=tf.VariableSynchronization.ON_READ,
                    aggregation=tf.VariableAggregation.SUM,
                )
                for v in variables
            ]
            self.summed = {self._key(v): total for v, total in zip(variables, self.sums, strict=True)}

    @staticmethod
    def _own_variable(value: Any, dtype: tf.DType, name: str) -> tf.Variable:
        only_first = tf.VariableAggregation.ONLY_FIRST_REPLICA
        return tf.Variable(value, dtype=dtype, trainable=False, name=name, aggregation=only_first)

    @staticmethod
    def _key(variable: Any) -> int:
        return id(variable)

    @property
    def own_state(self) -> list[tf.Variable]:
        """What a checkpoint needs besides the inner optimizer's variables."""
        return [self.scale, self.good_steps] if self.scales_loss else []

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
        return loss * tf.cast(self.scale, loss.dtype) if self.scales_loss else loss

    def apply(self, grads: list[Any], trainable_variables: list[Any] | None = None) -> None:
        """One replica's gradients of one (micro-)batch."""
        variables = list(trainable_variables if trainable_variables is not None else self.parameters)
        if not self.built:
            self.build(variables)
        self.applied = True
        grads, variables = _without_none(grads, variables)
        if self.captured is not None:
            self.captured.append((grads, variables))
            return
        if not self.micro_batches:
            self._update(grads, variables)
            return
        for gradient, variable in zip(grads, variables, strict=True):
            self.summed[self._key(variable)].assign_add(tf.convert_to_tensor(gradient) / self.micro_batches)

    def finish(self) -> None:
        """The update of a whole batch, after its micro-batches; nothing where `apply` updates at once."""
        if self.micro_batches and self.applied:
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
            self._apply_if_good([_times(g, 1 / self.replicas) for g in grads], variables, finite, self.inner.apply)

    def apply_whole(self, grads: list[Any], variables: list[Any], rate: Callable | None = None) -> None:
        """The update of variables that all replicas share, by the whole batch's gradient.

        `rate` is called for the learning rate, where it is another than the optimizer's own.
        """
        grads, finite = self._clipped(grads, variables)
        self._apply_if_good(grads, variables, finite, lambda g, v: self._apply_shared(g, v, rate))

    def _apply_shared(self, grads: list[Any], variables: list[Any], rate: Callable | None) -> None:
        inner = self.inner
        now = tf.convert_to_tensor(rate() if rate else inner.learning_rate)
        for gradient, variable in zip(grads, variables, strict=True):
            if inner.weight_decay and inner._use_weight_decay(variable):
                decay = tf.cast(inner.weight_decay, variable.dtype) * tf.cast(now, variable.dtype)
                variable.value.assign_sub(variable.value * decay)
            inner.update_step(gradient, variable, now)
        for variable in variables:
            if variable.constraint is not None:
                variable.value.assign(variable.constraint(variable.value))
        inner.iterations.value.assign_add(1)  # in place: Keras' own would read, add and write

    def _clipped(self, grads: list[Any], variables: list[Any]) -> tuple[list[Any], tf.Tensor]:
        """(the whole batch's gradient without its scale, clipped; whether it is finite)."""
        if self.scales_loss:
            grads = [gradient / tf.cast(self.scale, gradient.dtype) for gradient in grads]
        norm = tf.linalg.global_norm([_summed_rows(gradient) for gradient in grads])
        finite = tf.math.is_finite(norm)
        ratio = tf.minimum(1.0, self.clip_norm / tf.maximum(norm, 1e-30)) if self.clip_norm else 1.0
        ratio = tf.where(finite, ratio, 0.0)
        # a bad gradient leaves the weights as they were, so that what was bad can still be looked at
        grads = [_times(gradient, ratio) for gradient in grads]
        self.kept = list(zip(grads, variables, strict=True))
        self.gradient_norm.assign(norm)
        self._note_bad(norm, finite)
        return grads, finite

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

    def _note_bad(self, norm: tf.Tensor, finite: tf.Tensor) -> None:
        """Remember the first step whose gradient no smaller loss scale would have saved."""
        bad = ~finite & (self.scale <= 1) if self.scales_loss else ~finite
        step = tf.cast(self.inner.iterations.value, tf.int64)
        place = tf.equal(tf.range(TRACED, dtype=tf.int64), step % TRACED)
        self.norms.assign(tf.where(place, norm, self.norms))
        self.first_bad_step.assign(tf.where(bad & (self.first_bad_step < 0), step, self.first_bad_step))
        self.agreed.assign_add(tf.where(bad, BAD, 0.0))  # ends the call, so that what was bad can be looked at

    def _apply_merged(self, strategy: tf.distribute.Strategy, grads: list, variables: list, finite: Any) -> None:
        """In the cross-replica context: the gradients are summed already, so no second reduction."""
        good = strategy.experimental_local_results(finite)[0]
        self._apply_if_good(grads, variables, good, lambda g, v: self._apply_summed(strategy, g, v))

    def _apply_if_good(self, grads: list, variables: list, good: tf.Tensor, apply: Callable) -> None:
        if self.scales_loss:
            tf.cond(good, lambda: self._good_step(apply, grads, variables), self._bad_step)
            return
        apply(grads, variables)

    def _apply_summed(self, strategy: tf.distribute.Strategy, grads: list, variables: list) -> None:
        """What `inner.apply` does, by Keras' documented `update_step`, with gradients already summed."""
        inner, rate = self.inner, tf.convert_to_tensor(self.inner.learning_rate)

        def update(variable: tf.Variable, gradient: Any, rate: tf.Tensor) -> None:
            if inner.weight_decay and inner._use_weight_decay(variable):
                variable.assign_sub(
                    variable * tf.cast(inner.weight_decay, variable.dtype) * tf.cast(rate, variable.dtype)
                )
            inner.update_step(gradient, variable, rate)

        for gradient, variable in zip(grads, variables, strict=True):
            strategy.extended.update(variable.value, update, args=(gradient, rate), group=False)
        for variable in variables:
            if variable.constraint is not None:
                constrain = variable.constraint
                strategy.extended.update(variable.value, lambda v, constrain=constrain: v.assign(constrain(v)))
        inner.iterations.assign_add(1)

    def _good_step(self, apply: Callable, grads: list, variables: list) -> None:
        apply(grads, variables)
        grow = self.good_steps + 1 >= 2000
        self.scale.assign(tf.where(grow, tf.minimum(self.scale * 2, 2.0**24), self.scale))
        self.good_steps.assign(tf.where(grow, tf.constant(0, tf.int64), self.good_steps + 1))

    def _bad_step(self) -> None:
        self.scale.assign(tf.maximum(self.scale / 2, 1.0))
        self.good_steps.assign(0)
        self.inner.iterations.assign_add(1)

    def get_config(self) -> dict[str, Any]:
        """What Keras serializes."""
        return {"inner": keras.saving.serialize_keras_object(self.inner), "name": self.name}


def updates_by_step(optimizer: keras.optimizers.Optimizer) -> bool:
    """Whether `update_step`, variable by variable, is all that the optimizer does at an update."""
    own = {name for cls in type(optimizer).__mro__ for name in vars(cls) if issubclass(cls, keras.optimizers.Optimizer)}
    own -= set(vars(keras.optimizers.Optimizer))
    return not optimizer.use_ema and not own & {"apply", "_backend_update_step", "_apply_weight_decay"}


def _without_none(grads: list[Any], variables: list[Any]) -> tuple[list[Any], list[Any]]:
    pairs = [(g, v) for g, v in zip(grads, variables, strict=True) if g is not None]
    if not pairs:
        raise ValueError("no variable of the model has a gradient: does the loss depend on its outputs?")
    return [g for g, _ in pairs], [v for _, v in pairs]


def _summed_rows(gradient: Any) -> Any:
    """An embedding's gradient with each row once: rows that came several times count as their sum."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    return tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))


def _times(gradient: Any, ratio: tf.Tensor) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.math.multiply_no_nan(gradient.values, tf.cast(ratio, gradient.values.dtype))
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return tf.math.multiply_no_nan(gradient, tf.cast(ratio, gradient.dtype))
