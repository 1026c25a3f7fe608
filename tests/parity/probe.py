"""One process of one run that is compared: trains some steps and writes what it saw. `python -m tests.parity.probe`.

Arguments: OUTPUT.npz, plain|full, STEPS, then the trainer's flags. The environment says which replica this is.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

from tests.parity import digits
from trainer import build, flags, model
from trainer.input.pipeline import Pipeline
from trainer.replicas import cluster
from trainer.report import Console
from trainer.strategies import devices, loops, server, strategy


def main(output: str, kind: str, steps: int, arguments: list[str]) -> int:
    """Train and write losses [steps], weights, and the metrics of fixed and of trained weights."""
    settings, hyperparameters = flags.parse(arguments)
    here = cluster.read_cluster()
    if here.role in ("worker", "ps") and strategy.needs_server(settings, here):
        return server.serve(here, 30.0, lambda: os.path.exists(output), Console())
    found = devices.set_up_devices(settings, here)
    keras.utils.set_random_seed(settings.seed)
    model.build_model = lambda _, optimizer: digits.build_model(kind == "plain", optimizer)
    spread = strategy.make_strategy(settings, here, found)
    share = strategy.share(here, spread)
    pipeline = Pipeline(digits, settings, share)
    with spread.scope():
        compiled = build.build(settings, hyperparameters, steps)
    loop = loops.make_loop(compiled, spread, pipeline, settings, lambda: build.build(settings, hyperparameters, steps))
    fixed = loop.evaluate("validation")
    iterator, losses = loop.iterator(0, steps), []
    for _ in range(0, steps, settings.steps_per_call or 1):
        loop.metrics.reset()
        loop.train(iterator, settings.steps_per_call or 1)
        losses.append(loop.logs()["loss"])
    trained = loop.evaluate("validation")
    if here.is_chief:
        weights = {f"weight_{i}": np.asarray(w) for i, w in enumerate(compiled.weights)}
        metrics = {f"fixed_{k}": v for k, v in fixed.items()} | {f"trained_{k}": v for k, v in trained.items()}
        np.savez(output, losses=np.array(losses), steps=loop.step, **weights, **metrics)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
