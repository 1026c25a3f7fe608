"""What safety costs: checkpoints at one every 30 s, and the look at every gradient for NaN.

The ratio is the share of throughput lost. A checkpoint's is the time that training stood still for one plus what the
writing thread took from it, over 30 s; the look's is measured on the same loop without it, turn by turn.
"""

import statistics
import tempfile
import time

import keras
import tensorflow as tf

from benchmarks.rows import Row, interleaved, ratio
from trainer import build, data, flags, loop
from trainer.input.pipeline import Pipeline
from trainer.input.share import Share
from trainer.optimizer.whole_batch import WholeBatchOptimizer
from trainer.saving.checkpoint import Checkpoints

STEPS, EVERY_S = 200, 30


def make() -> loop.Loop:
    """The default job's loop on one device."""
    settings, hyperparameters = flags.parse([])
    keras.utils.set_random_seed(0)
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        model = build.build(settings, hyperparameters, 10**6)
    return loop.Loop(model, strategy, Pipeline(data, settings, Share()))


def _nothing(*_: object) -> None:
    """In place of the look."""


def without_look() -> loop.Loop:
    """The same with nothing noted and nothing checked."""
    kept = WholeBatchOptimizer._note_bad, loop.Loop._note_loss
    WholeBatchOptimizer._note_bad = _nothing
    loop.Loop._note_loss = _nothing
    try:
        made = make()
        made.train(made.iterator(0, 10**6), 2)  # traced now, without them
    finally:
        WholeBatchOptimizer._note_bad, loop.Loop._note_loss = kept
    return made


def seconds(made: loop.Loop, iterator: object) -> float:
    """Of STEPS steps."""
    start = time.perf_counter()
    made.train(iterator, STEPS)
    return time.perf_counter() - start


def look_cost(repeats: int = 25) -> float:
    """Share of the throughput that the look at every gradient and loss takes."""
    pairs = {"with": make(), "without": without_look()}
    iterators = {name: made.iterator(made.step, 10**6) for name, made in pairs.items()}
    contenders = {name: lambda name=name: seconds(pairs[name], iterators[name]) for name in pairs}
    interleaved(contenders, 1)
    times = interleaved(contenders, repeats)
    return 1 - 1 / ratio(times["with"], times["without"])


def checkpoint_cost(repeats: int = 8) -> float:
    """Share of 30 s that one checkpoint takes from training, its writing included."""
    made = make()
    iterator = made.iterator(0, 10**6)
    seconds(made, iterator)
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(folder, made, {}, chief=True)
        lost = []
        for _ in range(repeats):
            plain = seconds(made, iterator)
            start = time.perf_counter()
            checkpoints.save({})
            made.train(iterator, STEPS)
            lost.append(time.perf_counter() - start - plain)
            checkpoints.wait()
    return max(0.0, statistics.median(lost)) / EVERY_S


def measure() -> list[Row]:
    """The two rows."""
    return [
        Row("throughput lost to a checkpoint every 30 s", checkpoint_cost(), 0.03, at_least=False),
        Row("throughput lost to the look for NaN at every step", look_cost(), 0.01, at_least=False),
    ]
