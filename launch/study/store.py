"""A study's folder: study.db (SQLite, optuna's), study.json (as `gcloud ai hp-tuning-jobs describe` prints one).

Trials are counted from 1, as Vertex AI does, and each has the folder of its number.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import optuna

from launch.errors import LaunchError
from launch.local import lock
from launch.study import search, space

COMPARED = ("parameters", "metrics", "algorithm")  # what trials must share to be of one study
SUCCEEDED, STOPPED, INFEASIBLE, FAILED, ACTIVE = "SUCCEEDED", "STOPPED", "INFEASIBLE", "FAILED", "ACTIVE"


@dataclass
class Store:
    """An open study. One process at a time may have it."""

    folder: Path
    job: Mapping  # the HyperparameterTuningJob, filled in
    source: str  # the file that it came from
    study: optuna.Study
    held: TextIO

    @property
    def metric(self) -> str:
        """metricId."""
        return self.job["studySpec"]["metrics"][0]["metricId"]

    @property
    def maximize(self) -> bool:
        """Whether more is better."""
        return self.study.direction == optuna.study.StudyDirection.MAXIMIZE

    def trials(self) -> list[optuna.trial.FrozenTrial]:
        """Those that were started, whatever became of them."""
        return [one for one in self.study.get_trials(deepcopy=False) if one.state != optuna.trial.TrialState.WAITING]

    def best(self) -> optuna.trial.FrozenTrial | None:
        """The best trial so far."""
        done = [one for one in self.trials() if one.value is not None]
        return (max if self.maximize else min)(done, key=lambda one: one.value) if done else None

    def write_json(self) -> Path:
        """Write study.json, whole or not at all."""
        file = self.folder / "study.json"
        body = {**self.job, "source": self.source, "trials": [self._as_json(one) for one in self.trials()]}
        temporary = file.with_suffix(".json.new")
        temporary.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
        temporary.replace(file)
        return file

    def _as_json(self, trial: optuna.trial.FrozenTrial) -> dict:
        parameters = trial.user_attrs.get("parameters", {})
        found = {
            "id": str(trial.number + 1),
            "state": "SUCCEEDED" if state(trial) == STOPPED else state(trial),
            "parameters": [{"parameterId": name, "value": value} for name, value in parameters.items()],
        }
        if trial.value is not None:
            step = end(trial).get("step", 0)
            metrics = [{"metricId": self.metric, "value": trial.value}]
            found["finalMeasurement"] = {"stepCount": str(step), "metrics": metrics}
        return found

    def close(self) -> None:
        """Let the next one have it."""
        self.held.close()


def state(trial: optuna.trial.FrozenTrial) -> str:
    """A trial's state, in Vertex AI's words, and STOPPED for one that was stopped early."""
    return end(trial).get("state", ACTIVE)


def note_end(trial: optuna.Trial, **facts: object) -> None:
    """Keep how a trial ended, in one write: state, reason, elapsed_s, step and curve."""
    trial.set_user_attr("end", facts)


def end(trial: optuna.trial.FrozenTrial) -> dict:
    """What `note_end` kept; {} for a trial that runs."""
    return trial.user_attrs.get("end", {})


def open_store(folder: Path, job: Mapping, source: str, seed: int = 0) -> Store:
    """Open the study in `folder`, or begin one. Raises LaunchError, also where another study is there."""
    spec = job["studySpec"]
    goal = _goal(spec)
    space.read(spec)
    algorithm = search.algorithm(spec)
    held = lock.hold(folder)
    try:
        study = _study(folder, spec, goal)
    except LaunchError:
        held.close()
        raise
    # Seeded anew by the number of trials: a sampler that begins again would propose the same again.
    study.sampler = search.sampler(algorithm, seed + len(study.get_trials(deepcopy=False)))
    return Store(folder, job, source, study, held)


def _study(folder: Path, spec: Mapping, goal: str) -> optuna.Study:
    """The study of study.db, which must be of this spec. Raises LaunchError."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    url = f"sqlite:///{folder / 'study.db'}"
    try:
        study = optuna.create_study(storage=url, study_name="study", direction=goal, load_if_exists=True)
        before = study.user_attrs.get("study_spec")
    except Exception as error:  # SQLAlchemy's and optuna's are many
        raise LaunchError(f"{folder / 'study.db'} is not a study's ({type(error).__name__}: {error})") from None
    compared = {key: spec.get(key) for key in COMPARED}
    if before is None:
        study.set_user_attr("study_spec", compared)
    elif before != json.loads(json.dumps(compared)):
        changed = ", ".join(key for key in COMPARED if before.get(key) != compared[key])
        raise LaunchError(
            f"{folder} holds a study with other {changed}: trials of both would not compare. "
            "--fresh sets it aside and begins anew, --output=... begins another"
        )
    return study


def _goal(spec: Mapping) -> str:
    metrics = spec.get("metrics")
    if not isinstance(metrics, list) or len(metrics) != 1 or not metrics[0].get("metricId"):
        raise LaunchError("studySpec.metrics must name one metric: metricId and goal")
    goal = metrics[0].get("goal")
    if goal not in ("MAXIMIZE", "MINIMIZE"):
        raise LaunchError(f"studySpec.metrics[0].goal is {goal!r}; MAXIMIZE or MINIMIZE was expected")
    return goal.lower()


def set_aside(folder: Path) -> Path | None:
    """Rename a study's folder out of the way; the new name, or None where there was none."""
    if not folder.exists() or not any(os.scandir(folder)):
        return None
    number = 1
    while (aside := folder.with_name(f"{folder.name}.{number}")).exists():
        number += 1
    folder.rename(aside)
    return aside
