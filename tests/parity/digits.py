"""The model and the data that every strategy trains here: scikit-learn's digits, [8, 8, 1], in ten classes.

Own copies, so that a fork's model.py and data.py don't change what is compared. They are split as data/digits is,
every class alike: the last quarter as it comes is of other writers, and no strategy reaches 0.97 on those.
"""

import keras
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

from scripts.make_digits import split_indices

SPLITS = ("train", "validation")


def records(split: str, data_dir: str) -> tf.data.Dataset | None:
    """(features, label) of a split."""
    if split not in SPLITS:
        return None
    found = load_digits()
    chosen = split_indices(found.target)[split]
    features = (found.images[chosen, ..., None] / 16).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((features, found.target[chosen].astype(np.int64)))


def parse(features: tf.Tensor, label: tf.Tensor, training: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """A record as it is."""
    return features, label


def build_model(plain: bool, optimizer: keras.optimizers.Optimizer) -> keras.Model:
    """A small CNN with BatchNorm and Dropout, or with neither where `plain`."""
    layers = [keras.Input((8, 8, 1)), keras.layers.Conv2D(16, 3, padding="same")]
    layers += [] if plain else [keras.layers.BatchNormalization(momentum=0.9)]
    layers += [keras.layers.ReLU(), keras.layers.MaxPool2D(), keras.layers.Flatten()]
    layers += [keras.layers.Dense(64, activation="relu")]
    layers += [] if plain else [keras.layers.Dropout(0.3)]
    model = keras.Sequential([*layers, keras.layers.Dense(10)])
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )
    return model
