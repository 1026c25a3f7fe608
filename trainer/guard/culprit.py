"""What was not finite first: the step is looked at once more, part by part, outside of the graph."""

from typing import Any

import keras
import tensorflow as tf


def what_came_first(loop: Any, pipeline: Any, step: int) -> str:
    """Input, weights, a layer's output, the loss or a gradient: the first of these that is not finite at `step`."""
    bad = [v.path for v in loop.model.variables if v.dtype.startswith(("float", "bfloat")) and _not_finite(v)]
    if [path for path in bad if "moving_" not in path]:
        return f"the weights: {bad[0]} was not finite before this step"
    try:
        for batch in pipeline.training(step, step + 1):
            found = _first_in(loop.model, batch)
            if found:
                return found
    except (ValueError, TypeError, tf.errors.OpError, RuntimeError) as error:
        return f"something that a second look outside of the step could not tell ({str(error).splitlines()[0][:120]})"
    share = " of this worker: see the other workers' logs" if pipeline.share.workers > 1 else ""
    return f"the gradient; a second look at the batch{share} gives finite values, so the sum or the scale overflowed"


def _first_in(model: keras.Model, batch: Any) -> str | None:
    x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
    for name, part in (("features", x), ("labels", y), ("weights of the examples", weight)):
        for leaf in tf.nest.flatten(part):
            if leaf is not None and leaf.dtype.is_floating and _not_finite(leaf):
                rows = tf.where(~tf.reduce_all(tf.math.is_finite(tf.reshape(leaf, [leaf.shape[0], -1])), 1))[:, 0]
                return f"the input: the {name} of example {int(rows[0])} of the batch are not finite"
    watched = _Outputs(model)
    with tf.GradientTape() as tape, watched:
        predicted = model(x, training=True)
        loss = model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=weight)
    if watched.first:
        return f"the output of layer {watched.first}"
    if _not_finite(loss):
        return f"the loss ({float(loss)}), from outputs that are all finite"
    gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
    for variable, gradient in reversed(list(zip(model.trainable_variables, gradients, strict=True))):
        if gradient is not None and _not_finite(tf.convert_to_tensor(gradient)):
            return f"the gradient of {variable.path}, from a finite loss"
    return None


class _Outputs:
    """Notes the first layer whose output is not finite, while the model runs eagerly."""

    def __init__(self, model: keras.Model):
        self.model, self.first = model, ""

    def __enter__(self) -> None:
        self._wrapped = [layer for layer in self.model._flatten_layers() if not getattr(layer, "layers", None)]
        for layer in self._wrapped:
            object.__setattr__(layer, "call", self._looking(layer, layer.call))

    def __exit__(self, *_: object) -> None:
        for layer in self._wrapped:
            object.__delattr__(layer, "call")

    def _looking(self, layer: Any, call: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            outputs = call(*args, **kwargs)
            if not self.first and any(_not_finite(t) for t in tf.nest.flatten(outputs) if t.dtype.is_floating):
                self.first = f"{layer.name} ({type(layer).__name__})"
            return outputs

        return called


def _not_finite(value: Any) -> bool:
    return not bool(tf.reduce_all(tf.math.is_finite(tf.cast(tf.convert_to_tensor(value), tf.float32))))
