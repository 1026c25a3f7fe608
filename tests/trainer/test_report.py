"""Reports: lines, JSON lines, TensorBoard, the tuning service."""

import io
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainer.input.sources import DataError
from trainer.report import Console, TensorBoard, Tuning, write_json
from trainer.report.console import Rate, format_values
from trainer.report.tensorboard import confusion_matrix


def test_in_the_cloud_each_message_is_one_json_object():
    out = io.StringIO()
    console = Console(as_json=True, label="worker:1", out=out)
    console.line("two\nlines")
    console.warn("beware")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines == [
        {"severity": "INFO", "message": "two\nlines", "replica": "worker:1"},
        {"severity": "WARNING", "message": "beware", "replica": "worker:1"},
    ]


def test_elsewhere_lines_are_plain_and_no_bar_is_drawn_in_a_log():
    out = io.StringIO()
    console = Console(out=out)
    assert not console.live
    with console.bar(10, lambda: 3, dict):
        console.line("step 3")
    console.line("oh", "ERROR")
    assert out.getvalue() == "step 3\nERROR: oh\n"


def test_in_a_terminal_a_bar_moves():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    console = Console(out=Terminal())
    assert console.live
    assert not Console(out=Terminal(), label="worker:1").live
    assert not Console(out=Terminal(), as_json=True).live


def test_values_keep_their_figures():
    assert format_values({"loss": 0.12344, "rate": 1.5e-5}) == "loss 0.1234  rate 1.5e-05"


def test_the_rate_is_examples_over_time(monkeypatch):
    now = iter([0.0, 2.0, 3.0])
    monkeypatch.setattr("time.monotonic", lambda: next(now))
    rate = Rate(64, 10)
    assert rate.look(20) == 320
    assert rate.step_s == 0.2
    assert rate.overall(25) == 320


def test_the_tuning_service_is_told_the_metric_and_no_other(tmp_path, monkeypatch):
    path = tmp_path / "output.metrics"
    monkeypatch.setenv("CLOUD_ML_HP_METRIC_FILE", str(path))
    monkeypatch.setenv("CLOUD_ML_TRIAL_ID", "3")
    tuning = Tuning("val_accuracy", active=True)
    tuning.epoch(1, {"val_accuracy": 0.5, "loss": 1.0})
    tuning.epoch(2, {"val_accuracy": 0.75, "loss": 0.5})
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(r["val_accuracy"], r["global_step"], r["trial"]) for r in records] == [
        ("0.5", "1", "3"),
        ("0.75", "2", "3"),
    ]
    with pytest.raises(DataError, match="--hypertune_metric=val_accuracy is not among what this model reports: loss"):
        tuning.epoch(3, {"loss": 0.5})


def test_a_restarted_trial_reports_nothing_twice_and_loses_nothing(tmp_path, monkeypatch):
    path = tmp_path / "output.metrics"
    monkeypatch.setenv("CLOUD_ML_HP_METRIC_FILE", str(path))
    monkeypatch.setenv("CLOUD_ML_TRIAL_ID", "3")
    before = Tuning("val_accuracy", active=True)
    for epoch, accuracy in ((1, 0.5), (2, 0.75), (3, 0.8)):
        before.epoch(epoch, {"val_accuracy": accuracy})
    path.write_text(path.read_text()[:-20])  # killed in the middle of the last line
    again = Tuning("val_accuracy", active=True)
    for epoch, accuracy in ((2, 0.75), (3, 0.8), (4, 0.9)):  # resumed from the checkpoint of the first epoch
        again.epoch(epoch, {"val_accuracy": accuracy})
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(r["global_step"], r["val_accuracy"]) for r in records] == [
        ("1", "0.5"),
        ("2", "0.75"),
        ("3", "0.8"),
        ("4", "0.9"),
    ]


def test_only_a_trials_chief_reports(tmp_path, monkeypatch):
    path = tmp_path / "output.metrics"
    monkeypatch.setenv("CLOUD_ML_HP_METRIC_FILE", str(path))
    Tuning("loss", active=False).epoch(1, {"loss": 1.0})
    monkeypatch.delenv("CLOUD_ML_HP_METRIC_FILE")
    Tuning("loss", active=True).epoch(1, {})
    assert not path.exists()


def events(folder):
    """(step, tag, plugin) of every event below a folder."""
    found = []
    for path in sorted(folder.rglob("events*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            found += [(event.step, v.tag, v.metadata.plugin_data.plugin_name) for v in event.summary.value]
    return found


def test_tensorboard_gets_curves_histograms_images_and_a_confusion_matrix(tmp_path):
    board = TensorBoard(str(tmp_path))
    board.scalars("train", 5, {"loss": 1.0})
    board.histograms(5, {"weights/kernel": np.ones(4)})
    board.images(0, {"picture": tf.zeros([2, 8, 8, 1]), "number": tf.zeros([2, 3])})
    board.confusion(5, np.eye(3), ["a", "b", "c"])
    board.close()
    found = events(tmp_path)
    assert (5, "loss", "scalars") in found
    assert (5, "weights/kernel", "histograms") in found
    assert (0, "examples/1", "images") in found
    assert any(tag.startswith("confusion") and plugin == "images" for _, tag, plugin in found)
    assert (5, "confusion", "text") in found


def test_a_replica_that_is_not_chief_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    board = TensorBoard("")
    board.scalars("train", 1, {"loss": 1.0})
    board.histograms(1, {"w": np.ones(2)})
    board.close()
    assert not list(tmp_path.iterdir())


def test_the_confusion_matrix_counts_a_classifiers_answers():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Identity()])
    batches = tf.data.Dataset.from_tensors((tf.constant([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0]]), tf.constant([0, 0, 1])))
    assert confusion_matrix(model, batches).tolist() == [[1, 1], [1, 0]]
    regression = tf.data.Dataset.from_tensors((tf.zeros([3, 2]), tf.zeros([3])))
    assert confusion_matrix(model, regression) is None


def test_a_json_file_is_written_whole(tmp_path):
    path = tmp_path / "deep" / "result.json"
    write_json(str(path), {"b": 1, "a": [2]})
    write_json(str(path), {"c": 3})
    assert json.loads(path.read_text()) == {"c": 3}
    assert [p.name for p in path.parent.iterdir()] == ["result.json"]
