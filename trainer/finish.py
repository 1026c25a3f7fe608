"""How a job ends: the last evaluation, the export, and the result that says it is done."""

from typing import Any

import keras

from trainer import data, export, flags, start
from trainer.build import build
from trainer.replicas import peers
from trainer.replicas.cluster import Cluster
from trainer.report import Console, write_json
from trainer.settings import Settings
from trainer.strategies import server
from trainer.training import Training

DONE, FAILED = 0, 1


def measure(training: Training) -> dict[str, dict[str, float]]:
    """The metrics of every split."""
    metrics = {"train": training.progress.train, "validation": training.progress.validation}
    if training.pipeline.split("test"):
        metrics["test"] = training.loop.evaluate("test")
    return metrics


def follow_chief(settings: Settings, here: Cluster, where: Any, console: Console) -> None:
    """A worker's end: when the chief has exported, which would miss a worker that leaves before."""
    with server.silence():
        server.wait_for_chief(here, settings.peer_timeout_s, was_there=True)
        done = start.finished(where.result)
    if not done:
        console.line("the chief ended before it had exported: start this replica again with it", "ERROR")
    peers.leave(DONE if done else FAILED)


def export_and_tell(
    settings: Settings, hyperparameters: Any, where: Any, console: Console, training: Training, metrics: dict
) -> int:
    """The chief's end: the model is exported and tried, then the result written."""
    loop, pipeline = training.loop, training.pipeline
    split = pipeline.split("train")
    spec = keras.utils.unpack_x_y_sample_weight(split.element_spec)[0]
    sample = keras.utils.unpack_x_y_sample_weight(pipeline.sample())[0]

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
