"""YOURS: where the records are, and how one record becomes (features, label).

Two functions are asked for, `records` and `parse`; DATA_DIR, `decode` and CLASS_NAMES are optional.
Shuffling, sharding, batching, repeating and resuming are trainer/input/'s and need nothing from here.
"""

import tensorflow as tf

from trainer.input.sources import Source, tfrecords

DATA_DIR = "data/digits"  # what --data_dir is where it isn't given
CLASS_NAMES = [str(digit) for digit in range(10)]


def records(split: str, data_dir: str) -> Source | None:
    """The undecoded records of a split, "train", "validation" or "test"; None where there is no such split."""
    return tfrecords(f"{data_dir}/{split}-*.tfrecord")


def decode(encoded: tf.Tensor) -> tf.Tensor:
    """PNG bytes, which callers of the served model send, as its features: float32 [8, 8, 1], 0 to 1."""
    image = tf.io.decode_png(encoded, channels=1)
    return tf.ensure_shape(tf.cast(image, tf.float32) / 255, [8, 8, 1])


def parse(record: tf.Tensor, training: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """One record as (features, label), or (features, label, weight); augment where `training`."""
    fields = tf.io.parse_single_example(
        record,
        {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        },
    )
    return decode(fields["image/encoded"]), fields["image/class/label"]
