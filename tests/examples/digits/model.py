"""YOURS: the Keras model, its loss, its metrics and its hyperparameters.

Two names are asked for: `Hyperparameters`, whose fields become flags (`--dropout=0.3`) that the
tuning service can set, and `build_model`, which returns a compiled Keras model of any kind.
"""

import keras
from pydantic import BaseModel, Field


class Hyperparameters(BaseModel):
    """The flags of this model. Standard library and pydantic only: they are read before TensorFlow is."""

    width: int = Field(20, ge=1, le=1024, description="filters of the first convolution")
    dropout: float = Field(0.3, ge=0, lt=1, description="share of the features dropped before the last layer")


def build_model(hyperparameters: Hyperparameters, optimizer: keras.optimizers.Optimizer) -> keras.Model:
    """A small convolutional classifier of [batch, 8, 8, 1] images into 10 logits.

    `optimizer` is the one that the flags describe; compile with another and that one is used.
    """
    width = hyperparameters.width
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(width, 3, padding="same", use_bias=False),
            keras.layers.BatchNormalization(momentum=0.9),
            keras.layers.ReLU(),
            keras.layers.Conv2D(2 * width, 3, padding="same", strides=2, use_bias=False),
            keras.layers.BatchNormalization(momentum=0.9),
            keras.layers.ReLU(),
            keras.layers.Flatten(),
            keras.layers.Dropout(hyperparameters.dropout),
            keras.layers.Dense(10, dtype="float32"),
        ],
        name="digits",
    )
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )
    return model
