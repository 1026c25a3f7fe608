"""What augment and decode give is compared with what parse gives, before any training."""

import re
import types

import pytest
import tensorflow as tf

from trainer.input import shapes
from trainer.input.sources import DataError

IMAGE, LABEL = tf.TensorSpec([8, 8, 1], tf.float32), tf.TensorSpec([], tf.int64)


def check(element=(IMAGE, LABEL), **functions):
    shapes.check(types.SimpleNamespace(**functions), element)


def test_an_example_in_words():
    assert shapes.words({"a": IMAGE, "b": (LABEL, LABEL)}) == '{"a": float32 (8, 8, 1), "b": (int64 (), int64 ())}'
    assert shapes.example((IMAGE, LABEL)) == "features float32 (8, 8, 1), label int64 ()"
    assert shapes.example(IMAGE) == "features float32 (8, 8, 1), no label"


def test_functions_that_agree_with_parse_pass():
    check()
    check(augment=lambda features, label, seed: [features, label], decode=None)
    check(augment=lambda features, label, seed: (tf.image.stateless_random_flip_left_right(features, seed), label))
    check(decode=lambda raw: tf.ensure_shape(tf.io.parse_tensor(raw, tf.float32), [8, 8, 1]))
    check(decode=lambda raw: tf.io.parse_tensor(raw, tf.float32))  # whose shape only a call can tell


@pytest.mark.parametrize(
    ("functions", "sentence"),
    [
        ({"augment": lambda f, label, seed: (f[:6], label)}, "data.augment gives (float32 (6, 8, 1), int64 ())"),
        ({"augment": lambda f, label, seed: (tf.cast(f, tf.uint8), label)}, "data.augment gives (uint8 (8, 8, 1)"),
        ({"augment": lambda f, label, seed: f}, "data.augment gives float32 (8, 8, 1); (float32 (8, 8, 1), int64 ())"),
        ({"augment": lambda f, label, seed: None}, "data.augment gives NoneType"),
        ({"augment": lambda f, label, seed: (f.nothing, label)}, "data.augment can't be traced on (float32 (8, 8, 1)"),
        ({"decode": lambda raw: tf.zeros([9, 9, 1])}, "data.decode gives float32 (9, 9, 1); float32 (8, 8, 1)"),
        ({"decode": lambda raw: {"image": tf.zeros([8, 8, 1])}}, 'data.decode gives {"image": float32 (8, 8, 1)}'),
    ],
)
def test_others_are_told_with_both(functions, sentence):
    with pytest.raises(DataError, match=re.escape(sentence)) as told:
        check(**functions)
    assert "\n" not in str(told.value)
