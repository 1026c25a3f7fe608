"""The reports of one job: what is said after some steps, after an epoch and at the end."""

import os
import platform
from types import ModuleType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainer import yours
from trainer.input.pipeline import Pipeline
from trainer.report.console import Console, Rate, format_values
from trainer.report.tensorboard import TensorBoard, confusion_matrix
from trainer.report.tuning import Tuning
from trainer.settings import Settings


class JobReport:
    """Gathers what training knows and tells it to the console, TensorBoard and the tuning service.

    Args:
        data: data.py, for its optional CLASS_NAMES.
        total: steps of the whole job.
    """

    def __init__(
        self, console: Console, board: TensorBoard, tuning: Tuning, settings: Settings, data: ModuleType, total: int
    ):
        self.console, self.board, self.tuning = console, board, tuning
        self.settings, self.data, self.total = settings, data, total
        self.shown: dict[str, float] = {}
        self.rate = Rate(settings.batch_size, 0)
        self.profiled = tuple(int(step) for step in settings.profile_steps.split(":") if step)  # first, last
        self._profiling = False
        self._unseen: Pipeline | None = None  # whose examples are to be shown

    def profile(self, step: int, ended: bool = False) -> None:
        """Begin or end the profile of --profile_steps before `step` is made, or at the end; the chief's alone."""
        if not self.profiled or not self.board.directory:
            return
        inside = not ended and self.profiled[0] <= step < self.profiled[1]
        if inside and not self._profiling:
            tf.profiler.experimental.start(f"{self.board.directory}/train")
        elif self._profiling and not inside:
            tf.profiler.experimental.stop()
        self._profiling = inside

    def begin(self, step: int, pipeline: Pipeline) -> None:
        """Before the first step of this run."""
        self.rate = Rate(self.settings.batch_size, step)
        self._unseen = pipeline if self.board.directory and step == 0 and pipeline.split("train").fits else None

    def _show_examples(self) -> None:
        """Once, and not before the first steps are made: nobody should wait for pictures."""
        if self._unseen is not None:
            features = keras.utils.unpack_x_y_sample_weight(self._unseen.split("train").examples)[0]
            self.board.images(0, tf.nest.map_structure(lambda tensor: tensor[:8], features))
        self._unseen = None

    def steps(self, step: int, logs: dict[str, float], loop: Any) -> None:
        """After every --log_every_steps."""
        self._show_examples()
        before, rate = self.rate.step, self.rate.look(step)
        self.shown = dict(logs)
        if not self.console.live:
            self.console.line(f"step {step}/{self.total}  {format_values(logs)}  {rate:.0f} examples/s")
        optimizer = loop.optimizer
        self.board.scalars(
            "train",
            step,
            logs
            | {
                "learning_rate": float(np.asarray(optimizer.learning_rate)),
                "gradient_norm": float(np.asarray(optimizer.gradient_norm.numpy())),
            },
        )
        wait_share = loop.input_wait_s() / max(self.rate.step_s * (step - before), 1e-9)
        self.board.scalars(
            "speed",
            step,
            {"examples_per_s": rate, "step_ms": self.rate.step_s * 1e3, "input_wait_share": min(1.0, wait_share)},
        )

    def wants_gradients(self, epoch: int) -> bool:
        """Whether the last step of an epoch (counted from 0) is to hand out its gradients."""
        every = self.settings.histogram_epochs
        # the same at every worker, though only the chief writes: the step that hands them out is one of all workers
        return bool(every and (epoch + 1) % every == 0)

    def epoch(self, epoch: int, step: int, logs: dict[str, float], gradients: dict[str, Any] | None) -> None:
        """After an epoch, counted from 0; `logs` has the validation metrics with val_ before their names."""
        self._show_examples()
        self.console.line(f"epoch {epoch + 1}/{self.settings.epochs}  {format_values(logs)}")
        validation = {name.removeprefix("val_"): value for name, value in logs.items() if name.startswith("val_")}
        self.board.scalars("validation", step, validation)
        self.tuning.epoch(epoch + 1, logs)
        if gradients:
            self.board.histograms(step, {f"gradients/{name}": value for name, value in gradients.items()})

    def look(self, step: int, loop: Any, pipeline: Pipeline) -> None:
        """Weight histograms, graph and confusion matrix, as often as the gradients' histograms."""
        model = loop.model_at_hand
        self.board.histograms(step, {f"weights/{v.path}": np.asarray(v) for v in model.trainable_variables})
        if loop.test_graph is not None:
            self.board.graph(loop.test_graph)
        if pipeline.split("validation"):
            matrix = confusion_matrix(model, pipeline.plain("validation"))
            if matrix is not None:
                names = getattr(self.data, "CLASS_NAMES", None) or [str(i) for i in range(len(matrix))]
                self.board.confusion(step, matrix, names)

    def result(self, step: int, metrics: dict[str, dict[str, float]], flags: dict[str, Any]) -> dict[str, Any]:
        """result.json of a finished job."""
        return {
            "finished": True,
            "job": os.environ.get("CLOUD_ML_JOB_ID", ""),
            "metrics": metrics,
            "steps": step,
            "examples_per_s": round(self.rate.overall(step), 1),
            "flags": flags,
            "yours": yours.contents(),
            "versions": {
                "tensorflow": tf.__version__,
                "keras": keras.__version__,
                "python": platform.python_version(),
            },
        }
