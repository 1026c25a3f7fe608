"""TensorBoard's curves after a resume: what was written after the checkpoint is taken back, then written again.

Event files are TFRecord files of tf.compat.v1.Event (https://www.tensorflow.org/api_docs/python/tf/compat/v1/Event).
"""

from collections.abc import Mapping

import tensorflow as tf


def take_back(directory: str, last_steps: Mapping[str, int]) -> int:
    """Drop the points after `last_steps[curve]` from each curve below `directory` (local or gs://).

    A curve that isn't named loses all. An event file cut short by a kill is read as far as it goes.
    Returns how many events were dropped.
    """
    dropped = 0
    for path in tf.io.gfile.glob(f"{directory}/*/*.tfevents.*"):
        if path.endswith((".partial", ".profile-empty")):
            tf.io.gfile.remove(path)
            continue
        curve = path.removeprefix(f"{directory}/").split("/")[0]
        kept, orphans = _split(path, last_steps.get(curve, -1))
        if orphans:
            dropped += orphans
            _rewrite(path, kept)
    return dropped


def _split(path: str, last_step: int) -> tuple[list[bytes], int]:
    kept, orphans = [], 0
    try:
        for record in tf.data.TFRecordDataset(path):
            event = tf.compat.v1.Event.FromString(record.numpy())
            if event.WhichOneof("what") == "summary" and event.step > last_step:
                orphans += 1
            else:
                kept.append(record.numpy())
    except tf.errors.DataLossError:  # a half-written last record
        orphans += 1
    return kept, orphans


def _rewrite(path: str, records: list[bytes]) -> None:
    if len(records) <= 1:  # the file's version alone
        tf.io.gfile.remove(path)
        return
    partial = f"{path}.partial"
    with tf.io.TFRecordWriter(partial) as writer:
        for record in records:
            writer.write(record)
    tf.io.gfile.rename(partial, path, overwrite=True)
