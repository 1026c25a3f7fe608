"""Exceptions out of a fork's two files become one sentence, with the line."""

import keras
import pytest
import tensorflow as tf

from trainer.guard import own

SOURCE = """
import tensorflow as tf

def parse(record):
    if record > 3:
        record = record * 2
    return record.image

def plain(labels):
    return labels["cat"]

def load(path):
    return tf.io.decode_png(path)
"""


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """The functions of a data.py."""
    path = tmp_path / "data.py"
    path.write_text(SOURCE)
    monkeypatch.setattr(own, "DATA_FILE", path)
    names = {}
    exec(compile(SOURCE, str(path), "exec"), names)
    return names


def error_of(call, *arguments) -> Exception:
    with pytest.raises(Exception) as caught:
        call(*arguments)
    return caught.value


def test_the_innermost_line_of_theirs_is_named(theirs):
    told = own.told(error_of(theirs["plain"], {}))
    assert told == "trainer/data.py, line 10, in plain: `return labels[\"cat\"]`: KeyError: 'cat'"


def test_of_a_function_that_was_being_traced_too(theirs):
    error = error_of(tf.function(theirs["parse"]), tf.constant(1))
    assert own.while_traced(error)
    told = own.told(error)
    assert told.startswith("trainer/data.py, line 7, in parse: `return record.image`: AttributeError: ")
    assert "no attribute 'image'" in told


def test_tensorflow_s_nodes_are_left_out(theirs):
    told = own.told(error_of(theirs["load"], b"x"))
    assert told.startswith("trainer/data.py, line 13, in load: `return tf.io.decode_png(path)`: InvalidArgumentError: ")
    assert "Unknown image file format" in told and "{{" not in told and "[Op" not in told


def test_a_layer_s_arguments_and_colours_are_left_out():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    error = error_of(model, tf.zeros([1, 5]))
    assert own.place(error) == "" and not own.while_traced(error)
    told = own.told(error)
    assert "expected axis -1" in told and "(in Sequential.call())" in told
    assert "Arguments received" not in told and "\x1b" not in told and "\n" not in told


def test_what_is_long_is_cut():
    assert own.told(ValueError("a " * 1000)).endswith(" ...")
    assert len(own.told(ValueError("a " * 1000))) < 400
