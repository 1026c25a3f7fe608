"""The bundled digits with two labels: which digit, and whether it is odd; augmented from a seed."""

import tensorflow as tf

from trainer.input.sources import Source, tfrecords


def records(split: str, data_dir: str) -> Source | None:
    """The bundled TFRecords."""
    return tfrecords(f"{data_dir}/{split}-*.tfrecord")


def decode(encoded: tf.Tensor) -> tf.Tensor:
    """PNG bytes as float32 [8, 8, 1]."""
    return tf.ensure_shape(tf.cast(tf.io.decode_png(encoded, 1), tf.float32) / 255, [8, 8, 1])


def parse(record: tf.Tensor, training: bool) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """One tf.train.Example as (image, labels)."""
    spec = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
    }
    fields = tf.io.parse_single_example(record, spec)
    label = fields["image/class/label"]
    return decode(fields["image/encoded"]), {"digit": label, "odd": tf.cast(label % 2, tf.float32)}


def augment(image: tf.Tensor, labels: dict[str, tf.Tensor], seed: tf.Tensor) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:
    """Another brightness for every example of every epoch."""
    return tf.image.stateless_random_brightness(image, 0.1, seed), labels
