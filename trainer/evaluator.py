"""The evaluator: a replica of its own that evaluates each new checkpoint on the validation data until training ends.

It trains nothing and takes no part in the cluster (Vertex AI: worker pool 3; TF_CONFIG names it in `task` alone). Its
curve is logs/evaluator, which nobody else writes.
"""

import time
from collections.abc import Callable

import tensorflow as tf

from trainer.input.sources import DataError
from trainer.loop import Loop
from trainer.report import Console, TensorBoard
from trainer.report.console import format_values
from trainer.saving.checkpoint import Checkpoints

LOOK_EVERY_S = 5.0


def evaluate_until(
    loop: Loop,
    checkpoints: Checkpoints,
    finished: Callable[[], bool],
    asked_to_stop: Callable[[], bool],
    console: Console,
    board: TensorBoard,
    every_s: float = LOOK_EVERY_S,
) -> bool:
    """Evaluate the newest checkpoint whenever there is a new one; True once training is over and its last is done.

    False where this process was told to stop before. Raises DataError where there is no validation data.
    """
    if not loop.pipeline.split("validation"):
        raise DataError('an evaluator needs the "validation" records, and data.records gives None for them')
    last = -1
    while not asked_to_stop():
        over = finished()  # looked up first: what is there afterwards is all there will be
        newest = max(_steps(checkpoints), default=-1)
        last = min(last, newest)  # the chief went back (a rewind, --fresh): what it saves from there on is new
        if newest > last and checkpoints.restore(_pass_over) is not None and loop.step > last:
            last = loop.step
            values = loop.evaluate("validation")
            console.line(f"step {last}  {format_values(values)}")
            board.scalars("evaluator", last, values)
            board.flush()
        elif over:
            return True
        else:
            time.sleep(every_s)
    return False


def _pass_over(_: str) -> None:
    """A checkpoint that isn't whole is being written or removed by the chief: nothing that a person should act on."""


def _steps(checkpoints: Checkpoints) -> list[int]:
    try:
        return list(checkpoints.steps())
    except tf.errors.NotFoundError:  # no folder yet
        return []
