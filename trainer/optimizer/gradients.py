"""Gradients as Keras gives them: a tensor for each variable, rows of an embedding (tf.IndexedSlices), or None."""

from typing import Any

import tensorflow as tf


def without_none(grads: list[Any], variables: list[Any]) -> tuple[list[Any], list[Any]]:
    """The pairs that have a gradient. Raises ValueError where none has."""
    pairs = [(g, v) for g, v in zip(grads, variables, strict=True) if g is not None]
    if not pairs:
        raise ValueError("no variable of the model has a gradient: does the loss depend on its outputs?")
    return [g for g, _ in pairs], [v for _, v in pairs]


def summed_rows(gradient: Any) -> Any:
    """An embedding's gradient with each row once: rows that came several times count as their sum."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    return tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows))


def times(gradient: Any, ratio: tf.Tensor) -> Any:
    """The gradient times a scalar; 0 where that is 0, whatever the gradient."""
    if isinstance(gradient, tf.IndexedSlices):
        values = tf.math.multiply_no_nan(gradient.values, tf.cast(ratio, gradient.values.dtype))
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return tf.math.multiply_no_nan(gradient, tf.cast(ratio, gradient.dtype))
