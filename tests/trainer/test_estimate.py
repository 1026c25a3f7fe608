"""The memory estimate: on graphs whose peak can be counted by hand, and against what a step really takes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.estimate import Graph, peak, peaks

MB = 10**6


def test_what_nobody_reads_again_is_freed():
    uses = [(False, [], ["a"]), (False, ["a"], ["b"]), (False, ["b"], ["c"]), (False, ["c"], [])]
    assert peak(uses, {"a": 10, "b": 20, "c": 5}) == 30  # a and b together; a is gone when c comes


def test_what_the_backward_pass_reads_stays():
    uses = [(False, [], ["a"]), (False, ["a"], ["b"]), (False, ["b"], ["c"]), (False, ["a", "c"], ["gradient"])]
    assert peak(uses, {"a": 10, "b": 20, "c": 5, "gradient": 10}) == 35  # a, b and c


def test_an_operation_may_write_over_what_nobody_needs_any_more():
    uses = [(False, [], ["a"]), (True, ["a"], ["b"]), (True, ["b"], ["c"])]
    assert peak(uses, {"a": 10, "b": 10, "c": 10}) == 10
    assert peak([(True, [], ["a"]), (True, ["a"], ["b"]), (False, ["a", "b"], [])], {"a": 10, "b": 10}) == 20


def test_an_output_that_nobody_reads_is_freed_at_once():
    assert peak([(False, [], ["a"]), (False, [], ["b"])], {"a": 10, "b": 10}) == 10


def test_the_peak_may_move_from_the_gradients_to_the_activations():
    uses = [(False, [], ["activation"]), (False, ["activation"], []), (False, [], ["gradient"])]
    graphs = [Graph(uses, {"activation": 2 * n, "gradient": 1000}, 0) for n in (32, 96)]
    table = peaks(*graphs)
    assert (table[1], table[256], table[1024]) == (1000, 1000, 2048)


def test_records_of_several_tensors_have_a_spec(monkeypatch):
    import tensorflow as tf

    from trainer import data, estimate

    monkeypatch.setattr(data, "records", lambda *_: tf.data.Dataset.from_tensors((tf.zeros([5]), tf.zeros([]))))
    monkeypatch.setattr(data, "parse", lambda features, label, training: (features, label))
    assert [spec.shape.as_list() for spec in estimate.element_spec("")] == [[5], []]


def estimated(*flags):
    command = [sys.executable, "-m", "trainer.estimate", *flags]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_flags_that_dont_fit_are_told_in_a_line():
    done = estimated("--batch_size=none")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--batch_size" in done.stderr


# /proc's VmHWM begins with the program; getrusage's ru_maxrss would begin with whatever pytest held when it
# started it (getrusage(2)), and hide what the small step needs.
MEASURE = """
import pathlib, re, sys
import keras, tensorflow as tf
from trainer.estimate import batched, element_spec
from trainer.flags import parse
from trainer.model import build_model

settings, hyperparameters = parse([])
model = build_model(hyperparameters, keras.optimizers.Adam(1e-3))
spec, step = element_spec(settings.data_dir), tf.function(model.train_step)

def run(size):
    step(tf.nest.map_structure(lambda one: tf.zeros(one.shape, one.dtype), batched(spec, size)))
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) * 1024

print(-run(2) + run(int(sys.argv[1])))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_against_what_a_step_really_takes():
    table = {int(n): size for n, size in json.loads(estimated().stdout)["bytes_by_batch"].items()}
    batch = next((n for n in table if table[n] - table[2] > 300 * MB), None)
    if batch is None:
        pytest.skip("this model's activations are too small to be measured")
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-c", MEASURE, str(batch)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    assert 0.6 <= int(done.stdout) / (table[batch] - table[2]) <= 1.7
