"""The SavedModel that serves: one signature for tensors, one for raw bytes, checked in a fresh process.

The model is built anew outside of any strategy and given the trained weights, so that what is
exported is the same whatever trained it.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import ModuleType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer import said

TOLERANCE = 1e-4


class ExportError(Exception):
    """The exported model doesn't load or doesn't answer as the trained one did."""


def export(
    trained: keras.Model, build: Any, decode: Callable | None, features_spec: Any, sample: Any, path: str
) -> None:
    """Write the model to `path` (local or gs://) and compare its answers to `sample` in a fresh process.

    Args:
        build: makes the same model again, without a strategy.
        decode: one raw input (a string scalar) as features, for the signature `raw`; None: there is none.
        features_spec: tf.TensorSpec of one example's features, or a structure of them.
        sample: a batch of features.

    Raises:
        ExportError
    """
    model = build()
    model(tf.nest.map_structure(lambda leaf: tf.zeros([1, *leaf.shape], leaf.dtype), features_spec), training=False)
    _copy_weights(trained, model)
    batched = tf.nest.map_structure(lambda leaf: tf.TensorSpec([None, *leaf.shape], leaf.dtype), features_spec)
    archive = keras.export.ExportArchive()
    archive.track(model)

    def predict(features: Any) -> Any:
        return model(features, training=False)

    def predict_raw(raw: tf.Tensor) -> Any:
        return predict(tf.map_fn(decode, raw, fn_output_signature=features_spec))

    archive.add_endpoint("serving_default", predict, [batched])
    if decode is not None:
        archive.add_endpoint("raw", predict_raw, [tf.TensorSpec([None], tf.string, name="raw")])
    archive.write_out(path, verbose=False)
    _compare(path, sample, predict(sample))


def _copy_weights(trained: keras.Model, model: keras.Model) -> None:
    """Raises ExportError where build_model has not made the same model again."""
    was, now = ([f"{w.path} {tuple(w.shape)}" for w in m.weights] for m in (trained, model))
    if [tuple(w.shape) for w in trained.weights] != [tuple(w.shape) for w in model.weights]:
        one, other = next((a, b) for a, b in itertools.zip_longest(was, now, fillvalue="nothing") if a != b)
        raise ExportError(
            f"build_model made another model for the export: {other} where {one} was trained; "
            "it has to make the same one from the same hyperparameters"
        )
    for new, old in zip(model.weights, trained.weights, strict=True):
        new.assign(np.asarray(old))


def raw_decoder(data: ModuleType, record_spec: Any) -> Callable | None:
    """How raw bytes become features: data.decode, or data.parse where records are strings; None where neither."""
    if hasattr(data, "decode"):
        return data.decode
    if isinstance(record_spec, tf.TensorSpec) and record_spec.dtype == tf.string and record_spec.shape.rank == 0:
        return lambda record: data.parse(record, False)[0]
    return None


def _compare(path: str, sample: Any, expected: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        flat = {f"in_{i}": np.asarray(leaf) for i, leaf in enumerate(tf.nest.flatten(sample))}
        flat |= {f"out_{i}": np.asarray(leaf) for i, leaf in enumerate(tf.nest.flatten(expected))}
        np.savez(f"{folder}/sample.npz", **flat)
        environ = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"}
        environ.pop("TF_CONFIG", None)
        command = [sys.executable, "-m", "trainer.export", path, f"{folder}/sample.npz"]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise ExportError(f"the model exported to {path} doesn't answer as the trained one did: {last}")


def check(path: str, sample_file: str) -> float:
    """The largest difference between the loaded model's answers and the expected ones."""
    loaded = tf.saved_model.load(path)
    signature = loaded.signatures["serving_default"]
    sample = np.load(sample_file)
    inputs = [sample[name] for name in sorted(sample.files) if name.startswith("in_")]
    names = sorted(signature.structured_input_signature[1])
    answers = signature(**{name: tf.constant(value) for name, value in zip(names, inputs, strict=True)})
    expected = [sample[name] for name in sorted(sample.files) if name.startswith("out_")]
    flat = [answers[name] for name in sorted(answers)]
    return max(float(np.max(np.abs(a.numpy() - e), initial=0)) for a, e in zip(flat, expected, strict=True))


if __name__ == "__main__":
    try:
        difference = check(sys.argv[1], sys.argv[2])
    except tf.errors.OpError as error:  # its last line would be a node's name
        python = "; a layer runs Python (tf.py_function, tf.numpy_function), which can't be exported"
        sys.exit(said.first_line(error) + (python if "PyFunc" in str(error) else ""))
    print(json.dumps({"difference": difference}))
    if not difference <= TOLERANCE:
        sys.exit(f"answers differ by {difference:.3g}; {TOLERANCE:.0e} is allowed")
