"""What a run is made of, in the order it is made: devices and replicas, batches, the loop in the batch that fits."""

from typing import Any

import keras
import tensorflow as tf

from trainer import data
from trainer.build import build
from trainer.guard import memory, unfit
from trainer.input import shapes
from trainer.input.pipeline import Pipeline
from trainer.loop import Loop
from trainer.replicas.cluster import Cluster
from trainer.report import Console
from trainer.saving.state import State
from trainer.settings import Settings, combinations, warmup_of
from trainer.strategies import loops, strategy
from trainer.strategies.devices import StrategyError, set_up_devices


def join(settings: Settings, here: Cluster, console: Console) -> tuple[Settings, tf.distribute.Strategy]:
    """The devices and, where the job has several, the other replicas; the settings as the strategy changes them."""
    devices = set_up_devices(settings, here)
    keras.utils.set_random_seed(settings.seed)
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    keras.mixed_precision.set_global_policy(settings.precision)
    settings = strategy.adapted(settings, here, devices)
    if strategy.is_stand_in():
        console.line(strategy.stand_in_note(settings, here, devices))
    return settings, strategy.make_strategy(settings, here, devices)


def make_pipeline(settings: Settings, here: Cluster, spread: tf.distribute.Strategy, console: Console) -> Pipeline:
    """The batches of this worker. Raises StrategyError, DataError."""
    share = strategy.share(here, spread)
    for _, message in combinations(settings, share.all_replicas):
        raise StrategyError(message)
    pipeline = Pipeline(data, settings, share)
    total = pipeline.total_steps
    if (warmup := warmup_of(settings, total)) and warmup >= total:
        raise StrategyError(
            f"--warmup_steps={warmup} is not shorter than the run: {pipeline.steps_per_epoch} steps x "
            f"--epochs={settings.epochs} = {total} steps"
        )
    console.line(_arithmetic(settings, spread, pipeline))
    for name in ("validation", "test"):
        pipeline.split(name)  # what is wrong there is told now, and not after an epoch
    shapes.check(data, pipeline.split("train").element_spec)
    random_ops = pipeline.split("train").random_ops
    if random_ops:
        console.warn(
            f"data.parse uses {', '.join(random_ops)}, which no seed repeats: a resumed job will differ from one that "
            "was not stopped; define augment(features, label, seed) with tf.image.stateless_random_* instead"
        )
    return pipeline


def _arithmetic(settings: Settings, spread: tf.distribute.Strategy, pipeline: Pipeline) -> str:
    share, steps = pipeline.share, pipeline.steps_per_epoch
    per_replica = settings.batch_size // share.all_replicas
    micro = f" = {settings.accumulate} x {per_replica // settings.accumulate}" if settings.accumulate > 1 else ""
    return (
        f"{type(spread).__name__}: global batch {settings.batch_size} = {share.workers} workers x {share.replicas} "
        f"replicas x {per_replica}{micro}; {steps} steps x {settings.epochs} epochs = {pipeline.total_steps} steps"
    )


def make_loop(
    settings: Settings, hyperparameters: Any, spread: tf.distribute.Strategy, pipeline: Pipeline, console: Console
) -> tuple[Settings, Loop]:
    """The loop of the job, in as many micro-batches as --batch_size_fit asks for."""

    def make(settings: Settings) -> Loop:
        def rebuild() -> keras.Model:
            return build(settings, hyperparameters, pipeline.total_steps)

        with spread.scope():
            compiled = rebuild()
        with unfit.told(pipeline):
            return loops.make_loop(compiled, spread, pipeline, settings, rebuild)

    loop = make(settings)
    if settings.batch_size_fit != "accumulate":
        return settings, loop
    splits = _splits(settings, loop, console)
    settings = settings.model_copy(update={"accumulate": splits})
    pipeline.evaluation_batch = settings.batch_size // splits
    keras.utils.set_random_seed(settings.seed)  # what was tried has moved the model's state: it is made again
    return settings, make(settings)


def _splits(settings: Settings, loop: Loop, console: Console) -> int:
    """How many micro-batches fit the worker that has least memory."""
    share = loop.pipeline.share
    splits = memory.splits_that_fit(loop.model, loop.pipeline.element_spec, settings.accumulate)
    splits = int(max(State(loop).gather(splits, share)))
    if splits > settings.accumulate:
        rows = settings.batch_size // share.all_replicas
        console.line(
            f"{rows} examples per replica don't fit the memory: each update is summed from {splits} micro-batches"
        )
    return splits
