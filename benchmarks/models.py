"""What is trained in the comparisons: the digits model, and a ResNet-like one on 64x64 images."""

import types

import keras
import numpy as np
import tensorflow as tf

from trainer import data as digits_data
from trainer import model as digits_model
from trainer.flags import parse
from trainer.pipeline import Pipeline, Share
from trainer.settings import Settings


def digits(optimizer: keras.optimizers.Optimizer) -> keras.Model:
    """The default model."""
    return digits_model.build_model(digits_model.Hyperparameters(), optimizer)


def _block(x: keras.KerasTensor, filters: int, strides: int) -> keras.KerasTensor:
    short = x if strides == 1 else keras.layers.Conv2D(filters, 1, strides=strides, use_bias=False)(x)
    x = keras.layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False)(x)
    x = keras.layers.ReLU()(keras.layers.BatchNormalization()(x))
    x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    return keras.layers.ReLU()(keras.layers.BatchNormalization()(x) + short)


def resnet(optimizer: keras.optimizers.Optimizer) -> keras.Model:
    """Eight residual convolutions, 16 to 128 filters, on [batch, 64, 64, 3]; 10 classes."""
    inputs = keras.Input((64, 64, 3))
    x = keras.layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False)(inputs)
    for filters, strides in ((16, 1), (32, 2), (64, 2), (128, 2)):
        x = _block(x, filters, strides)
    outputs = keras.layers.Dense(10)(keras.layers.GlobalAveragePooling2D()(x))
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )
    return model


def resnet_data() -> types.SimpleNamespace:
    """A data.py of 512 random images, in memory."""
    rng = np.random.default_rng(0)
    images = rng.random((512, 64, 64, 3), dtype=np.float32)
    labels = rng.integers(0, 10, 512)

    def records(split: str, data_dir: str) -> tf.data.Dataset:
        return tf.data.Dataset.from_tensor_slices((images, labels))

    return types.SimpleNamespace(records=records, parse=lambda image, label, training: (image, label))


def subject(name: str) -> tuple[object, Pipeline, Settings]:
    """(build_model, pipeline, settings) of "digits" or "resnet"."""
    settings, _ = parse(["--batch_size=64" if name == "digits" else "--batch_size=32"])
    data = digits_data if name == "digits" else resnet_data()
    return (digits if name == "digits" else resnet), Pipeline(data, settings, Share()), settings
