"""20,000 generated JPEGs of 224x224: images a second of our pipeline against tf.data's decode alone."""

import pathlib
import tempfile
import time
import types
from collections.abc import Callable

import tensorflow as tf

from benchmarks.rows import Row, interleaved, ratio
from trainer.flags import parse
from trainer.input import sources
from trainer.input.pipeline import Pipeline
from trainer.input.share import Share

IMAGES, SHARDS, BATCH, STEPS = 20_000, 8, 64, 50


def measure() -> list[Row]:
    """One row."""
    with tempfile.TemporaryDirectory() as folder:
        write_images(pathlib.Path(folder))
        figures = interleaved({"ours": _ours(folder), "decode": _decode(folder)})
    detail = f"{sorted(figures['ours'])[2]:.0f} against {sorted(figures['decode'])[2]:.0f} images/s"
    name = "input: 224x224 JPEGs / tf.data's decode alone"
    return [Row(name, ratio(figures["ours"], figures["decode"]), 0.95, True, detail)]


def write_images(folder: pathlib.Path) -> None:
    """TFRecords of JPEG bytes: smooth random pictures, about 15 KB each."""

    def encode(index: tf.Tensor) -> tf.Tensor:
        coarse = tf.random.stateless_uniform([28, 28, 3], [0, tf.cast(index, tf.int32)], 0, 255)
        return tf.io.encode_jpeg(tf.cast(tf.image.resize(coarse, [224, 224]), tf.uint8), quality=90)

    images = iter(tf.data.Dataset.range(IMAGES).map(encode, tf.data.AUTOTUNE).prefetch(64).as_numpy_iterator())
    for shard in range(SHARDS):
        with tf.io.TFRecordWriter(str(folder / f"train-{shard}.tfrecord")) as writer:
            for _ in range(IMAGES // SHARDS):
                writer.write(next(images))


def decode(encoded: tf.Tensor) -> tf.Tensor:
    """JPEG bytes as float32 [224, 224, 3]."""
    return tf.ensure_shape(tf.cast(tf.io.decode_jpeg(encoded, channels=3), tf.float32), [224, 224, 3])


def _rate(batches: tf.data.Dataset) -> Callable[[], float]:
    iterator = iter(batches)
    for _ in range(5):
        next(iterator)

    def figure() -> float:
        start = time.perf_counter()
        for _ in range(STEPS):
            next(iterator)
        return STEPS * BATCH / (time.perf_counter() - start)

    return figure


def _ours(folder: str) -> Callable[[], float]:
    data = types.SimpleNamespace(
        records=lambda split, data_dir: sources.tfrecords(f"{data_dir}/train-*.tfrecord"),
        parse=lambda record, training: (decode(record), tf.constant(0)),
    )
    settings, _ = parse([f"--data_dir={folder}", f"--batch_size={BATCH}", "--shuffle_buffer=1000"])
    return _rate(Pipeline(data, settings, Share()).training(0, 10**6))


def _decode(folder: str) -> Callable[[], float]:
    files = sorted(tf.io.gfile.glob(f"{folder}/train-*.tfrecord"))
    return _rate(tf.data.TFRecordDataset(files).repeat().map(decode, tf.data.AUTOTUNE).batch(BATCH).prefetch(1))
