"""Steps a second of the same step on the same batches: our loop, Keras fit, fit with 32 steps a call, a bare loop."""

import time
from collections.abc import Callable
from statistics import median

import keras
import tensorflow as tf

from benchmarks.models import subject
from benchmarks.rows import Row, interleaved, ratio
from trainer.loop import Loop
from trainer.optimizer.schedule import Schedule
from trainer.optimizer.whole_batch import WholeBatchOptimizer

STEPS = {"digits": 120, "resnet": 8}  # a second or so: what slows the machine down meanwhile slows all of them
REPEATS = {"digits": 25, "resnet": 13}
WANTED = {"digits": {"fit": 1.25, "fit32": 1.0, "bare": 0.95}, "resnet": {"fit": 1.0, "fit32": 1.0, "bare": 0.95}}
NAMES = {"fit": "Keras fit", "fit32": "Keras fit, steps_per_execution=32", "bare": "a bare tf.function loop"}
FOREVER = 10**7


def measure() -> list[Row]:
    """The rows of both models."""
    return [row for name in STEPS for row in _compare(name)]


def _compare(name: str) -> list[Row]:
    steps = STEPS[name]
    build, pipeline, _ = subject(name)
    dataset = pipeline.training(0, FOREVER)
    contenders = {
        "ours": _ours(build, pipeline, steps),
        "fit": _fit(build, dataset, steps, 1),
        "fit32": _fit(build, dataset, steps, min(32, steps)),
        "bare": _bare(build, dataset, steps),
    }
    figures = interleaved({key: _per_second(run, steps) for key, run in contenders.items()}, REPEATS[name])
    rows = []
    for other, wanted in WANTED[name].items():
        detail = f"{median(figures['ours']):.1f} against {median(figures[other]):.1f} steps/s"
        rows.append(Row(f"{name}: loop / {NAMES[other]}", ratio(figures["ours"], figures[other]), wanted, True, detail))
    return rows


def _per_second(run: Callable[[], int], steps: int) -> Callable[[], float]:
    run()  # traced and warm

    def figure() -> float:
        start = time.perf_counter()
        return run() / (time.perf_counter() - start)

    return figure


def _schedule() -> tuple[Schedule, tf.Variable]:
    factor = tf.Variable(1.0, trainable=False)
    return Schedule(2e-3, 50, 10_000, factor), factor


def _ours(build: Callable, pipeline: object, steps: int) -> Callable[[], int]:
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    with strategy.scope():
        model = build(WholeBatchOptimizer(keras.optimizers.Adam(_schedule()[0]), clip_norm=1.0))
    loop = Loop(model, strategy, pipeline)
    iterator = loop.iterator(0, FOREVER)
    return lambda: loop.train(iterator, steps)


def _fit(build: Callable, dataset: tf.data.Dataset, steps: int, per_call: int) -> Callable[[], int]:
    model = build(keras.optimizers.Adam(_schedule()[0], global_clipnorm=1.0))
    model.compile(optimizer=model.optimizer, loss=model.loss, metrics=["accuracy"], steps_per_execution=per_call)

    def run() -> int:
        model.fit(dataset, epochs=1, steps_per_epoch=steps, verbose=0)
        return steps

    return run


def _bare(build: Callable, dataset: tf.data.Dataset, steps: int) -> Callable[[], int]:
    model = build(keras.optimizers.Adam(_schedule()[0], global_clipnorm=1.0))
    model.optimizer.build(model.trainable_variables)
    iterator = iter(dataset)
    model.test_step(next(iterator))

    @tf.function
    def run(iterator: object, count: tf.Tensor) -> None:
        for _ in tf.range(count):
            model.train_step(next(iterator))

    def call() -> int:
        run(iterator, tf.constant(steps))
        return steps

    return call
