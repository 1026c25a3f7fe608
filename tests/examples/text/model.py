"""A small transformer over integer tokens."""

import keras
from pydantic import BaseModel, Field


class Hyperparameters(BaseModel):
    """The flags of this model."""

    width: int = Field(16, ge=4, description="of the embeddings")
    heads: int = Field(2, ge=1, description="of the attention")


def build_model(hyperparameters: Hyperparameters, optimizer: keras.optimizers.Optimizer) -> keras.Model:
    """[batch, 12] tokens into two logits."""
    width = hyperparameters.width
    tokens = keras.Input((12,), dtype="int32")
    embedded = keras.layers.Embedding(20, width)(tokens)
    attended = keras.layers.MultiHeadAttention(hyperparameters.heads, width)(embedded, embedded)
    normed = keras.layers.LayerNormalization()(embedded + attended)
    pooled = keras.layers.GlobalAveragePooling1D()(keras.layers.Dense(width, "gelu")(normed))
    model = keras.Model(tokens, keras.layers.Dense(2, dtype="float32")(pooled))
    model.compile(
        optimizer=optimizer,
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )
    return model
