"""The fork's model, compiled, with an optimizer and a schedule that act on the whole batch."""

from typing import Any

import keras
import tensorflow as tf

from trainer import model
from trainer.input.sources import DataError
from trainer.settings import Settings, warmup_of
from trainer.update import WholeBatchOptimizer


class Schedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then cosine decay to 0 or none; times `factor`, which callbacks and a rewind change."""

    def __init__(self, peak: float, warmup_steps: int, decay_steps: int, factor: tf.Variable):
        self.peak, self.warmup_steps, self.decay_steps, self.factor = peak, warmup_steps, decay_steps, factor

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """The learning rate of update number `step`, counted from 0; float32 scalar."""
        step = tf.cast(step, tf.float32)
        rate = tf.constant(self.peak, tf.float32)
        if self.warmup_steps:
            rate *= tf.minimum(1.0, (step + 1) / self.warmup_steps)
        if self.decay_steps:
            done = tf.clip_by_value((step - self.warmup_steps) / self.decay_steps, 0.0, 1.0)
            rate *= 0.5 * (1 + tf.cos(3.141592653589793 * done))
        return rate * tf.cast(self.factor, tf.float32)

    def get_config(self) -> dict[str, Any]:
        """What Keras serializes."""
        return {"peak": self.peak, "warmup_steps": self.warmup_steps, "decay_steps": self.decay_steps}


def build(settings: Settings, hyperparameters: Any, total_steps: int) -> keras.Model:
    """The fork's model, compiled, with its optimizer (or the flags') acting on the whole batch."""
    only_first = tf.VariableAggregation.ONLY_FIRST_REPLICA
    factor = tf.Variable(1.0, trainable=False, name="learning_rate_factor", aggregation=only_first)
    warmup_steps = warmup_of(settings, total_steps)
    decay_steps = max(1, total_steps - warmup_steps) if settings.decay == "cosine" else 0
    schedule = Schedule(settings.learning_rate, warmup_steps, decay_steps, factor)
    offered = keras.optimizers.Adam(schedule)
    made = model.build_model(hyperparameters, offered)
    if not isinstance(made, keras.Model) or not made.compiled:
        raise DataError(f"trainer/model.py: build_model returned {_kind(made)}; a compiled keras.Model is expected")
    inner, scale = made.optimizer, 0.0
    if isinstance(inner, keras.optimizers.LossScaleOptimizer):
        inner, scale = inner.inner_optimizer, inner.initial_scale
    made.optimizer = WholeBatchOptimizer(
        inner,
        clip_norm=settings.clip_norm if inner is offered else 0.0,
        micro_batches=settings.accumulate if settings.accumulate > 1 or settings.jit else 0,
        loss_scale=scale,
    )
    if inner is offered:
        made.optimizer.schedule = schedule
    return made


def _kind(made: Any) -> str:
    return "a keras.Model that is not compiled" if isinstance(made, keras.Model) else type(made).__name__


def callbacks(hyperparameters: Any) -> list[keras.callbacks.Callback]:
    """The fork's own callbacks, if model.py has any."""
    make = getattr(model, "callbacks", None)
    return list(make(hyperparameters)) if make else []
