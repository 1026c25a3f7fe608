"""The log of a job on Vertex AI, with the error that the job itself carries, through gcloud."""

import json
import re
import subprocess
import tempfile
from typing import BinaryIO

from launch import vertex
from launch.errors import LaunchError
from launch.vertex import logs

ENTRIES = 20_000
NAME = re.compile(r"projects/[^/]+/locations/[^/]+/\w+/\d+|[a-z0-9][a-z0-9-]*")


def is_job(text: str) -> bool:
    """Whether the text can name a job: an id, a full name, or the name that submit gave it."""
    return bool(NAME.fullmatch(text))


def log_filter(job: str) -> str:
    """Cloud Logging's filter for all replicas of a job, as `gcloud ai custom-jobs stream-logs` has it."""
    return f'resource.type="ml_job" AND resource.labels.job_id="{job}"'


def fetch(text: str) -> BinaryIO:
    """The newest ENTRIES log entries of a job, and its own error, as a temporary file. Raises LaunchError."""
    job = vertex.find(text)
    described = vertex.describe(job)
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    command = ["gcloud", "logging", "read", log_filter(job.id), f"--project={logs.owner(job)}", f"--limit={ENTRIES}"]
    command += ["--order=desc", "--freshness=30d", "--format=json", "--quiet"]
    done = subprocess.run(command, stdout=spool, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    said = done.stderr.decode("utf-8", "replace")
    error = (described.get("error") or {}).get("message", "")
    if error:
        entry = {"severity": "ERROR", "timestamp": described.get("endTime", ""), "message": error}
        spool.write(b"\n" + json.dumps(entry).encode() + b"\n")
    elif done.returncode:
        spool.close()
        raise vertex.GcloudError(said, "gcloud logging read")
    elif spool.tell() < len("[{}]"):
        spool.close()
        raise LaunchError(
            f"job {job.id} is {vertex.state(described)} and has no log of the last 30 days. A job whose account lacks "
            "roles/logging.logWriter writes none.",
            exit_code=1,
        )
    spool.seek(0)
    return spool
