"""The bundled data: what is in it, and that a model can read it."""

import tensorflow as tf

from trainer import data
from trainer.input import sources


def test_every_split_has_its_records_and_all_classes():
    counts = {}
    for split in ("train", "validation", "test"):
        records = sources.dataset(data.records(split, "data/digits"))
        labels = [int(data.parse(record, training=False)[1]) for record in records]
        counts[split] = len(labels)
        assert set(labels) == set(range(10))
    assert counts == {"train": 1258, "validation": 270, "test": 269}


def test_decode_gives_one_channel_between_0_and_1():
    pixels = tf.reshape(tf.range(64), [8, 8, 1])
    image = data.decode(tf.io.encode_png(tf.cast(pixels * 255 // 63, tf.uint8)))
    assert image.shape == (8, 8, 1)
    assert float(tf.reduce_max(image)) == 1.0
