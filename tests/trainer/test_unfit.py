"""Mistakes in a fork's two files end a job with one sentence: in the beginning where they show there."""

import pytest
import tensorflow as tf

from trainer.input import sources
from trainer.input.sources import DataError

FLAGS = ["--epochs=1", "--steps_per_epoch=3", "--warmup_steps=0"]
DATA = """
import tensorflow as tf
from trainer import data
plain = data.parse
def parse(record, training):
    features, label = plain(record, training)
    return EXAMPLE
data.parse = parse
"""
MODEL = """
import keras
from trainer import model
plain = model.build_model
def build_model(hyperparameters, optimizer):
    made = plain(hyperparameters, optimizer)
    CHANGE
    return made
model.build_model = build_model
"""
PRECISION = "made.compile(optimizer, made.loss, metrics=[keras.metrics.Precision()])"
CALLBACK = """
import keras
from trainer import model
model.callbacks = lambda hyperparameters: CALLBACKS
"""
RAISES = """
import keras, pathlib
from trainer import model
from trainer.guard import own
class Callback(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs):
        logs["val_acc"]
own.MODEL_FILE = pathlib.Path("<string>")
model.callbacks = lambda hyperparameters: [Callback()]
"""
ENDLESS = """
from trainer import data
from trainer.input import sources
plain = data.records
def records(split, folder):
    source = sources.dataset(plain(split, folder))
    return source.repeat() if split == "SPLIT" else source
data.records = records
"""


def ended(forks, folder, setup: str, code: int = 2) -> str:
    job = forks.start([*FLAGS, f"--job_dir={folder}/job"], folder / "log.txt", {}, setup)
    assert job.wait() == code, job.text
    assert "Traceback" not in job.text
    (sentence,) = [line for line in job.text.splitlines() if line.startswith("ERROR")]
    return sentence


@pytest.mark.parametrize(
    ("example", "parts"),
    [
        ("features, tf.one_hot(label, 10)", ("model.py fails", "label float32 (10,)", "must have rank")),
        ("features, tf.as_string(label)", ("label string ()", "Cast string to float is not supported")),
        ("features", ("no label", "is there a label for each loss")),
        ("features, None", ("data.parse gives 2 things (float32 (8, 8, 1), NoneType)",)),
        ("features, label, label, label", ("data.parse gives 4 things",)),
        ("tf.sparse.from_dense(features), label", ("data.parse gives a SparseTensor",)),
        ("features.numpy(), label", ("data.parse can't be traced", "has no attribute 'numpy'")),
        ("tf.image.resize(features, [9, 9]), label", ("data.decode gives float32 (8, 8, 1); float32 (9, 9, 1)",)),
    ],
)
def test_what_parse_gives(forks, tmp_path, example, parts):
    said = ended(forks, tmp_path, DATA.replace("EXAMPLE", example))
    assert all(part in said for part in parts), said


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ("made.compile(optimizer, 'no_loss')", ("Could not interpret loss identifier: no_loss",)),
        (PRECISION, ("the train records", "Dimensions must be equal")),  # shows in the first step alone
        ("made.train_step = lambda batch: None", ("train_step returned a NoneType; a dict",)),
    ],
)
def test_what_the_model_does_with_it(forks, tmp_path, change, parts):
    said = ended(forks, tmp_path, MODEL.replace("CHANGE", change))
    assert all(part in said for part in ("model.py fails on what data.parse gives", *parts)), said


@pytest.mark.parametrize("callbacks", ["None", "keras.callbacks.History()", "['EarlyStopping']"])
def test_callbacks_that_are_no_list_of_callbacks(forks, tmp_path, callbacks):
    assert "expected" in ended(forks, tmp_path, CALLBACK.replace("CALLBACKS", callbacks))


def test_a_callback_that_raises_is_told_with_its_line(forks, tmp_path):
    said = ended(forks, tmp_path, RAISES, code=1)
    assert "line 7, in on_epoch_end" in said and "KeyError: 'val_acc'" in said and "--verbose" in said


@pytest.mark.parametrize("split", ["train", "validation"])
def test_records_that_never_end_are_told_before_the_first_step(forks, tmp_path, split):
    said = ended(forks, tmp_path, ENDLESS.replace("SPLIT", split))
    assert f"the {split} records of data.py never end" in said
    assert "epoch 1" not in (tmp_path / "log.txt").read_text()


SHORT = """
from trainer import data
from trainer.input import sources, split
split.CACHE_BYTES = LIMIT
plain = data.records
data.records = lambda name, folder: sources.dataset(plain(name, folder)).apply(
    sources.tf.data.experimental.assert_cardinality(5000))
"""


@pytest.mark.parametrize("cache", ["0", "1 << 30"], ids=["streamed", "kept"])
def test_records_that_are_fewer_than_they_say_are_told(forks, tmp_path, cache):
    said = ended(forks, tmp_path, SHORT.replace("LIMIT", cache))
    assert "records of data.py break off" in said and "contained only" in said


def test_records_that_take_long_to_count_are_told(monkeypatch, capsys):
    monkeypatch.setattr(sources, "PATIENCE_S", 0)
    signature = tf.TensorSpec([], tf.int64)
    assert sources.count(tf.data.Dataset.from_generator(lambda: range(50), output_signature=signature))[0] == 50
    assert "a generator has to end" in capsys.readouterr().err


def test_records_that_break_off_are_told():
    def broken():
        yield 1
        raise RuntimeError("the file is gone")

    made = tf.data.Dataset.from_generator(broken, output_signature=tf.TensorSpec([], tf.int64))
    with pytest.raises(DataError, match="break off: RuntimeError: the file is gone"):
        sources.count(made)
