"""Dynamic loss scaling for float16, as Keras' LossScaleOptimizer does it, for the gradient of the whole batch."""

import tensorflow as tf

from trainer.optimizer.replicated import mirrored

GROWS_AFTER, LARGEST, SMALLEST = 2000, 2.0**24, 1.0


class LossScale:
    """The factor of the loss; made under the strategy's scope."""

    def __init__(self, first: float):
        self.factor = mirrored(first, tf.float32, "loss_scale")
        self.good_steps = mirrored(0, tf.int64, "good_steps")

    @property
    def variables(self) -> list[tf.Variable]:
        """What a checkpoint needs."""
        return [self.factor, self.good_steps]

    def good(self) -> None:
        """After a step whose gradient was finite."""
        grow = self.good_steps + 1 >= GROWS_AFTER
        self.factor.assign(tf.where(grow, tf.minimum(self.factor * 2, LARGEST), self.factor))
        self.good_steps.assign(tf.where(grow, tf.constant(0, tf.int64), self.good_steps + 1))

    def bad(self) -> None:
        """After a step whose gradient was not, and which was left out."""
        self.factor.assign(tf.maximum(self.factor / 2, SMALLEST))
        self.good_steps.assign(0)
