"""Where a job's things go: a flag says so, or Vertex AI, which sets AIP_* where a job has a baseOutputDirectory."""

import dataclasses
import os
import posixpath
from collections.abc import Mapping

from trainer.settings import Settings


@dataclasses.dataclass(frozen=True)
class Places:
    """Where a job's things go; every path may be gs://."""

    model: str
    checkpoints: str
    logs: str
    result: str  # result.json


def places(settings: Settings, environ: Mapping[str, str] = os.environ) -> Places:
    """A flag wins over the platform's AIP_* variable, and that over --job_dir."""

    def place(flag: str, variable: str, folder: str) -> str:
        return (flag or environ.get(variable) or posixpath.join(settings.job_dir, folder)).rstrip("/")

    model = place(settings.model_dir, "AIP_MODEL_DIR", "model")
    base = settings.job_dir
    if not settings.model_dir and environ.get("AIP_MODEL_DIR"):
        base = posixpath.dirname(model)
    return Places(
        model=model,
        checkpoints=place(settings.checkpoint_dir, "AIP_CHECKPOINT_DIR", "checkpoints"),
        logs=place(settings.log_dir, "AIP_TENSORBOARD_LOG_DIR", "logs"),
        result=posixpath.join(base, "result.json"),
    )
