"""What a checkpoint keeps of callbacks, and which epoch is the best."""

import json
import re

import keras
import numpy as np
import pytest

from trainer.replicas.peers import slow_workers
from trainer.saving.progress import Best, callback_state, restore_callback


def model() -> keras.Model:
    made = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    made.compile(optimizer="sgd", loss="mse")
    return made


def test_early_stopping_comes_back_whole_with_its_best_weights():
    first = keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True)
    first.set_model(model())
    first.on_train_begin()
    for epoch, loss in enumerate((3.0, 1.0, 2.0)):
        first.on_epoch_end(epoch, {"val_loss": loss})
    arrays = []
    state = json.loads(json.dumps(callback_state(first, arrays)))
    second = keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True)
    second.set_model(model())
    second.on_train_begin()
    restore_callback(second, state, arrays)
    assert (second.best, second.wait, second.best_epoch) == (first.best, first.wait, first.best_epoch) == (1.0, 1, 1)
    for mine, theirs in zip(second.best_weights, first.best_weights, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    second.on_epoch_end(3, {"val_loss": 1.5})
    assert second.model.stop_training and second.stopped_epoch == 3
    second.on_train_end()
    np.testing.assert_array_equal(second.model.get_weights()[0], first.best_weights[0])


def test_what_cant_be_kept_leaves_no_array_behind():
    callback, arrays = keras.callbacks.Callback(), []
    callback.kept, callback.mixed = [np.arange(3)], [np.arange(5), open]
    state = callback_state(callback, arrays)
    assert len(arrays) == 1 and "mixed" not in state
    callback.kept = None
    restore_callback(callback, state, arrays)
    np.testing.assert_array_equal(callback.kept[0], np.arange(3))


def test_reduce_on_plateau_goes_on_counting():
    first = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=3)
    first.set_model(model())
    first.on_train_begin()
    for epoch in range(3):
        first.on_epoch_end(epoch, {"loss": 1.0})
    second = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=3)
    second.set_model(model())
    second.on_train_begin()
    restore_callback(second, json.loads(json.dumps(callback_state(first, []))), [])
    second.on_epoch_end(3, {"loss": 1.0})
    assert float(second.model.optimizer.learning_rate) == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("rule", "before", "now", "better"),
    [
        ("val_loss", 1.0, 0.5, True),
        ("val_loss", 0.5, 1.0, False),
        ("val_accuracy", 0.5, 0.9, True),
        ("max:val_loss", 0.5, 0.9, True),
        ("min:val_accuracy", 0.5, 0.9, False),
        ("val_loss", None, 9.0, True),
    ],
)
def test_best_is_smaller_or_larger_as_its_name_or_prefix_says(rule, before, now, better):
    name = rule.rpartition(":")[2]
    assert Best(rule).improves({name: now}, before) is better


def test_best_of_something_unknown_names_what_there_is():
    with pytest.raises(KeyError, match=re.escape("--keep_best=f1 is not among what this model reports: loss")):
        Best("f1").improves({"loss": 1.0}, None)


def test_a_worker_slower_than_the_rest_is_named_and_noise_is_not():
    assert slow_workers([1.0, 1.1, 3.2]) == [2]
    assert slow_workers([1.0, 1.1, 1.4]) == []
    assert slow_workers([0.01, 0.03]) == []
    assert slow_workers([9.0, 2.0]) == [0]
