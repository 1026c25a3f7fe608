"""data.py's `augment`, seeded by an example's place in the job: the same after a restart, on any worker."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def seeds(seed: int, positions: tf.Tensor) -> tf.Tensor:
    """A seed (int32 [..., 2]) for each place in the job (int64 [...]), whatever step or worker it comes to."""
    low = tf.cast(tf.bitwise.bitwise_and(positions, 0x7FFFFFFF), tf.int32)
    return tf.stack([tf.fill(tf.shape(low), seed), low], -1)


def of_batch(augment: Callable, elements: Any, seeds: tf.Tensor) -> Any:
    """`augment` of each of a batch's examples: tensors of [batch, ...] into such."""
    signature = tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape[1:], t.dtype), elements)
    return tf.map_fn(lambda args: augment(*args[0], seed=args[1]), (elements, seeds), fn_output_signature=signature)
