"""The fork's model, compiled, with an optimizer and a schedule that act on the whole batch."""

from typing import Any

import keras
import tensorflow as tf

from trainer import model
from trainer.input.sources import DataError
from trainer.optimizer.schedule import Schedule
from trainer.optimizer.whole_batch import WholeBatchOptimizer
from trainer.settings import Settings, warmup_of


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
    """The fork's own callbacks, if model.py has any. Raises DataError for what is no list of callbacks."""
    make = getattr(model, "callbacks", None)
    made = make(hyperparameters) if make else []
    if not isinstance(made, list | tuple):
        raise DataError(f"trainer/model.py: callbacks returned {_kind(made)}; a list of keras callbacks is expected")
    for one in made:
        if not isinstance(one, keras.callbacks.Callback):
            raise DataError(f"trainer/model.py: among callbacks is {one!r}; a keras.callbacks.Callback is expected")
    return list(made)
