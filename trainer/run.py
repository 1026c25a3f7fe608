"""One run of a job, in the order it happens; task.py has read the flags and the cluster."""

import logging
import os
import shlex
import sys
from typing import Any

import tensorflow as tf

from trainer import contract, data, evaluator, export, finish, model, prepare, said, start
from trainer.build import callbacks
from trainer.finish import DONE, FAILED
from trainer.guard import memory, own, refused
from trainer.guard.nan import NotANumberError
from trainer.input.sources import DataError
from trainer.loop import Loop
from trainer.replicas import cluster, peers
from trainer.replicas.cluster import Cluster
from trainer.replicas.interrupt import Interrupt
from trainer.replicas.watchdog import Watchdog
from trainer.report import Console, TensorBoard, Tuning
from trainer.report.job import JobReport
from trainer.saving import storage
from trainer.saving.checkpoint import Checkpoints
from trainer.saving.places import Places, places
from trainer.saving.reader import CheckpointError
from trainer.settings import Settings
from trainer.strategies import server, strategy
from trainer.strategies.devices import StrategyError
from trainer.training import Training

UNUSABLE, STOPPED = 2, 143


def run(settings: Settings, hyperparameters: Any, here: cluster.Cluster, interrupt: Interrupt | None = None) -> int:
    """The exit code of one run. `interrupt` listens to signals; without one, this makes its own."""
    if interrupt is None:
        with Interrupt() as interrupt:
            return run(settings, hyperparameters, here, interrupt)
    if not settings.verbose:
        tf.get_logger().setLevel(logging.ERROR)
    where = places(settings)
    quiet = not (here.is_chief or here.role == "evaluator" or settings.verbose)
    console = Console(as_json=here.in_cloud, label="" if here.is_chief else here.name, only_trouble=quiet)
    board = TensorBoard(where.logs if here.is_chief else "")
    interrupt.say = console.line
    try:
        return _run(settings, hyperparameters, here, where, console, board, interrupt)
    except (StrategyError, DataError, CheckpointError, storage.RefusedError) as error:
        console.line(str(error), "ERROR")
        return UNUSABLE
    except (NotANumberError, memory.OutOfMemoryError, export.ExportError, storage.StorageError) as error:
        console.line(str(error), "ERROR")
        return FAILED
    except peers.LOST as error:
        if here.workers == 1 and not isinstance(error, peers.STORAGE):
            raise  # no storage and no peer to blame
        if here.workers == 1:
            console.line(storage.explain(error, "go on"), "ERROR")
            return FAILED
        _give_up(console, settings, said.first_line(error))
    except Exception as error:
        if settings.verbose or not own.place(error):
            raise
        console.line(f"{own.told(error)}; --verbose shows the stack", "ERROR")
        return FAILED
    finally:
        board.close()


def _run(
    settings: Settings,
    hyperparameters: Any,
    here: Cluster,
    where: Places,
    console: Console,
    board: TensorBoard,
    interrupt: Interrupt,
) -> int:
    contract.check(data, model)
    outputs = (where.checkpoints, where.logs, os.path.dirname(where.model)) if here.is_chief else ()
    storage.check((settings.data_dir, where.checkpoints), outputs)
    if start.already_done(where.result, settings, console):
        return DONE
    if strategy.needs_server(settings, here):
        return server.serve(here, settings.peer_timeout_s, lambda: start.finished(where.result), console)
    settings, spread = prepare.join(settings, here, console)
    interrupt.listen()
    watchdog = _watchdog(settings, here, spread, console).start()
    pipeline = prepare.make_pipeline(settings, here, spread, console)
    settings, loop = prepare.make_loop(settings, hyperparameters, spread, pipeline, console)
    loop.waits, watchdog.progress = watchdog.waits, lambda: loop.step
    checkpoints = Checkpoints(
        where.checkpoints,
        loop,
        start.same_job(settings, hyperparameters, pipeline),
        others=start.other_flags(settings),
        chief=here.is_chief or here.role == "evaluator",  # which restores on its own, and saves nothing
        keep=settings.keep_checkpoints,
    )
    if here.role == "evaluator":
        return _evaluate(settings, loop, checkpoints, where, console, interrupt)
    tuning = Tuning(settings.hypertune_metric, active=here.is_chief)
    report = JobReport(console, board, tuning, settings, data, pipeline.total_steps)
    training = Training(settings, loop, pipeline, checkpoints, report, callbacks(hyperparameters))
    training.before_stop = watchdog.dismiss
    start.begin(training, checkpoints, where, settings, console)
    with refused.explained(loop):
        if not training.run(interrupt):
            return _stopped(training, here, where, console)
        interrupt.detach(f"told to stop: training is saved in {where.checkpoints}; the same command exports the model")
        metrics = finish.measure(training)
    watchdog.dismiss()
    if not here.is_chief:
        finish.follow_chief(settings, here, where, console)
    return finish.export_and_tell(settings, hyperparameters, where, console, training, metrics)


def _watchdog(settings: Settings, here: Cluster, spread: tf.distribute.Strategy, console: Console) -> Watchdog:
    """For a worker of a synchronous job; one that looks at nobody for any other."""
    together = isinstance(spread, tf.distribute.MultiWorkerMirroredStrategy)
    return Watchdog(
        here if together else Cluster(), settings.peer_timeout_s, lambda said: _give_up(console, settings, said)
    )


def _evaluate(
    settings: Settings,
    loop: Loop,
    checkpoints: Checkpoints,
    where: Places,
    console: Console,
    interrupt: Interrupt,
) -> int:
    """The evaluator's whole run."""
    interrupt.idle_message = "told to stop; the same command evaluates what is saved from then on"
    with refused.explained(loop):
        over = evaluator.evaluate_until(
            loop,
            checkpoints,
            lambda: start.finished(where.result, settings.epochs),  # a result of fewer epochs is an earlier run's
            lambda: interrupt.asked_to_stop,
            console,
            TensorBoard(where.logs),
        )
    return DONE if over else STOPPED


def _stopped(training: Training, here: Cluster, where: Places, console: Console) -> int:
    """Told to stop, and saved."""
    step = training.loop.step
    if not here.is_chief:
        peers.linger(lambda: step in training.checkpoints.steps(), 30)
    again = f"; to go on: {_command()}" if console.live else "; the same command goes on from there"
    console.line(f"told to stop: saved step {step} of {training.total} in {where.checkpoints}{again}")
    return STOPPED


def _give_up(console: Console, settings: Settings, said: str) -> None:
    """A peer is lost. TensorFlow's own way out would wait for it."""
    peers.leave(FAILED, lambda: console.line(peers.explain(said, settings.peer_timeout_s), "ERROR"))


def _command() -> str:
    return shlex.join(["python", "-m", "trainer.task", *(flag for flag in sys.argv[1:] if flag != "--fresh")])
