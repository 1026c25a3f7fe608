"""Every example of a split exactly once, whatever the batch size and the replicas.

Each step's examples are dealt out to the replicas of all workers; the last step shares what is left, so some
replicas' batches are smaller then, or empty.
"""

from typing import Any

import tensorflow as tf

from trainer.input import sources, tolerate
from trainer.input.share import Share
from trainer.input.split import Split

AUTOTUNE = tf.data.AUTOTUNE


def batches(split: Split, batch_size: int, share: Share) -> tuple[tf.data.Dataset, int]:
    """(batches, steps): a batch for each replica of this worker in turn; `batch_size` is that of all replicas."""
    if split.fits:
        _ = split.examples  # where records may be skipped, their count is known once they are decoded
        return _slices(split, batch_size, share), -(-split.count // batch_size)
    return _stream(split, batch_size, share), -(-split.count // batch_size)


def first(split: Split, rows: int) -> Any:
    """The first `rows` examples, tensors of [rows, ...]; fewer where there are fewer, or bad ones are stepped over."""
    if split.fits:
        return tf.nest.map_structure(lambda tensor: tensor[:rows], split.examples)
    source = tolerate.with_names(split.source) if split.bad.allowed else split.source
    return next(iter(_decoded(split, sources.dataset(source).enumerate().take(rows), rows)))


def _slices(split: Split, batch_size: int, share: Share) -> tf.data.Dataset:
    examples, bounds = split.examples, []
    for start in range(0, split.count, batch_size):
        left = min(batch_size, split.count - start)
        bounds += [[start + edge for edge in share.bounds(replica, left)] for replica in share.mine]
    parts = tf.data.Dataset.from_tensor_slices(tf.constant(bounds, tf.int64))
    return parts.map(lambda part: tf.nest.map_structure(lambda tensor: tensor[part[0] : part[1]], examples), AUTOTUNE)


def _stream(split: Split, batch_size: int, share: Share) -> tf.data.Dataset:
    whole = split.count // batch_size * batch_size
    rows, mine = batch_size // share.all_replicas, share.mine
    source = tolerate.with_names(split.source) if split.bad.allowed else split.source
    records = sources.dataset(source).enumerate()
    own = records.take(whole).filter(lambda position, _: mine.start * rows <= position % batch_size < mine.stop * rows)
    batches = _decoded(split, own, rows)
    left = split.count - whole
    for replica in mine if left else ():
        batches = batches.concatenate(_last(split, records.skip(whole), *share.bounds(replica, left)))
    return batches


def _decoded(split: Split, records: tf.data.Dataset, rows: int) -> tf.data.Dataset:
    """Batches of `rows` of the (position, record)s; without the bad ones where some may be."""

    def example(_: tf.Tensor, record: Any) -> Any:
        return split.parse_record(record)

    if split.bad.allowed:
        return tolerate.good_ones(records, example, split.element_spec, rows, split.bad)
    return records.map(example, AUTOTUNE, deterministic=True).batch(rows)


def _last(split: Split, rest: tf.data.Dataset, low: int, high: int) -> tf.data.Dataset:
    """One batch of the records [low, high) of what is left; an empty one where that is none."""
    if low < high:
        return _decoded(split, rest.skip(low).take(high - low), high - low)
    one = _decoded(split, rest.take(1), 1)
    return one.map(lambda *element: tf.nest.map_structure(lambda tensor: tensor[:0], element))
