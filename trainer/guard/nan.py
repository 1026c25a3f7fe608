"""A loss or gradient that is not finite: when it began, and the steps around it.

The step on the device keeps the first bad step and the last losses and gradient norms; a bad gradient is not
applied. So the look at what was bad costs nothing until there is something to look at.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from trainer.guard.culprit import what_came_first
from trainer.optimizer.whole_batch import TRACED

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
