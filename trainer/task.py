"""The entry point of a training job: settings, data, model, loop, export."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import tensorflow as tf

from trainer import data, model


def batches(split: str, batch_size: int, training: bool) -> tf.data.Dataset:
    """Batches of (features, label), each example once."""
    dataset = data.records(split, "data/digits")
    if training:
        dataset = dataset.shuffle(10_000, seed=0)
    dataset = dataset.map(lambda record: data.parse(record, training), tf.data.AUTOTUNE)
    return dataset.batch(batch_size, drop_remainder=training).prefetch(tf.data.AUTOTUNE)


def main() -> int:
    """Train the default model and export it."""
    keras.utils.set_random_seed(0)
    digits = model.build_model(model.Hyperparameters(), keras.optimizers.Adam(1e-3))
    digits.fit(batches("train", 64, True), epochs=20, verbose=2)
    reached = digits.evaluate(batches("test", 64, False), return_dict=True, verbose=0)
    digits.export("jobs/digits/model")
    print(f"test accuracy {reached['accuracy']:.4f}; the model is in jobs/digits/model")
    return 0


if __name__ == "__main__":
    sys.exit(main())
