"""What safety costs: checkpoints at one every 30 s, and the look at every gradient for NaN.

    python benchmarks/faults.py [--seconds=60]

Rows of name, ratio (share of throughput lost), wanted, ok. A checkpoint's cost is the time that training stood still
for one plus what the writing thread took from it, over 30 s; the look's is measured on the same loop without it.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import keras
import tensorflow as tf

from trainer import data, flags, loop, run, update
from trainer.checkpoint import Checkpoints
from trainer.pipeline import Pipeline, Share

STEPS, EVERY_S = 200, 30


def make() -> loop.Loop:
    """The default job's loop on one device."""
    settings, hyperparameters = flags.parse([])
    keras.utils.set_random_seed(0)
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        model = run.build(settings, hyperparameters, 10**6)
    return loop.Loop(model, strategy, Pipeline(data, settings, Share()))


def without_look() -> loop.Loop:
    """The same with nothing noted and nothing checked."""
    kept = update.WholeBatchOptimizer._note_bad, loop.Loop._note_loss
    update.WholeBatchOptimizer._note_bad = lambda *_: None
    loop.Loop._note_loss = lambda *_: None
    try:
        made = make()
        made.train(made.iterator(0, 10**6), 2)  # traced now, without them
    finally:
        update.WholeBatchOptimizer._note_bad, loop.Loop._note_loss = kept
    return made


def seconds(made: loop.Loop, iterator: object) -> float:
    """Of STEPS steps."""
    start = time.perf_counter()
    made.train(iterator, STEPS)
    return time.perf_counter() - start


def look_cost(budget_s: float) -> float:
    """Share of the throughput that the look at gradients takes: medians of turns taken one by one."""
    pairs = [(made, made.iterator(made.step, 10**6)) for made in (make(), without_look())]
    for made, iterator in pairs:
        seconds(made, iterator)
    times: tuple[list[float], list[float]] = ([], [])
    until = time.monotonic() + budget_s
    while time.monotonic() < until or len(times[0]) < 5:
        for kept, (made, iterator) in zip(times, pairs, strict=True):
            kept.append(seconds(made, iterator))
    return 1 - min(times[1]) / min(times[0])


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


def main() -> int:
    """Print the rows; 1 where one is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60, help="for the NaN check")
    options = parser.parse_args()
    rows = [
        ("checkpoint every 30 s", checkpoint_cost(), 0.03),
        ("NaN check", look_cost(options.seconds), 0.01),
    ]
    for name, ratio, wanted in rows:
        print(json.dumps({"name": name, "ratio": round(ratio, 5), "wanted": wanted, "ok": ratio <= wanted}))
    return int(any(ratio > wanted for _, ratio, wanted in rows))


if __name__ == "__main__":
    sys.exit(main())
