"""TPUs to the edge: which resolver is asked, with what, and what a model must be. No TPU is here."""

import json

import keras
import pytest
import tensorflow as tf

from trainer.strategies import tpu


@pytest.mark.parametrize(
    ("environ", "devices", "expected"),
    [
        ({}, ["/dev/accel0"], {"tpu": "local"}),
        ({"TPU_NAME": "mine"}, [], {"tpu": "mine"}),
        ({"TPU_NAME": "mine", "TPU_ZONE": "us-a"}, ["/dev/accel0"], {"tpu": "mine", "zone": "us-a"}),
        (
            {"TPU_CONFIG": json.dumps({"tpu_node_name": "node", "project": "p", "zone": "z"})},
            [],
            {"tpu": "node", "project": "p", "zone": "z"},
        ),
    ],
)
def test_the_tpu_that_is_there(environ, devices, expected):
    assert tpu.target(environ, devices) == expected


@pytest.mark.parametrize("environ", [{}, {"TPU_CONFIG": "{"}, {"TPU_CONFIG": "[]"}, {"TPU_CONFIG": "{}"}])
def test_no_tpu_is_a_sentence(environ):
    with pytest.raises(tpu.TPUError, match="TPU"):
        tpu.target(environ, [])


def test_the_resolver_is_connected_and_initialized_before_the_strategy(monkeypatch):
    calls = []
    monkeypatch.setenv("TPU_NAME", "mine")
    monkeypatch.delenv("TPU_CONFIG", raising=False)
    resolver = tf.distribute.cluster_resolver
    monkeypatch.setattr(resolver, "TPUClusterResolver", lambda **given: calls.append(("resolver", given)) or "it")
    monkeypatch.setattr(tf.config, "experimental_connect_to_cluster", lambda one: calls.append(("connect", one)))
    monkeypatch.setattr(tf.tpu.experimental, "initialize_tpu_system", lambda one: calls.append(("initialize", one)))
    monkeypatch.setattr(tf.distribute, "TPUStrategy", lambda one: calls.append(("strategy", one)) or "made")
    assert tpu.make_strategy() == "made"
    assert calls == [("resolver", {"tpu": "mine"}), ("connect", "it"), ("initialize", "it"), ("strategy", "it")]


def test_v5e_is_reached_through_pjrt_unless_told_otherwise():
    assert tpu.environment("n1-standard-8", {}) == tpu.environment("cloud-tpu", {}) == {}
    wanted = tpu.environment("ct5lp-hightpu-4t", {})
    assert wanted["NEXT_PLUGGABLE_DEVICE_USE_C_API"] == "true"
    assert wanted["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"].endswith("libtpu.so")
    assert "NEXT_PLUGGABLE_DEVICE_USE_C_API" not in tpu.environment(
        "ct5lp-hightpu-4t", {"NEXT_PLUGGABLE_DEVICE_USE_C_API": "false"}
    )


class Chosen(keras.layers.Layer):
    """Keeps the rows whose sum is positive: how many those are, no compiler knows."""

    def call(self, inputs):
        return tf.boolean_mask(inputs, tf.reduce_sum(inputs, 1) > 0)

    def compute_output_shape(self, shape):
        return (None, shape[1])


def test_a_layer_without_a_static_shape_is_named():
    inputs = keras.Input((4,))
    good = keras.Model(inputs, keras.layers.Dense(2)(inputs))
    bad = keras.Model(inputs, keras.layers.Dense(2)(Chosen(name="chosen")(inputs)))
    spec = tf.TensorSpec([8, 4], tf.float32)
    tpu.check_static(good, spec)
    with pytest.raises(tpu.TPUError, match="layer chosen gives a tensor of shape"):
        tpu.check_static(bad, spec)
