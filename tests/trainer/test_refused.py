"""Jobs whose batches TensorFlow refuses end with one sentence: the file and the record, or the layer."""

import pathlib
import shutil

import jobs
import pytest
import tensorflow as tf

DATA = pathlib.Path(__file__).parents[2] / "data" / "digits"
ONE_EPOCH = ["--epochs=1", "--batch_size=64", "--warmup_steps=0"]
STREAMED = "from trainer.input import split; split.CACHE_BYTES = 0\n"
LABELS = """
from trainer import data
plain = data.parse
def parse(record, training):
    features, label = plain(record, training)
    return features, label + 5
data.parse = parse
"""
RAGGED = """
import tensorflow as tf
from trainer import data
data.augment = lambda features, label, seed: (features[: 8 - tf.cast(label == 3, tf.int32)], label)
"""


@pytest.fixture
def damaged(tmp_path):
    """The bundled data; of the first file of each of some splits record 3 is no image."""

    def damage(*splits: str) -> pathlib.Path:
        folder = tmp_path / "data"
        shutil.copytree(DATA, folder)
        for split in splits:
            path = min(folder.glob(f"{split}-*"))
            records = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
            records[3] = records[3].replace(b"PNG", b"XXX")
            with tf.io.TFRecordWriter(str(path)) as writer:
                for record in records:
                    writer.write(record)
        return folder

    return damage


def refused(job) -> str:
    assert job.wait() == 2, job.text
    assert "Traceback" not in job.text
    (sentence,) = [line for line in job.text.splitlines() if line.startswith("ERROR")]
    return sentence


@pytest.mark.parametrize(
    ("split", "setup"),
    [
        ("train", ""),
        ("train", STREAMED),
        pytest.param("validation", STREAMED, marks=pytest.mark.slow),
        pytest.param("test", STREAMED, marks=pytest.mark.slow),
    ],
)
def test_a_bad_record_is_named(forks, damaged, tmp_path, split, setup):
    folder = damaged(split)
    flags = [*ONE_EPOCH, f"--data_dir={folder}", f"--job_dir={tmp_path}/job"]
    said = refused(forks.start(flags, tmp_path / "log.txt", {}, setup))
    assert f"{folder}/{split}-00000-of-0000" in said
    assert "record 3: Unknown image file format" in said and "--skip_bad_records=N" in said


@pytest.mark.parametrize(
    "setup", [pytest.param("", marks=pytest.mark.slow, id="kept"), pytest.param(STREAMED, id="streamed")]
)
def test_bad_records_of_every_split_may_be_stepped_over(forks, damaged, tmp_path, setup):
    splits = ("train", "validation", "test")
    folder = damaged(*splits)
    flags = [*ONE_EPOCH, f"--data_dir={folder}", f"--job_dir={tmp_path}/job", "--skip_bad_records=3"]
    job = forks.start(flags, tmp_path / "log.txt", {}, setup + jobs.NO_EXPORT)
    assert job.wait() == 0, job.text
    bad = jobs.result(tmp_path / "job")["bad_records"]
    assert [path.split("/")[-1].split("-")[0] for path in bad] == sorted(splits)
    assert all("record 3" in path for path in bad)


def test_labels_that_the_loss_does_not_know_are_told_with_the_loss(forks, tmp_path):
    said = refused(forks.start([*ONE_EPOCH, f"--job_dir={tmp_path}"], tmp_path / "log.txt", {}, LABELS))
    assert "the train data" in said and "sparse_categorical_crossentropy" in said
    assert "outside the valid range of [0, 10)" in said and "data.parse" in said


def test_examples_of_unlike_shapes_are_told_as_such(forks, tmp_path):
    said = refused(forks.start([*ONE_EPOCH, f"--job_dir={tmp_path}"], tmp_path / "log.txt", {}, STREAMED + RAGGED))
    assert "no batch could be made of the train data" in said and "shape" in said and "data.augment" in said
