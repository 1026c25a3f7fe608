"""TensorFlow's own failures, as it words them, in one line."""

import re

import keras
import pytest
import tensorflow as tf

from trainer import said

NOT_AN_IMAGE = "Unknown image file format"


def failure(call):
    with pytest.raises(tf.errors.OpError) as caught:
        call()
    return caught.value


@tf.function
def decoded(text):
    return tf.io.decode_png(text)


@tf.function
def first_of(iterator):
    return next(iterator)


def images():
    return iter(tf.data.Dataset.from_tensors(b"no image").map(tf.io.decode_png))


@pytest.mark.parametrize(
    "call",
    [
        lambda: tf.io.decode_png(b"no image"),
        lambda: decoded(b"no image"),
        lambda: next(images()),
        lambda: first_of(images()),
    ],
)
def test_neither_stack_nor_names_stand_before_what_was_said(call):
    assert said.first_line(failure(call)).startswith(NOT_AN_IMAGE)


@tf.function(jit_compile=False)
def looked_up(at):
    with tf.name_scope("towers/embedding"):
        return tf.gather(tf.zeros([3, 2]), at)


def test_the_layer_is_named():
    error = failure(lambda: looked_up(tf.constant([8])))
    assert said.first_line(error) == "indices[0] = 8 is not in [0, 3)"
    assert said.node(error).startswith("towers/embedding/")
    assert said.node(failure(lambda: tf.io.read_file("/not/there"))) == ""


def test_a_name_that_is_its_scope_s_is_said_once():
    error = tf.errors.InvalidArgumentError(None, None, "no\n\t [[{{node while/loss/Softmax/Softmax}}]]")
    assert said.node(error) == "loss/Softmax"


def test_what_the_input_meets_is_told_from_what_the_model_meets():
    assert said.on_the_way_in(failure(lambda: next(images())))
    assert said.on_the_way_in(failure(lambda: first_of(images())))
    label = failure(lambda: keras.losses.sparse_categorical_crossentropy(tf.constant([5]), tf.zeros([1, 3])))
    assert not said.on_the_way_in(label)
    assert re.match(r"Received a label value of 5 .* valid range of \[0, 3\)", said.first_line(label))


def test_an_error_of_several_roots_and_one_without_words():
    several = "2 root error(s) found.\n  (0) INVALID_ARGUMENT:  too large\n\t [[{{node a}}]]\n  (1) CANCELLED: b"
    assert said.first_line(tf.errors.InvalidArgumentError(None, None, several)) == "too large"
    assert said.first_line(tf.errors.InternalError(None, None, "")) == "InternalError"
