"""A functional model with two inputs and an optimizer of its own; a dataclass of hyperparameters."""

import dataclasses

import keras


@dataclasses.dataclass
class Hyperparameters:
    """The flags of this model."""

    units: int = 16
    l2: float = 1e-4


def build_model(hyperparameters: Hyperparameters, optimizer: keras.optimizers.Optimizer) -> keras.Model:
    """[batch, 10] and [batch, 20] into one logit."""
    inputs = {"mean": keras.Input((10,), name="mean"), "rest": keras.Input((20,), name="rest")}
    joined = keras.layers.BatchNormalization(momentum=0.9)(keras.layers.Concatenate()(list(inputs.values())))
    regularizer = keras.regularizers.L2(hyperparameters.l2)
    hidden = keras.layers.Dense(hyperparameters.units, "relu", kernel_regularizer=regularizer)(joined)
    model = keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(hidden))
    model.compile(
        optimizer=keras.optimizers.AdamW(5e-3, weight_decay=1e-3, global_clipnorm=2.0),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=[keras.metrics.BinaryAccuracy(name="accuracy", threshold=0.0), keras.metrics.AUC(from_logits=True)],
    )
    return model
