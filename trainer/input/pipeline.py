"""The input around data.py: order, sharding, batching, repeating; all from the seed and the step.

Example number n of the job is record n % N of epoch n // N; step s takes the examples
[s * batch, (s + 1) * batch). So a job that stops and goes on, and one with other workers, sees the same.
Data that fits split.CACHE_BYTES once decoded is kept in memory and gathered by index; other data is streamed.
"""

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow as tf

from trainer.input import evaluation, sources, tolerate
from trainer.input.share import Share
from trainer.input.sources import DataError
from trainer.input.split import Split
from trainer.input.tolerate import BadRecords
from trainer.settings import Settings

AUTOTUNE = tf.data.AUTOTUNE


class Pipeline:
    """The batches of a job. `data` is data.py or a module like it."""

    def __init__(self, data: ModuleType, settings: Settings, share: Share):
        self.settings, self.share, self.data = settings, share, data
        self.batch_size = settings.batch_size
        self.evaluation_batch = settings.batch_size // settings.accumulate  # what fits in one pass
        self.bad = BadRecords(settings.skip_bad_records)
        self._splits: dict[str, Split | None] = {}

    def split(self, name: str) -> Split | None:
        """A split by name, opened once; None where data.py has none of that name."""
        if name not in self._splits:
            source = sources.open_source(self.data.records, name, self.settings.data_dir)
            self._splits[name] = source and Split(name, source, self.data, name == "train", self.bad)
        return self._splits[name]

    @property
    def steps_per_epoch(self) -> int:
        """Updates in an epoch: the flag's, or the whole batches that the data fills."""
        settings = self.settings
        if settings.steps_per_epoch:
            return settings.steps_per_epoch
        examples = settings.examples_per_epoch or self.split("train").count
        if examples < self.batch_size:
            raise DataError(f"--batch_size={self.batch_size} is more than the {examples} examples of an epoch")
        return examples // self.batch_size

    @property
    def total_steps(self) -> int:
        """Updates of the whole job."""
        return self.steps_per_epoch * self.settings.epochs

    @property
    def element_spec(self) -> Any:
        """The training batch of one replica: tf.TensorSpec of [batch, ...], static throughout."""
        spec = self.split("train").element_spec
        for leaf in tf.nest.flatten(spec):
            if not leaf.shape.is_fully_defined():
                raise DataError(
                    f"data.parse gives a tensor of shape {leaf.shape}; training needs static shapes: "
                    "resize, pad or tf.ensure_shape it"
                )
        rows = self.batch_size // self.share.all_replicas
        return tf.nest.map_structure(lambda leaf: tf.TensorSpec([rows, *leaf.shape], leaf.dtype), spec)

    def training(self, first_step: int, last_step: int) -> tf.data.Dataset:
        """The batches of steps [first, last), one for each replica of this worker in turn."""
        split = self.split("train")
        make = self._gathered if split.fits else self._streamed
        batches = make(split, first_step, last_step).prefetch(self._ahead(split))
        return batches.with_options(_options(tuned=not split.fits))

    def _ahead(self, split: Split) -> int:
        """How many batches are made ahead of their step: few where they are large."""
        return (8 if split.fits else 2) * self.share.replicas

    def _gathered(self, split: Split, first_step: int, last_step: int) -> tf.data.Dataset:
        examples = split.examples
        steps = tf.data.Dataset.range(first_step, last_step)
        batch_at = self.batch_at
        if not hasattr(self.data, "augment"):  # the fork's own may need AutoGraph; without it there is less to trace
            batch_at = tf.autograph.experimental.do_not_convert(batch_at)
        steps = steps.map(lambda step: batch_at(step, examples), AUTOTUNE, deterministic=True)
        return _per_replica(steps, self.share.replicas)

    def batch_at(self, step: tf.Tensor, examples: Any) -> Any:
        """This worker's part of the batch of one step (int64 scalar), out of all decoded examples."""
        rows, count = self.batch_size // self.share.workers, self.split("train").count
        positions = step * self.batch_size + rows * self.share.index + tf.range(rows, dtype=tf.int64)
        indices = self._record_indices(positions, count)
        elements = tf.nest.map_structure(lambda tensor: tf.gather(tensor, indices), examples)
        return self._augmented(positions, elements)

    def _record_indices(self, positions: tf.Tensor, count: int) -> tf.Tensor:
        epochs, within = positions // count, positions % count
        if self.settings.shuffle_buffer <= 1 or count == 1:
            return within
        seeds = tf.stack([tf.fill(tf.shape(epochs), tf.cast(self.settings.seed, tf.int64)), epochs, epochs * 0 + 1], 1)
        last = tf.constant(count - 1, tf.int64)
        # tf.random.experimental.index_shuffle takes one seed for all; a batch may span two epochs
        return tf.raw_ops.RandomIndexShuffle(index=within, seed=seeds, max_index=last, rounds=4)

    def _augmented(self, positions: tf.Tensor, elements: Any) -> Any:
        augment = getattr(self.data, "augment", None)
        if augment is None:
            return elements
        seeds = self._seeds(positions)
        signature = tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape[1:], t.dtype), elements)
        return tf.map_fn(lambda args: augment(*args[0], seed=args[1]), (elements, seeds), fn_output_signature=signature)

    def _seeds(self, positions: tf.Tensor) -> tf.Tensor:
        """A seed (int32 [2]) for every example of the job, whatever step or worker it comes to."""
        low = tf.cast(tf.bitwise.bitwise_and(positions, 0x7FFFFFFF), tf.int32)
        return tf.stack([tf.fill(tf.shape(low), self.settings.seed), low], -1)

    def _streamed(self, split: Split, first_step: int, last_step: int) -> tf.data.Dataset:
        rows = self.batch_size // self.share.workers
        source, per_step, by_file = split.source, self.batch_size, self._by_file(split)
        if by_file is not None:
            source, per_step = by_file, rows
        start = first_step * per_step
        count = (split.count if by_file is None else sources.count(source)[0]) if start else 0
        epoch = start // count if count else 0
        seed, buffer = self.settings.seed, self.settings.shuffle_buffer
        named = tolerate.with_names(source) if self.bad.allowed else source
        records = tf.data.Dataset.range(epoch, 2**31).flat_map(lambda e: sources.shuffled(named, e, seed, buffer))
        records = records.skip(start - epoch * count).enumerate(start).take((last_step - first_step) * per_step)
        if self.share.workers > 1 and by_file is None:
            mine = self.share.index
            records = records.filter(lambda position, *_: (position % per_step) // rows == mine)
        per_replica = self.batch_size // self.share.all_replicas
        if self.bad.allowed:
            return tolerate.batches(records, self._example(split), split.element_spec, per_replica, self.bad)
        examples = records.map(self._example(split), AUTOTUNE, deterministic=True)
        return examples.batch(per_replica, drop_remainder=True)

    def _by_file(self, split: Split) -> sources.Files | None:
        """This worker's own files under --shard=file; None where every worker goes through all records."""
        if self.settings.shard != "file" or self.share.workers == 1:
            return None
        if not isinstance(split.source, sources.Files) or len(split.source.paths) < self.share.workers:
            raise DataError(f"--shard=file needs a file for each of {self.share.workers} workers; use --shard=record")
        mine = split.source.paths[self.share.index :: self.share.workers]
        return dataclasses.replace(split.source, paths=mine)

    def _example(self, split: Split) -> Callable:
        augment = getattr(self.data, "augment", None)

        def example(position: tf.Tensor, record: Any) -> Any:
            element = split.parse(*(record if isinstance(record, tuple) else (record,)))
            return augment(*element, seed=self._seeds(position)) if augment else element

        return example

    def evaluation(self, name: str) -> tuple[tf.data.Dataset, int]:
        """(batches, steps) of a split: every example once. A batch for each replica of this worker in turn.

        The last step's batches share what is left; some may be empty.
        """
        split = self.split(name)
        batches, steps = evaluation.batches(split, self.evaluation_batch, self.share)
        return batches.prefetch(self._ahead(split)).with_options(_options()), steps

    def plain(self, name: str) -> tf.data.Dataset:
        """Batches of a split in its order, for one process to look at."""
        split = self.split(name)
        parsed = sources.dataset(split.source).map(split.parse, AUTOTUNE)
        return parsed.batch(self.evaluation_batch).with_options(_options())


def _per_replica(batches: tf.data.Dataset, replicas: int) -> tf.data.Dataset:
    """Each batch cut into one for each replica, in turn."""
    if replicas == 1:
        return batches

    def cut(*batch: Any) -> Any:
        return tf.nest.map_structure(
            lambda tensor: tf.reshape(tensor, [replicas, tensor.shape[0] // replicas, *tensor.shape[1:]]), batch
        )

    return batches.map(cut, AUTOTUNE, deterministic=True).unbatch()


def _options(tuned: bool = False) -> tf.data.Options:
    """Every dataset's. `tuned`: with TensorFlow's tuner, which is worth a tenth of the speed where much is decoded.

    Its thread sleeps for up to a minute and can miss that its dataset has ended (Model::OptimizeLoop is woken before
    the cancellation shows), which held whole jobs up: the loop keeps the iterators of tuned datasets. Without it
    AUTOTUNE means one call a core.
    """
    options = tf.data.Options()
    options.autotune.enabled = tuned
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options
