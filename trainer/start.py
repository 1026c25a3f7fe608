"""How a run begins: finished already, over again, from a checkpoint, or from the seed. checkpoint.py has the policy."""

import os
import zlib
from typing import Any

from trainer import flags
from trainer.finished import already_done, finished
from trainer.input.pipeline import Pipeline
from trainer.input.sources import Files
from trainer.report import Console
from trainer.saving import folders
from trainer.saving.checkpoint import Checkpoints
from trainer.saving.places import Places
from trainer.settings import Settings

__all__ = ["already_done", "begin", "describe_data", "finished", "other_flags", "same_job"]

# What decides which example comes at which step and what is computed from it: another value is another job.
SAME_JOB = ("batch_size", "seed", "shuffle_buffer", "steps_per_epoch", "examples_per_epoch", "precision")
UNNAMED = ("job_dir", "data_dir", "model_dir", "checkpoint_dir", "log_dir", "fresh", "verbose")


def same_job(settings: Settings, hyperparameters: Any, pipeline: Pipeline) -> dict[str, Any]:
    """What must be as it was for a checkpoint to be of this job; by the names that a person knows."""
    values = {name: getattr(settings, name) for name in SAME_JOB} | flags.as_dict(hyperparameters)
    return {f"--{name}": value for name, value in values.items()} | {"the data": describe_data(pipeline)}


def other_flags(settings: Settings) -> dict[str, Any]:
    """The flags that may change from one run of a job to the next, those of places aside."""
    values = settings.model_dump()
    return {f"--{name}": value for name, value in values.items() if name not in (*SAME_JOB, *UNNAMED)}


def describe_data(pipeline: Pipeline) -> str:
    """The training data in words: files and a checksum of their names, and records where they are counted anyway."""
    split, words = pipeline.split("train"), []
    if isinstance(split.source, Files):
        names = [os.path.basename(path) for path in split.source.paths]
        words.append(f"{len(names)} files (names {zlib.crc32(' '.join(names).encode()):08x})")
    if not (pipeline.settings.steps_per_epoch or pipeline.settings.examples_per_epoch):
        words.append(f"{split.count} records")
    return " with ".join(words)


def begin(training: Any, checkpoints: Checkpoints, where: Places, settings: Settings, console: Console) -> None:
    """Set aside, or resume; says in a line what was done. Every worker calls it.

    Raises CheckpointError, storage.StorageError.
    """
    if checkpoints.chief:
        folders.clear_unfinished(where.checkpoints)
        if settings.fresh and checkpoints.reader.belongs_to_this_cloud_job():
            console.line("--fresh is passed over: the platform has restarted this job, which goes on where it was")
        elif settings.fresh:
            moved = folders.set_aside(where.checkpoints, where.logs, where.model, where.result)
            console.line(f"starting over; set aside: {', '.join(moved)}" if moved else "starting over")
    host = checkpoints.restore(console.warn)
    training.resume(host)
    if host is not None:
        console.line(f"resuming at step {training.loop.step} of {training.total} from {where.checkpoints}")
        if checkpoints.changed:
            console.line(f"changed since then, without harm to what was trained: {'; '.join(checkpoints.changed)}")
