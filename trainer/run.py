"""One run of a job, in the order it happens; task.py has read the flags and the cluster."""

import json
import logging
from typing import Any

import keras
import tensorflow as tf

from trainer import cluster, contract, data, export, flags, model, sources, strategy
from trainer.checkpoint import CheckpointError, Checkpoints
from trainer.loop import Loop
from trainer.pipeline import Pipeline, Share
from trainer.report import Console, TensorBoard, Tuning, write_json
from trainer.report.job import JobReport
from trainer.settings import Settings, combinations
from trainer.sources import DataError
from trainer.training import NotANumberError, Training
from trainer.update import Schedule, WholeBatchOptimizer

DONE, FAILED, UNUSABLE, STOPPED = 0, 1, 2, 143
# What must stay the same for a checkpoint to be of the same job: it decides which example comes at which step.
SAME_JOB = ("batch_size", "seed", "shuffle_buffer", "steps_per_epoch", "examples_per_epoch", "precision")


def run(settings: Settings, hyperparameters: Any, here: cluster.Cluster) -> int:
    """The exit code of one run."""
    if not settings.verbose:
        tf.get_logger().setLevel(logging.ERROR)
    where = cluster.places(settings)
    console = Console(as_json=here.in_cloud, label="" if here.is_chief else here.name)
    board = TensorBoard(where.logs if here.is_chief else "")
    try:
        return _run(settings, hyperparameters, here, where, console, board)
    except (strategy.StrategyError, DataError, CheckpointError) as error:
        console.line(str(error), "ERROR")
        return UNUSABLE
    except (NotANumberError, export.ExportError) as error:
        console.line(str(error), "ERROR")
        return FAILED
    finally:
        board.close()


def _run(settings: Settings, hyperparameters: Any, here: Any, where: Any, console: Console, board: TensorBoard) -> int:
    contract.check(data, model)
    finished = _finished(where.result)
    if finished and not settings.fresh:
        console.line(f"this job is finished ({where.result}); --fresh starts it over, --job_dir another one")
        return DONE
    devices = strategy.set_up_devices(settings, here)
    keras.utils.set_random_seed(settings.seed)
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    keras.mixed_precision.set_global_policy(settings.precision)
    spread = strategy.make_strategy(settings, here, devices)
    share = Share(here.workers, here.worker_index, spread.num_replicas_in_sync // here.workers)
    _check_batch(settings, share)
    pipeline = Pipeline(data, settings, share)
    total = pipeline.steps_per_epoch * settings.epochs
    console.line(_arithmetic(settings, spread, share, pipeline, total))
    random_ops = pipeline.split("train").random_ops
    if random_ops:
        console.warn(
            f"data.parse uses {', '.join(random_ops)}, which no seed repeats: a resumed job will differ from one that "
            "was not stopped; define augment(features, label, seed) with tf.image.stateless_random_* instead"
        )
    with spread.scope():
        compiled = build(settings, hyperparameters, total)
    loop = Loop(compiled, spread, pipeline, jit=settings.jit)
    same = {name: getattr(settings, name) for name in SAME_JOB} | flags.as_dict(hyperparameters)
    checkpoints = Checkpoints(where.checkpoints, loop, same, chief=here.is_chief, keep=settings.keep_checkpoints)
    report = JobReport(console, board, Tuning(settings.hypertune_metric, active=here.is_chief), settings, data, total)
    training = Training(settings, loop, pipeline, checkpoints, report, _callbacks(hyperparameters))
    if settings.fresh:
        aside = checkpoints.set_aside() if here.is_chief else None
        console.line(f"starting over; what was there is now in {aside}" if aside else "starting over")
    else:
        training.resume(checkpoints.restore(console.warn))
        if loop.step:
            console.line(f"resuming at step {loop.step} from {where.checkpoints}")
    try:
        ended = training.run()
    except (tf.errors.InvalidArgumentError, tf.errors.DataLossError, tf.errors.NotFoundError) as error:
        raise DataError(pipeline.split("train").locate(error) or sources.first_line(error)) from error
    pipeline.bad.check()
    if not ended:
        console.line(
            f"told to stop: saved step {loop.step} in {where.checkpoints}; the same command goes on from there"
        )
        return STOPPED
    return _finish(settings, hyperparameters, here, where, console, training)


def build(settings: Settings, hyperparameters: Any, total_steps: int) -> keras.Model:
    """The fork's model, compiled, with its optimizer (or the flags') acting on the whole batch."""
    only_first = tf.VariableAggregation.ONLY_FIRST_REPLICA
    factor = tf.Variable(1.0, trainable=False, name="learning_rate_factor", aggregation=only_first)
    decay_steps = max(1, total_steps - settings.warmup_steps) if settings.decay == "cosine" else 0
    schedule = Schedule(settings.learning_rate, settings.warmup_steps, decay_steps, factor)
    offered = keras.optimizers.Adam(schedule)
    made = model.build_model(hyperparameters, offered)
    if not isinstance(made, keras.Model) or not made.compiled:
        raise DataError(f"trainer/model.py: build_model returned {_kind(made)}; a compiled keras.Model is expected")
    inner, scale = made.optimizer, 0.0
    if isinstance(inner, keras.optimizers.LossScaleOptimizer):
        inner, scale = inner.inner_optimizer, inner.initial_scale
    made.optimizer = WholeBatchOptimizer(
        inner,
        clip_norm=settings.clip_norm if inner is offered else 0.0,
        micro_batches=settings.accumulate if settings.accumulate > 1 or settings.jit else 0,
        loss_scale=scale,
    )
    if inner is offered:
        made.optimizer.schedule = schedule
    return made


def _kind(made: Any) -> str:
    return "a keras.Model that is not compiled" if isinstance(made, keras.Model) else type(made).__name__


def _callbacks(hyperparameters: Any) -> list[keras.callbacks.Callback]:
    make = getattr(model, "callbacks", None)
    return list(make(hyperparameters)) if make else []


def _check_batch(settings: Settings, share: Share) -> None:
    for _, message in combinations(settings, share.all_replicas):
        raise strategy.StrategyError(message)


def _arithmetic(settings: Settings, spread: Any, share: Share, pipeline: Pipeline, total: int) -> str:
    per_replica = settings.batch_size // share.all_replicas
    micro = f" = {settings.accumulate} x {per_replica // settings.accumulate}" if settings.accumulate > 1 else ""
    return (
        f"{type(spread).__name__}: global batch {settings.batch_size} = {share.workers} workers x {share.replicas} "
        f"replicas x {per_replica}{micro}; {pipeline.steps_per_epoch} steps x {settings.epochs} epochs = {total} steps"
    )


def _finished(path: str) -> bool:
    try:
        with tf.io.gfile.GFile(path) as file:
            return bool(json.load(file).get("finished"))
    except (tf.errors.NotFoundError, ValueError):
        return False


def _finish(settings: Settings, hyperparameters: Any, here: Any, where: Any, console: Console, training: Any) -> int:
    loop, pipeline = training.loop, training.pipeline
    metrics = {"train": training.progress.train, "validation": training.progress.validation}
    if pipeline.split("test"):
        metrics["test"] = loop.evaluate("test")
    if not here.is_chief:
        return DONE
    split = pipeline.split("train")
    spec = keras.utils.unpack_x_y_sample_weight(split.element_spec)[0]
    sample = keras.utils.unpack_x_y_sample_weight(next(iter(pipeline.evaluation("train")[0])))[0]

    def rebuild() -> keras.Model:
        return build(settings, hyperparameters, training.total)

    decode = export.raw_decoder(data, split.record_spec)
    export.export(loop.model, rebuild, decode, spec, sample, where.model)
    result = training.report.result(loop.step, metrics, settings.model_dump() | flags.as_dict(hyperparameters))
    result["bad_records"] = sorted(pipeline.bad.seen)
    write_json(where.result, result)
    reached = metrics.get("test") or metrics["validation"] or metrics["train"]
    console.line("reached " + "  ".join(f"{name} {value:.4f}" for name, value in reached.items()))
    for name, path in (("model", where.model), ("checkpoints", where.checkpoints), ("logs", where.logs)):
        console.line(f"{name + ':':13}{path}")
    console.line(f"{'result:':13}{where.result}")
    return DONE
