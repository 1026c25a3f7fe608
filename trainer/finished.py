"""Whether a job is finished already: what its result.json says, read without TensorFlow where it lies on a disk."""

import json
import os
from typing import Any

from trainer import yours
from trainer.replicas.cluster import Cluster
from trainer.saving.places import Places
from trainer.settings import Settings


def already_done(path: str, settings: Settings, console: Any) -> bool:
    """Whether result.json at `path` says that this job is finished; then, or where it goes on, a line says so."""
    done, sentence = _verdict(_read(path), path, settings)
    if sentence:
        console.line(sentence)
    return done


def without_tensorflow(where: Places, settings: Settings, here: Cluster) -> bool:
    """The same, told before TensorFlow is imported, where nothing but the result has to be looked at.

    That is a job of one process and on disks alone, whose model.py and data.py are those that it was finished with;
    of every other the run itself says it, once it has looked at the buckets, the cluster and the two files.
    """
    places = (settings.data_dir, where.model, where.checkpoints, where.logs, where.result)
    if here.in_cloud or here.addresses or here.role != "chief" or any("://" in place for place in places):
        return False
    result = _read(where.result)
    done, sentence = _verdict(result, where.result, settings)
    if not done or result.get("yours") != yours.contents():
        return False
    print(sentence)
    return True


def finished(path: str, epochs: int = 0) -> bool:
    """Whether result.json at `path` is that of a finished job, of at least `epochs`."""
    result = _read(path)
    return bool(result.get("finished")) and result.get("flags", {}).get("epochs", epochs) >= epochs


def _verdict(result: dict[str, Any], path: str, settings: Settings) -> tuple[bool, str]:
    """(whether the job is finished, what to say about it)."""
    job = os.environ.get("CLOUD_ML_JOB_ID")
    restarted = bool(job) and result.get("job") == job  # by the platform, with the same flags as before
    if not result.get("finished") or (settings.fresh and not restarted):
        return False, ""
    before = result.get("flags", {}).get("epochs", settings.epochs)
    if settings.epochs > before:
        return False, f"this job was finished at --epochs={before}; it goes on to --epochs={settings.epochs}"
    others = "--fresh starts it over, more --epochs goes on, --job_dir is another"
    return True, f"this job is finished ({path}); {others}"


def _read(path: str) -> dict[str, Any]:
    """The file's object; {} where there is none, or none that can be read."""
    try:
        if "://" not in path:
            with open(path, encoding="utf-8") as file:
                found = json.load(file)
        else:
            import tensorflow as tf

            try:
                with tf.io.gfile.GFile(path) as file:
                    found = json.load(file)
            except (tf.errors.NotFoundError, tf.errors.FailedPreconditionError):
                return {}
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
