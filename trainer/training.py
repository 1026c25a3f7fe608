"""The course of a job: epochs, evaluation, callbacks, checkpoints, reports, and when to stop."""

import dataclasses
from typing import Any

import keras
import numpy as np

from trainer.checkpoint import Checkpoints
from trainer.interrupt import Interrupt
from trainer.loop import Loop
from trainer.pipeline import Pipeline
from trainer.report.job import JobReport
from trainer.settings import Settings
from trainer.update import STOP


class NotANumberError(Exception):
    """A loss or gradient was NaN or infinite; str() says when and what to do."""


@dataclasses.dataclass
class Progress:
    """What a checkpoint keeps of the host's side."""

    epochs_ended: int = 0
    validation: dict[str, float] = dataclasses.field(default_factory=dict)
    train: dict[str, float] = dataclasses.field(default_factory=dict)
    callbacks: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    stop_training: bool = False


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
        self.total = self.steps_per_epoch * settings.epochs
        self.callbacks = keras.callbacks.CallbackList(callbacks, model=loop.model)
        self.callbacks.set_params({"epochs": settings.epochs, "steps": self.steps_per_epoch, "verbose": 0})
        self.progress = Progress()
        self.gradients: dict[str, Any] | None = None
        every = settings.checkpoint_every
        self.checkpoint_steps = int(every.removesuffix("steps")) if every.endswith("steps") else 0
        self.checkpoint_s = None if self.checkpoint_steps else float(every.removesuffix("s"))

    def resume(self, host: dict[str, Any] | None) -> None:
        """Take up the host's side of a checkpoint."""
        if host is not None:
            self.progress = Progress(**host)

    def run(self) -> bool:
        """Train to the end; False where the job was told to stop before it (and has saved)."""
        model = self.loop.model
        model.stop_training = False
        self.callbacks.on_train_begin()
        for callback, state in zip(self.callbacks.callbacks, self.progress.callbacks, strict=False):
            _restore(callback, state)
        model.stop_training = self.progress.stop_training
        step = self.loop.step
        iterator = self.loop.iterator(step, self.total)
        self.report.begin(step, self.pipeline)
        timer = self.checkpoint_s if self.checkpoints.chief else None
        with Interrupt(self.loop.request, timer) as interrupt:
            while True:
                if step == (self.progress.epochs_ended + 1) * self.steps_per_epoch:
                    self._end_epoch(step)
                if step >= self.total or model.stop_training:
                    break
                step, asked = self._advance(iterator, step)
                if asked >= STOP:
                    self._save(interrupt)
                    self.checkpoints.wait()
                    return False
                if asked or (self.checkpoint_steps and step % self.checkpoint_steps == 0):
                    if self.total - step > 2:  # the one at the end is close enough
                        self._save(interrupt)
                    else:
                        interrupt.saved()
            self._save(interrupt)
        self.callbacks.on_train_end()
        self.checkpoints.wait()
        return True

    def _advance(self, iterator: Any, step: int) -> tuple[int, float]:
        """Steps up to the next event; (the step reached, the request that the replicas agreed on)."""
        within = step % self.steps_per_epoch
        if within == 0:
            self.loop.model.reset_metrics()
            self.callbacks.on_epoch_begin(step // self.steps_per_epoch)
        self.callbacks.on_train_batch_begin(within)
        step += self._steps(iterator, step, within)
        asked = float(np.asarray(self.loop.optimizer.agreed.numpy()))
        self._check_finite(step)
        logs = self.loop.logs()
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
            return self.loop.train(iterator, self._next_event(step) - step)

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
        if self.settings.steps_per_call:
            ahead.append(step + self.settings.steps_per_call)
        return min(*ahead, self.total)

    def _check_finite(self, step: int) -> None:
        bad = int(np.asarray(self.loop.optimizer.first_bad_step.numpy()))
        if bad >= 0:
            raise NotANumberError(
                f"the gradient of step {bad} is not finite (seen at step {step}); in order: lower --learning_rate, "
                "raise --warmup_steps, lower --clip_norm, use Adam, look at a custom loss for log(0) or x/0"
            )

    def _end_epoch(self, step: int) -> None:
        epoch = self.progress.epochs_ended
        train = self.loop.logs()
        validation = self.loop.evaluate("validation") if self.pipeline.split("validation") else {}
        self.progress.train, self.progress.validation = train, validation
        logs = {**train, **{f"val_{name}": value for name, value in validation.items()}}
        self.report.epoch(epoch, step, logs, self.gradients)
        if self.gradients:
            self.report.look(step, self.loop, self.pipeline)
            self.gradients = None
        self.callbacks.on_epoch_end(epoch, logs)
        self.progress.epochs_ended += 1

    def _save(self, interrupt: Interrupt) -> None:
        self.progress.callbacks = [_state(callback) for callback in self.callbacks.callbacks]
        self.progress.stop_training = bool(self.loop.model.stop_training)
        if self.checkpoints.saved_step != self.loop.step:
            self.checkpoints.save(dataclasses.asdict(self.progress))
        interrupt.saved()


def _state(callback: keras.callbacks.Callback) -> dict[str, Any]:
    """The plain values that a callback holds: counters, bests, whether it has stopped."""
    plain = (bool, int, float, str, type(None))
    state = {name: value.item() if isinstance(value, np.generic) else value for name, value in vars(callback).items()}
    return {name: value for name, value in state.items() if isinstance(value, plain) and name != "_model"}


def _restore(callback: keras.callbacks.Callback, state: dict[str, Any]) -> None:
    for name, value in state.items():
        setattr(callback, name, value)
