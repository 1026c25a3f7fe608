"""Vertex AI's jobs through gcloud: named, found, described, listed, cancelled."""

import dataclasses
import re
from typing import Literal

from launch import gcloud, project, remembered
from launch.errors import LaunchError
from launch.gcloud import GcloudError

_NAME = re.compile(
    r"projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)/(?P<what>customJobs|hyperparameterTuningJobs)/(?P<id>\d+)"
)
ENDED = {"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"}


@dataclasses.dataclass(frozen=True)
class Job:
    """A job by its full name."""

    kind: Literal["custom", "tuning"]
    project: str
    region: str
    id: str

    @classmethod
    def parse(cls, name: str) -> "Job | None":
        """From `projects/P/locations/R/customJobs/ID` (or hyperparameterTuningJobs); None for anything else."""
        match = _NAME.fullmatch(name)
        if not match:
            return None
        kind = "custom" if match["what"] == "customJobs" else "tuning"
        return cls(kind, match["project"], match["region"], match["id"])

    @property
    def name(self) -> str:
        """The full name."""
        return f"projects/{self.project}/locations/{self.region}/{COLLECTION[self.kind]}/{self.id}"

    @property
    def link(self) -> str:
        """The page in the console, as google-cloud-aiplatform's jobs.py prints it."""
        place = f"locations/{self.region}/training/{self.id}?project={self.project}"
        return f"https://console.cloud.google.com/agent-platform/{place}"


COLLECTION = {"custom": "customJobs", "tuning": "hyperparameterTuningJobs"}
COMMAND = {"custom": "custom-jobs", "tuning": "hp-tuning-jobs"}


def place(given: dict[str, str] | None = None) -> dict[str, str]:
    """PROJECT and REGION, from project.env, the environment or gcloud. Raises LaunchError naming what is missing."""
    values = project.variables("job", given, ask_gcloud=True)
    lacking = [name for name in ("PROJECT", "REGION") if not values.get(name)]
    if lacking:
        raise LaunchError(project.missing(lacking))
    return {name: values[name] for name in ("PROJECT", "REGION")}


def describe(job: Job) -> dict:
    """The job as the API has it."""
    return gcloud.run("ai", COMMAND[job.kind], "describe", job.name)


def cancel(job: Job) -> None:
    """Ask for the job's end; it takes a moment (CANCELLING)."""
    gcloud.run("ai", COMMAND[job.kind], "cancel", job.name)


def jobs(kind: Literal["custom", "tuning"], where: dict[str, str], limit: int, condition: str = "") -> list[dict]:
    """The newest jobs of a kind, newest first; `condition` is a gcloud --filter."""
    chosen = (f"--filter={condition}",) if condition else ()
    place_ = (f"--project={where['PROJECT']}", f"--region={where['REGION']}")
    order = (f"--limit={limit}", "--sort-by=~createTime")
    return gcloud.run("ai", COMMAND[kind], "list", *place_, *order, *chosen) or []


def find(text: str | None) -> Job:
    """The job that is meant: a full name, an id, the name that submit gave it, or (None) the one submitted last.

    Raises LaunchError where there is none.
    """
    if text is None:
        name = remembered.last_job()
        if not name:
            came = "no job was named and none was submitted from here."
            raise LaunchError(f"{came} Expected: a job's name or id; `launch list` shows them")
        text = name
    if job := Job.parse(text):
        return job
    where = place()
    if text.isdigit():
        return _by_id(text, where)
    for kind in ("custom", "tuning"):
        for entry in jobs(kind, where, 1, f"displayName={text}"):
            if job := Job.parse(entry.get("name", "")):
                return job
    raise LaunchError(
        f"no job {text!r} in {where['PROJECT']}, {where['REGION']}. `launch list` shows what there is", exit_code=1
    )


def _by_id(number: str, where: dict[str, str]) -> Job:
    for kind in ("custom", "tuning"):
        job = Job(kind, where["PROJECT"], where["REGION"], number)
        try:
            describe(job)
        except GcloudError as error:
            if "NOT_FOUND" not in error.said and "not found" not in error.said.lower():
                raise
            continue
        return job
    raise LaunchError(
        f"no job {number} in {where['PROJECT']}, {where['REGION']}. `launch list` shows what there is", exit_code=1
    )


def state(entry: dict) -> str:
    """`RUNNING` of a job or a trial as the API has it."""
    return str(entry.get("state", "JOB_STATE_UNSPECIFIED")).removeprefix("JOB_STATE_")
