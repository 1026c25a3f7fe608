"""A trial's measurements: read while they are written, the one that counts, and stopping a trial that falls behind."""

import json

import pytest

from launch.study import stopping
from launch.study.measurements import Measurement, Reader, final


def record(step, value, metric="val_loss", timestamp=100.0):
    return json.dumps({"global_step": str(step), metric: str(value), "timestamp": timestamp, "trial": "1"})


def test_the_file_may_come_late_and_be_half_written(tmp_path):
    file = tmp_path / "metrics"
    reader = Reader(file, "val_loss", begun=90.0)
    assert reader.poll() == []
    file.write_text(record(1, 0.5) + "\n" + record(2, 0.4)[:20])
    assert reader.poll() == [Measurement(1, 10.0, 0.5)]
    file.write_text(record(1, 0.5) + "\n" + record(2, 0.4) + "\n")
    assert [one.value for one in reader.poll()] == [0.5, 0.4]


def test_records_that_left_the_file_are_kept(tmp_path):
    file = tmp_path / "metrics"
    reader = Reader(file, "val_loss", 0.0, known=[Measurement(1, 1.0, 0.9)])
    file.write_text(record(2, 0.5))
    reader.poll()
    file.write_text(record(30, 0.4))
    assert [one.step for one in reader.poll()] == [1, 2, 30]


def test_other_metrics_and_nan_are_no_measurement(tmp_path):
    file = tmp_path / "metrics"
    file.write_text("\n".join([record(1, "nan"), record(2, 0.5, "accuracy"), "[]", "{}"]))
    reader = Reader(file, "val_loss", 0.0)
    assert reader.poll() == []
    assert reader.others == {"accuracy"}


@pytest.mark.parametrize(
    ("selection", "maximize", "step"),
    [("LAST_MEASUREMENT", True, 3), ("", False, 3), ("BEST_MEASUREMENT", True, 1), ("BEST_MEASUREMENT", False, 2)],
)
def test_which_measurement_counts(selection, maximize, step):
    curve = [Measurement(1, 0, 0.9), Measurement(2, 0, 0.1), Measurement(3, 0, 0.5)]
    assert final(curve, selection, maximize).step == step
    assert final([], selection, maximize) is None


def curve(*values, seconds=1.0):
    return [Measurement(step, step * seconds, value) for step, value in enumerate(values, 1)]


GOOD = [curve(0.5, 0.7, 0.8, 0.9), curve(0.4, 0.6, 0.8, 0.85), curve(0.5, 0.6, 0.7, 0.88), curve(0.45, 0.65, 0.7, 0.8)]


def test_the_rule_is_the_file_s():
    assert stopping.rule({"medianAutomatedStoppingSpec": {"useElapsedDuration": True}}) == ("median", True)
    assert stopping.rule({"decayCurveStoppingSpec": None}) == ("decay", False)
    assert stopping.rule({}) == ("", False)


@pytest.mark.parametrize("name", ["median", "decay"])
def test_a_trial_that_falls_behind_is_stopped_and_one_that_leads_is_not(name):
    assert stopping.should_stop(name, curve(0.1, 0.15), GOOD, True, False)
    assert not stopping.should_stop(name, curve(0.6, 0.75), GOOD, True, False)


@pytest.mark.parametrize("name", ["median", "decay"])
def test_where_less_is_better_the_same_curves_say_the_opposite(name):
    losses = [[Measurement(one.step, one.elapsed_s, 1 - one.value) for one in other] for other in GOOD]
    assert stopping.should_stop(name, curve(0.9, 0.85), losses, False, False)
    assert not stopping.should_stop(name, curve(0.4, 0.25), losses, False, False)


@pytest.mark.parametrize("name", ["median", "decay", ""])
def test_nobody_is_stopped_on_little_evidence(name):
    assert not stopping.should_stop(name, curve(0.1, 0.1), GOOD[:2], True, False)
    assert not stopping.should_stop(name, [], GOOD, True, False)


def test_elapsed_time_can_take_the_place_of_steps():
    slow = curve(0.55, seconds=10.0)  # one step in the time in which the others made all of theirs
    assert stopping.should_stop("median", slow, GOOD, True, True)
    assert not stopping.should_stop("median", slow, GOOD, True, False)
