"""What is trained in the comparisons: the digits model, and a ResNet-like one on 64x64 images."""

import types
from collections.abc import Callable
from types import ModuleType

import keras
import numpy as np
import tensorflow as tf

from trainer import data as digits_data
from trainer import model as digits_model
from trainer.flags import parse
from trainer.input.pipeline import Pipeline
from trainer.input.share import Share
from trainer.settings import Settings


def digits(optimizer: keras.optimizers.Optimizer) -> keras.Model:
    """The default model."""
    return digits_model.build_model(digits_model.Hyperparameters(), optimizer)


def _block(layers: ModuleType, x: object, filters: int, strides: int) -> object:
    short = x if strides == 1 else layers.Conv2D(filters, 1, strides=strides, use_bias=False)(x)
    x = layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False)(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    return layers.ReLU()(layers.BatchNormalization()(x) + short)


def resnet(optimizer: keras.optimizers.Optimizer, kit: ModuleType = keras) -> keras.Model:
    """Eight residual convolutions, 16 to 128 filters, on [batch, 64, 64, 3]; 10 classes. `kit`: keras or tf_keras."""
    layers = kit.layers
    inputs = kit.Input((64, 64, 3))
    x = layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False)(inputs)
    for filters, strides in ((16, 1), (32, 2), (64, 2), (128, 2)):
        x = _block(layers, x, filters, strides)
    outputs = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    model = kit.Model(inputs, outputs)
    model.compile(
        optimizer=optimizer,
        loss=kit.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[kit.metrics.SparseCategoricalAccuracy(name="accuracy")],
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


BATCH = {"digits": 64, "resnet": 32}


def build_of(name: str, kit: ModuleType = keras) -> Callable:
    """build(optimizer) of "digits" (Keras 3 alone) or "resnet"."""
    return digits if name == "digits" else lambda optimizer: resnet(optimizer, kit)


def data_of(name: str) -> object:
    """The data.py of "digits" or "resnet"."""
    return digits_data if name == "digits" else resnet_data()


def subject(name: str) -> tuple[Callable, Pipeline, Settings]:
    """(build_model, pipeline, settings) of "digits" or "resnet"."""
    settings, _ = parse([f"--batch_size={BATCH[name]}"])
    return build_of(name), Pipeline(data_of(name), settings, Share()), settings
