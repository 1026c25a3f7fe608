"""Vertex AI's jobs through gcloud: the account, the project, proxies and impersonation are gcloud's own business.

Each call is one `gcloud ... --format=json` (about a second); what it says on stderr is told when it fails.
"""

import dataclasses
import json
import re
import shutil
import subprocess
from typing import Any, Literal

from launch import project
from launch.errors import LaunchError

INSTALL = "https://cloud.google.com/sdk/docs/install"
_TRANSIENT = re.compile(
    r"\b(429|50[0234])\b|UNAVAILABLE|RESOURCE_EXHAUSTED|DEADLINE_EXCEEDED|INTERNAL\b|[Tt]imed? ?out|[Cc]onnection|"
    r"[Nn]etwork is unreachable|[Nn]ame resolution|[Rr]emote end closed|reset by peer|Max retries",
)
_SIGN_IN = re.compile(
    r"do not currently have an active account|Reauthentication|refreshing your current auth|invalid_grant"
)
_NAME = re.compile(
    r"projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)/(?P<what>customJobs|hyperparameterTuningJobs)/(?P<id>\d+)"
)
ENDED = {"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"}


class GcloudError(LaunchError):
    """gcloud said no. `said` is its stderr; `transient`: the same call may work in a moment."""

    def __init__(self, said: str, command: str):
        lines = [line for line in said.splitlines() if not line.startswith("Using endpoint ")]
        self.said = "\n".join(lines).strip()
        self.transient = bool(_TRANSIENT.search(self.said))
        fix = "\nFix: gcloud auth login" if _SIGN_IN.search(self.said) else ""
        super().__init__(f"{command}: {self.said or 'it failed without a word'}{fix}", exit_code=1)


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


def gcloud(*arguments: str, text: str | None = None) -> Any:
    """Run gcloud with --format=json; what it answered. `text` goes to its stdin. Raises GcloudError, LaunchError."""
    program = shutil.which("gcloud")
    if program is None:
        raise LaunchError(
            f"gcloud is not installed, and this needs it. Fix: install it from {INSTALL}, then `gcloud auth login`"
        )
    command = [program, *arguments, "--format=json", "--quiet"]
    given = {"input": text} if text is not None else {"stdin": subprocess.DEVNULL}
    done = subprocess.run(command, capture_output=True, text=True, **given)
    shown = f"gcloud {' '.join(arguments[:3])}"
    if done.returncode:
        raise GcloudError(done.stderr, shown)
    try:
        return json.loads(done.stdout or "null")
    except ValueError as error:
        raise GcloudError(f"an answer that isn't JSON: {done.stdout[:200]!r}", shown) from error


def place(given: dict[str, str] | None = None) -> dict[str, str]:
    """PROJECT and REGION, from project.env, the environment or gcloud. Raises LaunchError naming what is missing."""
    values = project.variables("job", given, ask_gcloud=True)
    lacking = [name for name in ("PROJECT", "REGION") if not values.get(name)]
    if lacking:
        raise LaunchError(project.missing(lacking))
    return {name: values[name] for name in ("PROJECT", "REGION")}


def describe(job: Job) -> dict:
    """The job as the API has it."""
    return gcloud("ai", COMMAND[job.kind], "describe", job.name)


def cancel(job: Job) -> None:
    """Ask for the job's end; it takes a moment (CANCELLING)."""
    gcloud("ai", COMMAND[job.kind], "cancel", job.name)


def jobs(kind: Literal["custom", "tuning"], where: dict[str, str], limit: int, condition: str = "") -> list[dict]:
    """The newest jobs of a kind, newest first; `condition` is a gcloud --filter."""
    chosen = (f"--filter={condition}",) if condition else ()
    place_ = (f"--project={where['PROJECT']}", f"--region={where['REGION']}")
    order = (f"--limit={limit}", "--sort-by=~createTime")
    return gcloud("ai", COMMAND[kind], "list", *place_, *order, *chosen) or []


def find(text: str | None) -> Job:
    """The job that is meant: a full name, an id, the name that submit gave it, or (None) the one submitted last.

    Raises LaunchError where there is none.
    """
    if text is None:
        name = project.last_job()
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


def log_entries(job: Job, since: str, severity: str = "DEFAULT", limit: int = 1000) -> list[dict]:
    """Log entries of all replicas from `since` (RFC 3339) on, oldest first.

    The filter is the one that `gcloud ai custom-jobs stream-logs` uses.
    """
    parts = ['resource.type="ml_job"', f'resource.labels.job_id="{job.id}"', f'timestamp>="{since}"']
    if severity != "DEFAULT":
        parts.append(f"severity>={severity}")
    # the names that the API gives hold the project's number, which gcloud takes in a name and refuses in --project
    owner = place()["PROJECT"] if job.project.isdigit() else job.project
    order = ("--order=asc", f"--limit={limit}", f"--project={owner}")
    return gcloud("logging", "read", " AND ".join(parts), *order) or []
