"""Batches of data that is too large to keep: read in the order of seed and epoch, and decoded on the way."""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from trainer.input import augmentation, sources, tolerate
from trainer.input.share import Share
from trainer.input.sources import DataError
from trainer.input.split import Split
from trainer.settings import Settings

LOOKED_AT = 100  # steps, in search of the record that broke one: more than are made ahead of the one that failed


class Streamed:
    """The training batches of one worker. `augment` is data.py's, or None."""

    def __init__(self, split: Split, settings: Settings, share: Share, augment: Any):
        self.split, self.settings, self.share, self.augment = split, settings, share, augment

    def batches(self, first_step: int, last_step: int) -> tf.data.Dataset:
        """Those of steps [first, last), one for each replica of this worker in turn."""
        rows = self.settings.batch_size // self.share.all_replicas
        bad = self.split.bad
        records = self._records(first_step, last_step, named=bool(bad.allowed))
        if bad.allowed:
            return tolerate.whole_batches(records, self._example(), self.split.element_spec, rows, bad)
        examples = records.map(self._example(), tf.data.AUTOTUNE, deterministic=True)
        return examples.batch(rows, drop_remainder=True)

    def locate(self, step: int) -> str:
        """The first record from this step on that can't be decoded, and why; "" where LOOKED_AT steps have none."""
        for _, (name, number, record) in self._records(step, step + LOOKED_AT, named=True):
            if told := self.split.trouble(record):
                return f"{name.numpy().decode()}, record {int(number)}: {told}"
        return ""

    def _records(self, first_step: int, last_step: int, *, named: bool) -> tf.data.Dataset:
        """(place in the job, record) of each of this worker's; `named`: with (file, number, record) for a record."""
        seed, buffer = self.settings.seed, self.settings.shuffle_buffer
        rows = self.settings.batch_size // self.share.workers
        source, per_step, own = self.split.source, self.settings.batch_size, self._own_files()
        if own is not None:
            source, per_step = own, rows
        start = first_step * per_step
        count = (self.split.count if own is None else sources.count(source)[0]) if start else 0
        epoch = start // count if count else 0
        if named:
            source = tolerate.with_names(source)
        records = tf.data.Dataset.range(epoch, 2**31).flat_map(lambda e: sources.shuffled(source, e, seed, buffer))
        records = records.skip(start - epoch * count).enumerate(start).take((last_step - first_step) * per_step)
        if self.share.workers == 1 or own is not None:
            return records
        mine = self.share.index
        return records.filter(lambda position, *_: (position % per_step) // rows == mine)

    def _own_files(self) -> sources.Files | None:
        """This worker's own files under --shard=file; None where every worker goes through all records."""
        if self.settings.shard != "file" or self.share.workers == 1:
            return None
        source = self.split.source
        if not isinstance(source, sources.Files) or len(source.paths) < self.share.workers:
            raise DataError(f"--shard=file needs a file for each of {self.share.workers} workers; use --shard=record")
        return dataclasses.replace(source, paths=source.paths[self.share.index :: self.share.workers])

    def _example(self) -> Callable:
        def example(position: tf.Tensor, record: Any) -> Any:
            element = self.split.parse_record(record)
            if self.augment is None:
                return element
            return self.augment(*element, seed=augmentation.seeds(self.settings.seed, position))

        return example
