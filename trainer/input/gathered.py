"""Batches of data that is kept decoded: step s gathers its examples by index, so any step costs the same."""

from typing import Any

import tensorflow as tf

from trainer.input import augmentation
from trainer.input.share import Share
from trainer.input.split import Split
from trainer.settings import Settings

AUTOTUNE = tf.data.AUTOTUNE


class Gathered:
    """The training batches of one worker. `augment` is data.py's, or None."""

    def __init__(self, split: Split, settings: Settings, share: Share, augment: Any):
        self.split, self.settings, self.share, self.augment = split, settings, share, augment

    def batches(self, first_step: int, last_step: int) -> tf.data.Dataset:
        """Those of steps [first, last), one for each replica of this worker in turn."""
        examples = self.split.examples
        batch_at = self.batch_at
        if self.augment is None:  # the fork's own may need AutoGraph; without it there is less to trace
            batch_at = tf.autograph.experimental.do_not_convert(batch_at)
        steps = tf.data.Dataset.range(first_step, last_step)
        steps = steps.map(lambda step: batch_at(step, examples), AUTOTUNE, deterministic=True)
        return _per_replica(steps, self.share.replicas)

    def batch_at(self, step: tf.Tensor, examples: Any) -> Any:
        """This worker's part of the batch of one step (int64 scalar), out of all decoded examples."""
        batch_size = self.settings.batch_size
        rows = batch_size // self.share.workers
        positions = step * batch_size + rows * self.share.index + tf.range(rows, dtype=tf.int64)
        indices = self._record_indices(positions, self.split.count)
        elements = tf.nest.map_structure(lambda tensor: tf.gather(tensor, indices), examples)
        if self.augment is None:
            return elements
        return augmentation.of_batch(self.augment, elements, augmentation.seeds(self.settings.seed, positions))

    def _record_indices(self, positions: tf.Tensor, count: int) -> tf.Tensor:
        epochs, within = positions // count, positions % count
        if self.settings.shuffle_buffer <= 1 or count == 1:
            return within
        seeds = tf.stack([tf.fill(tf.shape(epochs), tf.cast(self.settings.seed, tf.int64)), epochs, epochs * 0 + 1], 1)
        last = tf.constant(count - 1, tf.int64)
        # tf.random.experimental.index_shuffle takes one seed for all; a batch may span two epochs
        return tf.raw_ops.RandomIndexShuffle(index=within, seed=seeds, max_index=last, rounds=4)


def _per_replica(batches: tf.data.Dataset, replicas: int) -> tf.data.Dataset:
    """Each batch cut into one for each replica, in turn."""
    if replicas == 1:
        return batches

    def cut(*batch: Any) -> Any:
        return tf.nest.map_structure(
            lambda tensor: tf.reshape(tensor, [replicas, tensor.shape[0] // replicas, *tensor.shape[1:]]), batch
        )

    return batches.map(cut, AUTOTUNE, deterministic=True).unbatch()
