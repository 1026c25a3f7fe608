"""A loss or gradient that is not finite: when it began, what came first, and going back.

The step on the device keeps the first bad step and the last losses and gradient norms; a bad gradient is not
applied. So the look at what was bad costs nothing until there is something to look at.
"""

import math
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from trainer.optimizer.whole_batch import TRACED

REWINDS = 3
FIXES = (
    "what helps, in this order: 1. a lower --learning_rate  2. more --warmup_steps  3. a lower --clip_norm  "
    "4. the Adam optimizer  5. a look at a custom loss for log(0), x/0 or sqrt(0)"
)


class NotANumberError(Exception):
    """A loss or gradient was NaN or infinite; str() says when, what came first, and what to do."""

    def __init__(self, step: int, message: str):
        super().__init__(message)
        self.step = step


class Moment(NamedTuple):
    """One step before the end, counted from 0. The loss is the first replica's; None where no metric keeps it."""

    step: int
    loss: float | None
    gradient_norm: float
    learning_rate: float


def find_bad(training: Any, step: int, logs: dict[str, float]) -> None:
    """Raise NotANumberError where a step of the call that ended at `step` was bad."""
    loop = training.loop
    bad = int(np.asarray(loop.optimizer.first_bad_step.numpy()))
    if bad < 0 and math.isfinite(logs.get("loss", 0.0)):
        return
    seen = bad if bad >= 0 else step - 1
    moments = history(loop, seen)
    lines = [
        f"the {'gradient' if bad >= 0 else 'loss'} of step {seen} (counted from 0) is not finite; "
        f"steps {moments[0].step} to {seen}:",
        *(describe(moment) for moment in moments),
        f"first came {what_came_first(loop, training.pipeline, seen)}",
        FIXES,
    ]
    raise NotANumberError(seen, "\n".join(lines))


def history(loop: Any, step: int) -> list[Moment]:
    """The steps up to `step` that the device still knows, the oldest first."""
    norms, held = loop.optimizer.norms.numpy(), loop.losses.numpy()
    first = max(0, step - TRACED + 2)  # the loss of a step is the difference to the one before
    moments = []
    for number in range(first, step + 1):
        total, count = held[number % TRACED] - (held[(number - 1) % TRACED] if number else 0)
        if count <= 0:  # the metrics were reset: a new epoch began
            total, count = held[number % TRACED]
        loss = float(total / count) if loop.loss_metric is not None and count > 0 else None
        moments.append(Moment(number, loss, float(norms[number % TRACED]), _rate(loop.optimizer, number)))
    return moments


def _rate(optimizer: Any, step: int) -> float:
    schedule = getattr(optimizer, "schedule", None)
    return float(schedule(tf.constant(step)) if schedule else np.asarray(optimizer.learning_rate))


def describe(moment: Moment) -> str:
    """A line of the report."""
    loss = "unknown" if moment.loss is None else f"{moment.loss:.6g}"
    return (
        f"  step {moment.step}  loss {loss}  gradient norm {moment.gradient_norm:.4g}  rate {moment.learning_rate:.4g}"
    )


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


def repair(training: Any, error: NotANumberError) -> None:
    """Go back to the last good checkpoint with half the learning rate; raise where that isn't wanted or possible."""
    made = training.progress.rewinds
    if training.settings.on_nan != "rewind":
        training.checkpoints.wait()
        saved = training.checkpoints.saved_step
        kept = f"; the checkpoint of step {saved} is kept" if saved >= 0 else ""
        raise NotANumberError(
            error.step, f"{error}\n--on_nan=rewind goes back and on with half the learning rate{kept}"
        )
    if len(made) >= REWINDS:
        raise NotANumberError(
            error.step, f"{error}\nit came back after {REWINDS} rewinds, the last to step {made[-1]['to']}"
        )
    console, optimizer = training.report.console, training.loop.optimizer
    training.checkpoints.wait()
    console.warn(str(error))
    training.resume(training.checkpoints.restore(console.warn))
    halvings = len(made) + 1 - len(training.progress.rewinds)
    _lower(optimizer, 0.5**halvings, error)
    training.progress.rewinds = [*made, {"from": error.step, "to": training.loop.step}]
    optimizer.first_bad_step.assign(-1)
    optimizer.agreed.assign(0.0)
    console.warn(
        f"rewind {len(made) + 1} of {REWINDS}: back from step {error.step} to {training.loop.step}, on with "
        "half the learning rate"
    )


def _lower(optimizer: Any, ratio: float, error: NotANumberError) -> None:
    schedule = getattr(optimizer, "schedule", None)
    if schedule is not None:
        schedule.factor.assign(float(schedule.factor.numpy()) * ratio)
        return
    try:
        optimizer.learning_rate = float(np.asarray(optimizer.learning_rate)) * ratio
    except (TypeError, AttributeError):
        raise NotANumberError(
            error.step,
            f"{error}\nno rewind: the model's own optimizer has a schedule that can't be halved; use the offered one",
        ) from None
