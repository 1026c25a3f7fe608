"""NaN and out of memory, in real jobs with a model that provokes them."""

import pytest

FLAGS = [
    "--epochs=2",
    "--examples_per_epoch=512",
    "--batch_size=32",
    "--log_every_steps=4",
    "--checkpoint_every=4steps",
]

MODEL = """
import keras, numpy as np, tensorflow as tf
from trainer import model, data
plain_build, plain_parse = model.build_model, data.parse

class Limited(keras.layers.Layer):
    # while training only: the exported model, which other processes load, can't hold a function of this one
    def call(self, x, training=False):
        if not training:
            return x
        def look(value):
            if len(value) > 12:
                raise MemoryError("OOM when allocating tensor")
            return value
        shape = x.shape
        @tf.custom_gradient
        def same(value):
            return tf.ensure_shape(tf.numpy_function(look, [value], tf.float32), value.shape), lambda d: d
        return same(x)

def with_layer(layer):
    def build(hyperparameters, optimizer):
        made = plain_build(hyperparameters, optimizer)
        stack = keras.Sequential([keras.Input((8, 8, 1)), layer(), *made.layers])
        stack.compile(optimizer=optimizer, loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")])
        return stack
    return build
"""

BAD_LAYER = (
    MODEL
    + """
class Explodes(keras.layers.Layer):
    def build(self, shape):
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, dtype="float32")
    def call(self, x, training=False):
        if training:
            self.calls.assign_add(1.0)
        return tf.where(self.calls > 9.5, tf.math.log(x * 0.0 - 1.0), x) if training else x
model.build_model = with_layer(lambda: Explodes(name="explodes"))
"""
)

BAD_INPUT = (
    MODEL
    + """
def parse(record, training):
    image, label = plain_parse(record, training)
    return tf.where(tf.reduce_sum(image) > 22.9, np.nan, image), label
data.parse = parse
"""
)

TOO_HIGH = (
    MODEL
    + """
class Brittle(keras.layers.Layer):
    def build(self, shape):
        self.calls = self.add_weight(shape=(), initializer="zeros", trainable=False, dtype="float32")
        self.rate = model.probe.schedule.factor
    def call(self, x, training=False):
        if training:
            self.calls.assign_add(1.0)
        return tf.where((self.calls > 9.5) & (self.rate > 0.3), x * np.inf, x) if training else x
class Probe: pass
model.probe = Probe()
def build(hyperparameters, optimizer):
    model.probe.schedule = optimizer._learning_rate
    return with_layer(lambda: Brittle(name="brittle"))(hyperparameters, optimizer)
model.build_model = build
"""
)

LIMITED = MODEL + "model.build_model = with_layer(lambda: Limited(name='limited'))\n"


def run(forks, tmp_path, setup: str, *flags: str):
    job = forks.start([*FLAGS, f"--job_dir={tmp_path / 'job'}", *flags], tmp_path / "log.txt", setup=setup)
    return job.wait(), job.text


def test_nan_names_the_step_the_layer_and_the_fixes_in_order(forks, tmp_path):
    code, text = run(forks, tmp_path, BAD_LAYER)
    assert code == 1, text
    assert "the gradient of step 9 (counted from 0) is not finite" in text
    assert "first came the output of layer explodes (Explodes)" in text
    assert "  step 8  loss" in text and "gradient norm nan" in text
    fixes = ["lower --learning_rate", "--warmup_steps", "--clip_norm", "Adam", "custom loss"]
    assert sorted(fixes, key=text.index) == fixes
    assert "the checkpoint of step 8 is kept" in text
    assert (tmp_path / "job/checkpoints/ckpt-8.index").exists()


def test_nan_in_the_input_is_told_as_such(forks, tmp_path):
    code, text = run(forks, tmp_path, BAD_INPUT)
    assert code == 1, text
    assert "first came the input: the features of example" in text


def test_rewind_goes_back_with_half_the_rate_and_ends(forks, tmp_path):
    code, text = run(forks, tmp_path, TOO_HIGH, "--on_nan=rewind")
    assert code == 0, text
    assert "rewind 1 of 3: back from step 9 to 8" in text and "rewind 2 of 3" in text and "rewind 3" not in text


def test_rewind_gives_up_after_three(forks, tmp_path):
    code, text = run(forks, tmp_path, TOO_HIGH.replace("self.rate > 0.3", "self.rate > 0.0"), "--on_nan=rewind")
    assert code == 1, text
    assert "it came back after 3 rewinds" in text


def test_out_of_memory_says_what_fits(forks, tmp_path):
    code, text = run(forks, tmp_path, LIMITED)
    assert code == 1, text
    assert "out of memory with 32 examples per replica" in text
    assert "12 examples per replica fit (--batch_size=12)" in text and "--accumulate=4 keeps --batch_size=32" in text


def test_accumulate_splits_and_trains(forks, tmp_path):
    code, text = run(forks, tmp_path, LIMITED, "--batch_size_fit=accumulate")
    assert code == 0, text
    assert "each update is summed from 4 micro-batches" in text


@pytest.mark.parametrize("limit", [0, 1, 5, 8, 31, 40])
def test_the_search_finds_the_largest_that_fits(limit):
    from trainer.guard.memory import largest

    assert largest(lambda n: n <= limit, 32) == min(limit, 32)
