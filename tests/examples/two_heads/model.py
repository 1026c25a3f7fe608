"""A subclassed model with its own train_step and test_step and two outputs."""

import keras
import tensorflow as tf
from pydantic import BaseModel, Field


class Hyperparameters(BaseModel):
    """The flags of this model."""

    odd_weight: float = Field(0.5, ge=0, description="weight of the second loss")


class TwoHeads(keras.Model):
    """[batch, 8, 8, 1] into ten logits and one."""

    def __init__(self, odd_weight: float):
        super().__init__()
        self.odd_weight = odd_weight
        self.body = keras.Sequential(
            [keras.layers.Flatten(), keras.layers.Dense(64, "relu"), keras.layers.Dropout(0.1)]
        )
        self.digit = keras.layers.Dense(10, dtype="float32")
        self.odd = keras.layers.Dense(1, dtype="float32")
        self.loss_mean = keras.metrics.Mean(name="loss")
        self.digit_accuracy = keras.metrics.SparseCategoricalAccuracy(name="digit_accuracy")

    @property
    def metrics(self):
        """What is reset and reported."""
        return [self.loss_mean, self.digit_accuracy]

    def call(self, images, training=False):
        """Both outputs by name."""
        features = self.body(images, training=training)
        return {"digit": self.digit(features), "odd": self.odd(features)}

    def losses_of(self, labels, outputs):
        """Both losses, summed over the examples of this replica."""
        digit = keras.losses.sparse_categorical_crossentropy(labels["digit"], outputs["digit"], from_logits=True)
        odd = keras.losses.binary_crossentropy(labels["odd"][:, None], outputs["odd"], from_logits=True)
        return tf.reduce_mean(digit) + self.odd_weight * tf.reduce_mean(odd)

    def train_step(self, data):
        """One replica's part of an update; a loss of its own has to be divided by the replicas."""
        images, labels = data
        replicas = tf.distribute.get_replica_context().num_replicas_in_sync
        with tf.GradientTape() as tape:
            outputs = self(images, training=True)
            loss = self.losses_of(labels, outputs)
            scaled = self.optimizer.scale_loss(loss / replicas)
        self.optimizer.apply(tape.gradient(scaled, self.trainable_variables), self.trainable_variables)
        return self._report(labels, outputs, loss) | {"last_loss": loss}

    def test_step(self, data):
        """Metrics of one batch."""
        images, labels = data
        outputs = self(images, training=False)
        return self._report(labels, outputs, self.losses_of(labels, outputs))

    def _report(self, labels, outputs, loss):
        self.loss_mean.update_state(loss, sample_weight=tf.shape(labels["digit"])[0])
        self.digit_accuracy.update_state(labels["digit"], outputs["digit"])
        return {metric.name: metric.result() for metric in self.metrics}


def build_model(hyperparameters: Hyperparameters, optimizer: keras.optimizers.Optimizer) -> keras.Model:
    """The model with the optimizer that the flags describe."""
    model = TwoHeads(hyperparameters.odd_weight)
    model.compile(optimizer=optimizer)
    return model
