"""--on_nan=rewind: back to the last good checkpoint, and on with half the learning rate."""

from typing import Any

import numpy as np

from trainer.guard.nan import NotANumberError

REWINDS = 3


def repair(training: Any, error: NotANumberError) -> None:
    """Go back to the last good checkpoint with half the learning rate; raise where that isn't wanted or possible."""
    made = training.progress.rewinds
    if training.settings.on_nan != "rewind":
        training.checkpoints.wait()
        saved = training.checkpoints.saved_step
        kept = f"; the checkpoint of step {saved} is kept" if saved >= 0 else ""
        raise NotANumberError(
            error.step, f"{error}\n--on_nan=rewind goes back and on with half the learning rate{kept}"
        )
    if len(made) >= REWINDS:
        raise NotANumberError(
            error.step, f"{error}\nit came back after {REWINDS} rewinds, the last to step {made[-1]['to']}"
        )
    console, optimizer = training.report.console, training.loop.optimizer
    training.checkpoints.wait()
    console.warn(str(error))
    training.resume(training.checkpoints.restore(console.warn))
    halvings = len(made) + 1 - len(training.progress.rewinds)
    _lower(optimizer, 0.5**halvings, error)
    training.progress.rewinds = [*made, {"from": error.step, "to": training.loop.step}]
    optimizer.first_bad_step.assign(-1)
    optimizer.agreed.assign(0.0)
    console.warn(
        f"rewind {len(made) + 1} of {REWINDS}: back from step {error.step} to {training.loop.step}, on with "
        "half the learning rate"
    )


def _lower(optimizer: Any, ratio: float, error: NotANumberError) -> None:
    schedule = getattr(optimizer, "schedule", None)
    if schedule is not None:
        schedule.factor.assign(float(schedule.factor.numpy()) * ratio)
        return
    try:
        optimizer.learning_rate = float(np.asarray(optimizer.learning_rate)) * ratio
    except (TypeError, AttributeError):
        raise NotANumberError(
            error.step,
            f"{error}\nno rewind: the model's own optimizer has a schedule that can't be halved; use the offered one",
        ) from None
