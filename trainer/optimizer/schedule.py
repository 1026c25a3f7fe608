"""The learning rate of each update."""

from typing import Any

import keras
import tensorflow as tf


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
