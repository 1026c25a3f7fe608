"""The log of a job on Vertex AI, through gcloud.

The filter is the one that `gcloud ai custom-jobs stream-logs` uses; a tuning job's trials write under ids of
their own, which its description names.
"""

import re
import shutil
import subprocess
import tempfile
from typing import BinaryIO

from launch.errors import LaunchError

NAME = re.compile(
    r"(?:projects/(?P<project>[^/]+)/locations/(?P<region>[^/]+)/(?:customJobs|hyperparameterTuningJobs)/)?(?P<id>\d+)"
)
ENTRIES = 20_000


def is_job(text: str) -> bool:
    """Whether the text is a job's id or its full name."""
    return bool(NAME.fullmatch(text))


def log_filter(job: str) -> str:
    """Cloud Logging's filter for all replicas of a job."""
    return f'resource.type="ml_job" AND resource.labels.job_id="{job}"'


def command(job: str, project: str = "") -> list[str]:
    """The gcloud command that prints the log, the newest ENTRIES entries of it, one JSON object an entry."""
    match = NAME.fullmatch(job)
    project = match["project"] or project
    return [
        "gcloud", "logging", "read", log_filter(match["id"]),
        f"--limit={ENTRIES}", "--order=desc", "--freshness=30d", "--format=json",
        *([f"--project={project}"] if project else []), "--quiet",
    ]  # fmt: skip


def fetch(job: str, project: str = "") -> BinaryIO:
    """The job's log as a temporary file at its start. Raises LaunchError with gcloud's words."""
    if not shutil.which("gcloud"):
        raise LaunchError(
            "gcloud isn't installed, and a job's log comes through it. Fix: install the Google Cloud CLI, or save the "
            "log from the console and give the file: make diagnose FILE=job.log"
        )
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    done = subprocess.run(command(job, project), stdout=spool, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    if done.returncode:
        spool.close()
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise LaunchError(f"gcloud could not read the log of job {job}: " + " ".join(said[:6]))
    if spool.tell() < 8:
        spool.close()
        raise LaunchError(
            f"job {job} has no log entry of the last 30 days. Is the id right, and the project "
            f"({project or 'gcloud config get project'})? A job whose account lacks roles/logging.logWriter writes "
            f"none; a job that never started has its reason in `gcloud ai custom-jobs describe {job}`."
        )
    spool.seek(0)
    return spool
