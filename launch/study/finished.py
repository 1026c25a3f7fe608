"""A study that has run, here or on Vertex AI, from its JSON."""

import json
from collections.abc import Mapping
from pathlib import Path

from launch.errors import LaunchError
from launch.spec import parse, shape
from launch.spec.document import show
from launch.study.narrow import Trial

KEPT = (
    "displayName",
    "labels",
    "maxTrialCount",
    "parallelTrialCount",
    "maxFailedTrialCount",
    "studySpec",
    "trialJobSpec",
)


def read(study: Path) -> tuple[dict, Path]:
    """A study as JSON, and the file that it was read from. Raises LaunchError."""
    file = study / "study.json" if study.is_dir() else study
    file = file.with_name("study.json") if file.name == "study.db" else file
    expected = "Expected: the folder of a `launch tune`, or `gcloud ai hp-tuning-jobs describe ID --format=json`"
    try:
        job = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise LaunchError(f"{file}: {error.strerror}. {expected}") from None
    except ValueError as error:
        raise LaunchError(f"{file} is no JSON: {error}. {expected}") from None
    if not isinstance(job, dict) or not all(isinstance(job.get(key), dict) for key in ("studySpec", "trialJobSpec")):
        raise LaunchError(f"{file} holds no tuning job with studySpec and trialJobSpec. {expected}")
    if places := [f"{show(path)} is {came}, no {wanted}" for path, came, wanted in shape.wrong(job, shape.TUNING)]:
        raise LaunchError(f"{file}: {'; '.join(places)}. {expected}")
    return job, file


def ended(job: Mapping) -> list[Trial]:
    """The trials with a final measurement, best first. Raises LaunchError where there is none."""
    wanted = metric(job)
    found = []
    for trial in job.get("trials") or []:
        scores = [
            float(one["value"])
            for one in (trial.get("finalMeasurement") or {}).get("metrics") or []
            if one.get("metricId") == wanted["metricId"]
        ]
        if scores:
            values = {one["parameterId"]: one["value"] for one in trial.get("parameters") or []}
            found.append(Trial(str(trial.get("id", "")), values, scores[0]))
    if not found:
        raise LaunchError(f"no trial of the study has a final {metric['metricId']}: there is nothing to refine yet")
    return sorted(found, key=lambda one: one.score, reverse=wanted.get("goal") == "MAXIMIZE")


def metric(job: Mapping) -> Mapping:
    """The study's metric: metricId and goal. Raises LaunchError."""
    metrics = job["studySpec"].get("metrics") or [{}]
    if not metrics[0].get("metricId"):
        raise LaunchError("studySpec.metrics names no metricId")
    return metrics[0]


def runs_trainer(job: Mapping) -> bool:
    """Whether its trials run our trainer, which can be asked about its flags."""
    pool = (job["trialJobSpec"].get("workerPoolSpecs") or [{}])[0]
    package = pool.get("pythonPackageSpec") or {}
    return package.get("pythonModule") == "trainer.task" or not (pool.get("containerSpec") or {}).get("command")


def template(job: Mapping) -> dict:
    """The file that the study came from, its variables not filled in, where it is still there; else the study."""
    source = Path(str(job.get("source", "")))
    if job.get("source") and source.is_file():
        return parse.read(str(source), lambda text, mark: text).data
    return {key: job[key] for key in KEPT if key in job}
