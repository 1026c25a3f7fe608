"""What the inner optimizer's own `apply` does, by Keras' documented `update_step`, with gradients already summed."""

from typing import Any

import keras
import tensorflow as tf


def updates_by_step(inner: keras.optimizers.Optimizer) -> bool:
    """Whether `update_step`, variable by variable, is all that the optimizer does at an update."""
    own = {name for cls in type(inner).__mro__ for name in vars(cls) if issubclass(cls, keras.optimizers.Optimizer)}
    own -= set(vars(keras.optimizers.Optimizer))
    return not inner.use_ema and not own & {"apply", "_backend_update_step", "_apply_weight_decay"}


def apply_shared(inner: keras.optimizers.Optimizer, grads: list[Any], variables: list[Any], rate: tf.Tensor) -> None:
    """Update variables of which there is one copy, whoever writes: everything is added in place."""
    for gradient, variable in zip(grads, variables, strict=True):
        _step(inner, variable.value, gradient, rate)
    for variable in variables:
        if variable.constraint is not None:
            variable.value.assign(variable.constraint(variable.value))
    inner.iterations.value.assign_add(1)  # in place: Keras' own would read, add and write


def apply_mirrored(
    inner: keras.optimizers.Optimizer, strategy: tf.distribute.Strategy, grads: list[Any], variables: list[Any]
) -> None:
    """Update every replica's copy, in the cross-replica context."""
    rate = tf.convert_to_tensor(inner.learning_rate)

    def update(variable: tf.Variable, gradient: Any, rate: tf.Tensor) -> None:
        _step(inner, variable, gradient, rate)

    for gradient, variable in zip(grads, variables, strict=True):
        strategy.extended.update(variable.value, update, args=(gradient, rate), group=False)
    for variable in variables:
        if variable.constraint is not None:
            constrain = variable.constraint
            strategy.extended.update(variable.value, lambda v, constrain=constrain: v.assign(constrain(v)))
    inner.iterations.assign_add(1)


def _step(inner: keras.optimizers.Optimizer, variable: tf.Variable, gradient: Any, rate: tf.Tensor) -> None:
    if inner.weight_decay and inner._use_weight_decay(variable):
        variable.assign_sub(variable * tf.cast(inner.weight_decay, variable.dtype) * tf.cast(rate, variable.dtype))
    inner.update_step(gradient, variable, rate)
