"""--skip_bad_records: stepping over records that can't be decoded, without moving the others.

Every record keeps its place in the order; where one is bad, another example of its batch is repeated. So
which examples a step sees is still a function of the seed and the step alone.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from trainer import said
from trainer.input.sources import DataError, Files, Source


@dataclasses.dataclass
class BadRecords:
    """What has been stepped over, each named once, and how many may be."""

    allowed: int
    seen: set[str] = dataclasses.field(default_factory=set)

    def note(self, name: str) -> None:
        """Raises DataError where this is one too many."""
        self.seen.add(name)
        if len(self.seen) > self.allowed:
            first = ", ".join(sorted(self.seen)[:5])
            raise DataError(f"{len(self.seen)} bad records, --skip_bad_records={self.allowed} allows fewer: {first}")

    def check(self) -> None:
        """Raises DataError where more have been seen than are allowed."""
        if len(self.seen) > self.allowed:
            self.note(min(self.seen))


def decode_all(source: Source, parse: Callable, bad: BadRecords) -> Any:
    """All decodable examples, tensors of [count, ...]; the others are noted."""
    good = []
    for name, record in named_records(source):
        try:
            good.append(parse(record))
        except tf.errors.OpError as error:
            bad.note(f"{name}: {said.first_line(error)}")
    return tf.nest.map_structure(lambda *leaves: tf.stack(leaves), *good)


def named_records(source: Source) -> Any:
    """(file and number, record) one by one, for people to be told about."""
    for path in source.paths if isinstance(source, Files) else (None,):
        for index, record in enumerate(source.reader(path) if path else source):
            yield f"{path or 'the data'}, record {index}", record


def with_names(source: Source) -> Source:
    """The same source; each record becomes (file, number, record)."""
    if isinstance(source, Files):

        def reader(path: tf.Tensor) -> tf.data.Dataset:
            return source.reader(path).enumerate().map(lambda index, record: (path, index, record))

        return dataclasses.replace(source, reader=reader)
    return source.enumerate().map(lambda index, *record: ("the data", index, record[0] if len(record) == 1 else record))


def whole_batches(
    records: tf.data.Dataset, example: Callable, spec: Any, rows: int, bad: BadRecords
) -> tf.data.Dataset:
    """Batches of `rows` decoded examples in which a bad one is replaced by the first good one.

    Args:
        records: (position, (file, number, record)).
        example: (position, record) -> features and label.
        spec: tf.TensorSpec structure of what `example` gives.
    """

    def repair(element: Any, ok: tf.Tensor, paths: tf.Tensor, numbers: tf.Tensor) -> Any:
        tf.debugging.Assert(tf.reduce_any(ok), ["a whole batch of records can't be decoded"])
        _note(bad, ok, paths, numbers)
        rows_taken = tf.where(ok, tf.range(tf.size(ok)), tf.argmax(ok, output_type=tf.int32))
        return tf.nest.map_structure(lambda leaf: tf.gather(leaf, rows_taken), element)

    return _tried(records, example, spec).batch(rows, drop_remainder=True).map(repair)


def good_ones(records: tf.data.Dataset, example: Callable, spec: Any, rows: int, bad: BadRecords) -> tf.data.Dataset:
    """Batches of what can be decoded of each `rows` records, maybe none; arguments as those of whole_batches."""

    def keep(element: Any, ok: tf.Tensor, paths: tf.Tensor, numbers: tf.Tensor) -> Any:
        _note(bad, ok, paths, numbers)
        return tf.nest.map_structure(lambda leaf: tf.boolean_mask(leaf, ok), element)

    return _tried(records, example, spec).batch(rows).map(keep)


def _tried(records: tf.data.Dataset, example: Callable, spec: Any) -> tf.data.Dataset:
    """(the example, or zeros in its place, whether it could be decoded, file, number) of each record."""
    blank = tf.nest.map_structure(lambda leaf: tf.zeros(leaf.shape, leaf.dtype), spec)

    def one(position: tf.Tensor, named: Any) -> tf.data.Dataset:
        path, number, record = named
        good = tf.data.Dataset.from_tensors((position, record)).map(lambda p, r: (example(p, r), True, path, number))
        return good.ignore_errors().concatenate(tf.data.Dataset.from_tensors((blank, False, path, number))).take(1)

    return records.interleave(one, 16, 1, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)


def _note(bad: BadRecords, ok: tf.Tensor, paths: tf.Tensor, numbers: tf.Tensor) -> None:
    """Those of a batch that are bad, for people: they are counted once each."""

    def note(paths: tf.Tensor, numbers: tf.Tensor) -> None:
        for path, number in zip(paths.numpy(), numbers.numpy(), strict=True):
            bad.seen.add(f"{path.decode()}, record {number}")

    wrong = ~ok
    tf.cond(
        tf.reduce_any(wrong),
        lambda: tf.py_function(note, [tf.boolean_mask(paths, wrong), tf.boolean_mask(numbers, wrong)], []),
        tf.no_op,
    )
