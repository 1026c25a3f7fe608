"""Where records come from: files found by a pattern, or any tf.data set of undecoded records.

What data.py's `records` returns. Patterns may be local or gs://.
"""

import concurrent.futures
import dataclasses
import sys
import threading
from collections.abc import Callable

import tensorflow as tf

from trainer import said

PATIENCE_S = 30


class DataError(Exception):
    """The data can't be used; str() names the file and the record where there is one."""


@dataclasses.dataclass(frozen=True)
class Files:
    """Records in files. `reader` turns a path into the data set of its records, in order."""

    patterns: tuple[str, ...]
    paths: tuple[str, ...]
    reader: Callable[[tf.Tensor], tf.data.Dataset]


def _find(patterns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for pattern in patterns for path in sorted(tf.io.gfile.glob(pattern)))


def tfrecords(*patterns: str, compression: str = "") -> Files:
    """The serialized examples of TFRecord files; `compression` is "", GZIP or ZLIB."""
    return Files(patterns, _find(patterns), lambda path: tf.data.TFRecordDataset(path, compression, 1 << 20))


def lines(*patterns: str, header: bool = True) -> Files:
    """The lines of text or CSV files, without the first of each where that is a header."""
    return Files(patterns, _find(patterns), lambda path: tf.data.TextLineDataset(path).skip(int(header)))


Source = Files | tf.data.Dataset


def open_source(records: Callable[[str, str], Source | None], split: str, data_dir: str) -> Source | None:
    """What data.py gives for a split; None where it has no such split. Raises DataError."""
    source = records(split, data_dir)
    if source is None and split != "train":
        return None
    if isinstance(source, Files):
        if not source.paths:
            raise DataError(f"no file matches {' or '.join(source.patterns)} (the {split} records of data.py)")
        return source
    if not isinstance(source, tf.data.Dataset):
        raise DataError(
            f'data.records("{split}", ...) returned a {type(source).__name__}; expected tfrecords(...), lines(...) '
            "or a tf.data.Dataset of undecoded records"
        )
    if int(source.cardinality()) == tf.data.INFINITE_CARDINALITY:
        raise DataError(
            f"the {split} records of data.py never end; give each once, without repeat(), which is the trainer's, "
            "or as many as an epoch has with take(n)"
        )
    return source


def dataset(source: Source) -> tf.data.Dataset:
    """All records once, in their order."""
    if isinstance(source, Files):
        return tf.data.Dataset.from_tensor_slices(list(source.paths)).flat_map(source.reader)
    return source


def shuffled(source: Source, epoch: tf.Tensor, seed: int, buffer: int) -> tf.data.Dataset:
    """All records once, in the order that `seed` and `epoch` make, and nothing else.

    Args:
        epoch: int64 scalar of the graph that this is called in, that of a Dataset's function.
    """
    if buffer <= 1:
        return dataset(source)
    mixed = tf.random.stateless_uniform([], [seed, tf.cast(epoch, tf.int32)], 1, 2**62, tf.int64)
    if isinstance(source, Files):
        order = tf.random.experimental.stateless_shuffle(list(source.paths), [seed, tf.cast(epoch, tf.int32)])
        source = tf.data.Dataset.from_tensor_slices(order).interleave(
            source.reader, cycle_length=min(16, len(source.paths)), num_parallel_calls=tf.data.AUTOTUNE
        )
    # The seed of this graph alone. It would be the process's, so that the order hung on that too; and where that is 0,
    # --seed's default, shuffle compares both with (0, 0), which a tensor can't be.
    tf.random.set_seed(1)
    return source.shuffle(buffer, seed=mixed, reshuffle_each_iteration=False)


def count(source: Source, note: Callable[[str], None] | None = None) -> tuple[int, Source]:
    """(how many records there are, the source without what can't be read); read, but not decoded.

    Args:
        note: told of each file that breaks off; None: that is a DataError.
    """
    if isinstance(source, Files):
        counted = _count_files(source)
        for _, broken in counted:
            if broken and note is None:
                raise DataError(f"{broken}; --skip_bad_records=N steps over up to N")
            if broken:
                note(broken)
        if not sum(number for number, _ in counted):
            raise DataError(f"{source.paths[0]} and {len(counted) - 1} more files hold no record")
        return sum(number for number, _ in counted), _shortened(source, counted)
    known = int(source.cardinality())
    found = known if known >= 0 else _count_through(source)
    if not found:
        raise DataError("data.records gave a tf.data.Dataset without a record")
    return found, source


def are_more(source: Source, most: int) -> bool:
    """Whether there are more than `most` records; no more than that are read. False where something can't be read."""
    if isinstance(source, Files):
        paths = tf.data.Dataset.from_tensor_slices(list(source.paths))
        source = paths.interleave(source.reader, cycle_length=16, num_parallel_calls=16, deterministic=False)
    elif (known := int(source.cardinality())) >= 0:
        return known > most
    try:
        return int(source.take(most + 1).reduce(0, lambda total, *_: total + 1)) > most
    except tf.errors.OpError:
        return False


def _count_through(source: tf.data.Dataset) -> int:
    """The records of a set that doesn't know how many it has: a generator's, which may have no end."""
    note = "still counting the records that data.py gives; a generator has to end (or take(n) ends it)"
    timer = threading.Timer(PATIENCE_S, print, [note], {"file": sys.stderr, "flush": True})
    timer.start()
    try:
        return int(source.reduce(0, lambda total, *_: total + 1))
    except tf.errors.OpError as error:
        raise DataError(f"the records of data.py break off: {said.first_line(error)}") from error
    finally:
        timer.cancel()


def _count_files(source: Files) -> list[tuple[int, str]]:
    """_count_file of each: all at once where nothing is wrong with them."""

    def records(path: tf.Tensor) -> tf.Tensor:
        return source.reader(path).reduce(tf.constant(0, tf.int64), lambda total, *_: total + 1)

    numbers = tf.data.Dataset.from_tensor_slices(list(source.paths)).map(records, 16, deterministic=True)
    try:
        return [(int(number), "") for number in numbers]
    except tf.errors.OpError:
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            return list(pool.map(lambda path: _count_file(path, source.reader), source.paths))


def _count_file(path: str, reader: Callable[[tf.Tensor], tf.data.Dataset]) -> tuple[int, str]:
    """(readable records, where and how the file breaks off or "")."""
    found = 0
    try:
        for _ in reader(path):
            found += 1
    except tf.errors.OpError as error:
        return found, f"{path}, record {found}: {said.first_line(error)}"
    return found, ""


def _shortened(source: Files, counted: list[tuple[int, str]]) -> Files:
    """Files that break off end before the break."""
    if not any(broken for _, broken in counted):
        return source
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            tf.constant(source.paths), tf.constant([number for number, _ in counted], tf.int64)
        ),
        default_value=-1,
    )
    return dataclasses.replace(source, reader=lambda path: source.reader(path).take(table.lookup(path)))
