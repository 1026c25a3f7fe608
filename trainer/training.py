"""The course of a job: epochs, evaluation, callbacks, checkpoints, reports, and when to stop."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer.guard import memory
from trainer.guard.nan import NotANumberError, find_bad
from trainer.guard.rewind import repair
from trainer.input.pipeline import Pipeline
from trainer.loop import Loop
from trainer.replicas import peers
from trainer.replicas.interrupt import STOP, Interrupt
from trainer.report.job import JobReport
from trainer.saving.checkpoint import Checkpoints
from trainer.saving.progress import Best, Progress, callback_state, restore_callback
from trainer.settings import Settings


class Training:
    """Runs a loop to the end of its job, or until it is told to stop."""

    def __init__(
        self,
        settings: Settings,
        loop: Loop,
        pipeline: Pipeline,
        checkpoints: Checkpoints,
        report: JobReport,
        callbacks: list[keras.callbacks.Callback],
    ):
        self.settings, self.loop, self.pipeline = settings, loop, pipeline
        self.checkpoints, self.report = checkpoints, report
        self.steps_per_epoch = pipeline.steps_per_epoch
        self.total = pipeline.total_steps
        self.callbacks = keras.callbacks.CallbackList(callbacks, model=loop.model)
        self.callbacks.set_params({"epochs": settings.epochs, "steps": self.steps_per_epoch, "verbose": 0})
        self.progress = Progress()
        self.gradients: dict[str, Any] | None = None
        self.before_stop: Callable[[], None] = lambda: None  # all workers have agreed to stop, and may go one by one
        self.best = Best(settings.keep_best) if settings.keep_best else None
        every = settings.checkpoint_every
        self.checkpoint_steps = int(every.removesuffix("steps")) if every.endswith("steps") else 0
        self.checkpoint_s = None if self.checkpoint_steps else float(every.removesuffix("s"))

    def resume(self, host: dict[str, Any] | None) -> None:
        """Take up the host's side of a checkpoint; the curves go on from there. None: from the beginning."""
        self.progress = Progress(**host) if host else Progress()
        self.report.board.take_back(self.progress.curves)

    def run(self, interrupt: Interrupt) -> bool:
        """Train to the end; False where the job was told to stop before it (and has saved)."""
        self.interrupt = interrupt
        self.checkpoints.before_write = self.report.board.flush
        interrupt.attach(self.loop.request, self.checkpoint_s if self.checkpoints.chief else None)
        while True:
            try:
                self._begin()
                done = self._train()
                break
            except NotANumberError as error:
                repair(self, error)
        if done:
            self.callbacks.on_train_end()
        self.checkpoints.wait()
        return done

    def _begin(self) -> None:
        model = self.loop.model
        model.stop_training = False
        self.callbacks.on_train_begin()
        for callback, state in zip(self.callbacks.callbacks, self.progress.callbacks, strict=False):
            restore_callback(callback, state, self.progress.arrays)
        model.stop_training = self.progress.stop_training
        self.report.begin(self.loop.step, self.pipeline)
        if self.settings.on_nan == "rewind" and self.checkpoints.saved_step < 0:
            self._save()  # something to go back to

    def _train(self) -> bool:
        step, due = self.loop.step, False
        iterator = self.loop.iterator(step, self.total)
        while True:
            if step == (self.progress.epochs_ended + 1) * self.steps_per_epoch:
                if not self._end_epoch(step):
                    return self._stop()
                due = due or self.progress.best_step == step
            if due and (self.total - step > 2 or self.progress.best_step == step):  # the one at the end is close enough
                self._save()
            elif due:
                self.interrupt.saved()
            if step >= self.total or self.loop.model.stop_training:
                break
            step, asked = self._advance(iterator, step)
            if asked >= STOP:
                return self._stop()
            due = bool(asked or (self.checkpoint_steps and step % self.checkpoint_steps == 0))
        self._save()
        self.report.profile(step, ended=True)
        return True

    def _stop(self) -> bool:
        self.before_stop()
        self._save()
        return False

    def _advance(self, iterator: Any, step: int) -> tuple[int, float]:
        """Steps up to the next event; (the step reached, the request that the replicas agreed on)."""
        within = step % self.steps_per_epoch
        if within == 0:
            self.loop.metrics.reset()
            self.callbacks.on_epoch_begin(step // self.steps_per_epoch)
        self.callbacks.on_train_batch_begin(within)
        self.report.profile(step)
        step += self._steps(iterator, step, within)
        asked = float(np.asarray(self.loop.optimizer.agreed.numpy()))
        logs = self.loop.logs()
        find_bad(self, step, logs)
        self.callbacks.on_train_batch_end((step - 1) % self.steps_per_epoch, logs)
        if step % self.settings.log_every_steps == 0:
            self.report.steps(step, logs, self.loop)
        return step, asked

    def _steps(self, iterator: Any, step: int, within: int) -> int:
        """Run up to the next event; how many steps were made."""
        if self._looks(step):
            self.gradients = self.loop.train_and_look(iterator)
            return 1
        start = step - within
        with self.report.console.bar(self.steps_per_epoch, lambda: self.loop.step - start, lambda: self.report.shown):
            try:
                return self.loop.train(iterator, self._next_event(step) - step)
            except tf.errors.ResourceExhaustedError as error:
                raise memory.OutOfMemoryError(memory.explain(self.loop, self.settings, error)) from error

    def _looks(self, step: int) -> bool:
        """Whether `step` is the last of an epoch whose gradients are to be shown."""
        last = (step + 1) % self.steps_per_epoch == 0
        return last and self.report.wants_gradients(step // self.steps_per_epoch)

    def _next_event(self, step: int) -> int:
        every = [self.settings.log_every_steps, self.steps_per_epoch]
        every += [self.checkpoint_steps] if self.checkpoint_steps else []
        ahead = [(step // interval + 1) * interval for interval in every]
        if self._looks(epoch_end := ahead[1] - 1) and step < epoch_end:
            ahead.append(epoch_end)
        ahead += [bound for bound in self.report.profiled if bound > step]
        if self.settings.steps_per_call:
            ahead.append(step + self.settings.steps_per_call)
        return min(*ahead, self.total)

    def _end_epoch(self, step: int) -> bool:
        """Evaluate and report an epoch; False where the job was told to stop meanwhile: it is done again then."""
        epoch = self.progress.epochs_ended
        if self.progress.epoch_measured < epoch:  # evaluation resets the metrics that this comes from
            self.progress.train, self.progress.epoch_measured = self.loop.logs(), epoch
        validation: dict[str, float] | None = {}
        if self.pipeline.split("validation"):
            watch = peers.Watch(self.checkpoints.state, self.pipeline.share, lambda: self.interrupt.asked_to_stop)
            validation = self.loop.evaluate("validation", watch)
            watch.warn_of_slow(self.report.console.warn)
        if validation is None:
            return False
        self.progress.validation = validation
        logs = {**self.progress.train, **{f"val_{name}": value for name, value in validation.items()}}
        self.report.epoch(epoch, step, logs, self.gradients)
        if self.gradients is not None:
            self.report.look(step, self.loop, self.pipeline)
            self.gradients = None
        self.callbacks.on_epoch_end(epoch, logs)
        self.progress.epochs_ended += 1
        if self.best and self.best.improves(logs, self.progress.best_value):
            self.progress.best_value, self.progress.best_step = logs[self.best.name], step
        return True

    def _save(self) -> None:
        self.progress.arrays = []
        self.progress.callbacks = [callback_state(one, self.progress.arrays) for one in self.callbacks.callbacks]
        self.progress.stop_training = bool(self.loop.model.stop_training)
        self.progress.curves = dict(self.report.board.last_steps)
        if self.checkpoints.saved_step != self.loop.step:
            self.checkpoints.save(dataclasses.asdict(self.progress), best_step=self.progress.best_step)
        if self.checkpoint_steps:  # a promise in steps holds only if none is made before the write is done
            self.checkpoints.wait()
            self.checkpoints.state.gather(0.0, self.pipeline.share, "save")  # and all of them wait for the chief
        self.interrupt.saved(self.checkpoints.write_s)
