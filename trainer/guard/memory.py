"""Out of memory: what the batch took, the largest that fits, and splitting it into micro-batches."""

import gc
import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from trainer import said
from trainer.settings import Settings


class OutOfMemoryError(Exception):
    """The batch doesn't fit the device's memory; str() says what took how much, and what would fit."""


def explain(loop: Any, settings: Settings, error: tf.errors.ResourceExhaustedError) -> str:
    """What the job wanted, as far as known, and the largest batch that fits."""
    share = loop.pipeline.share
    rows = settings.batch_size // share.all_replicas
    micro = rows // settings.accumulate
    model_bytes = sum(_bytes(v) for v in loop.model.variables)
    optimizer_bytes = sum(_bytes(v) for v in loop.optimizer.variables)
    fits = largest(lambda n: gradient_fits(loop.model, loop.pipeline.element_spec, n), micro - 1)
    batch = fits * share.all_replicas
    if fits:
        splits = next(n for n in range(1, rows + 1) if rows % n == 0 and rows // n <= fits)
        fix = (
            f"{fits} examples per replica fit (--batch_size={batch}); --batch_size_fit=accumulate or "
            f"--accumulate={splits} keeps --batch_size={settings.batch_size} and its result"
        )
    else:
        fix = "not even 1 example fits: a smaller model, --precision=mixed_bfloat16 or a device with more memory"
    return (
        f"out of memory with {micro} examples per replica in one pass ({said.first_line(error)}). "
        f"The model takes {_size(model_bytes)}, the optimizer {_size(optimizer_bytes)}, gradients "
        f"{_size(model_bytes)}; the rest is activations, which grow with the batch{_device_peak()}. {fix}"
    )


def _bytes(variable: Any) -> int:
    return math.prod(variable.shape) * tf.as_dtype(variable.dtype).size


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def _device_peak() -> str:
    devices = tf.config.list_logical_devices("GPU")
    if not devices:
        return ""
    return f" (peak on {devices[0].name}: {_size(tf.config.experimental.get_memory_info(devices[0].name)['peak'])})"


def gradient_fits(model: keras.Model, spec: Any, rows: int) -> bool:
    """Whether loss and gradients of `rows` examples of zeros can be computed; `spec` is a batch's, [batch, ...]."""

    def step() -> tf.Tensor:
        batch = tf.nest.map_structure(lambda leaf: tf.zeros([rows, *leaf.shape[1:]], leaf.dtype), spec)
        x, y, weight = keras.utils.unpack_x_y_sample_weight(batch)
        with tf.GradientTape() as tape:
            predicted = model(x, training=True)
            loss = model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=weight)
        gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
        return tf.add_n([tf.reduce_sum(tf.cast(g, tf.float32)) for g in gradients if g is not None])

    try:
        tf.function(step)().numpy()
    except (tf.errors.ResourceExhaustedError, MemoryError):
        return False
    finally:
        gc.collect()
    return True


def largest(fits: Callable[[int], bool], limit: int) -> int:
    """The largest number up to `limit` that fits, 0 where none does: doubling, then halving the distance.

    The device that ran full in between is free again: `fits` holds nothing.
    """
    low, high, trial = 0, limit + 1, 1
    while low < trial <= limit:
        if not fits(trial):
            high = trial
            break
        low, trial = trial, min(2 * trial, limit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def splits_that_fit(model: keras.Model, spec: Any, accumulate: int) -> int:
    """The fewest micro-batches, from `accumulate` up, in which one replica's batch (`spec`) fits.

    Raises OutOfMemoryError.
    """
    rows = tf.nest.flatten(spec)[0].shape[0]
    for parts in range(accumulate, rows + 1):
        if rows % parts == 0 and gradient_fits(model, spec, rows // parts):
            return parts
    raise OutOfMemoryError(
        "not even 1 example fits the memory: a smaller model, --precision=mixed_bfloat16 or a device with more memory"
    )
