"""What is sent for a job file: the request's body, exactly, and the gcloud command that sends it."""

import contextlib
import dataclasses
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from launch import gcloud, project, spec, vertex
from launch.errors import LaunchError
from launch.spec import api


@dataclasses.dataclass(frozen=True)
class Request:
    """One submission. `body` is what the API gets, as JSON."""

    kind: str
    project: str
    region: str
    body: dict

    @property
    def address(self) -> str:
        """The method and path of the request."""
        collection = vertex.COLLECTION[self.kind]
        host = f"https://{self.region}-aiplatform.googleapis.com"
        return f"POST {host}/v1/projects/{self.project}/locations/{self.region}/{collection}"

    @property
    def name(self) -> str:
        """The job's display name."""
        return self.body["displayName"]

    @contextlib.contextmanager
    def command(self) -> Iterator[tuple[list[str], str | None]]:
        """(gcloud's arguments, its stdin). custom-jobs reads the file from stdin, hp-tuning-jobs only from a path."""
        where = [f"--project={self.project}", f"--region={self.region}", f"--display-name={self.name}"]
        base = ["ai", vertex.COMMAND[self.kind], "create", *where]
        if self.kind == "custom":
            labels = ",".join(f"{key}={value}" for key, value in self.body.get("labels", {}).items())
            yield [*base, "--config=-", *([f"--labels={labels}"] if labels else [])], json.dumps(self.body["jobSpec"])
            return
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump(self.body, file)
            file.flush()
            yield [*base, f"--config={file.name}"], None


def make(
    job: spec.JobFile,
    variables: Mapping[str, str],
    *,
    labels: Mapping[str, str] | None = None,
    web_access: bool = False,
) -> Request:
    """The request for a job file that validate found fine. `labels` come on top of the file's and our own."""
    custom, tuning = api.types()
    message = tuning if job.kind == "tuning" else custom
    body = _plain(job.data, message.DESCRIPTOR)
    inner = body["trialJobSpec"] if job.kind == "tuning" else body
    if web_access:
        inner["enableWebAccess"] = True
    ours = {**our_labels(job, variables), **(labels or {})}
    if job.kind == "tuning":
        body = {"displayName": variables["JOB"], **body, "labels": {**ours, **body.get("labels", {})}}
    else:
        body = {"displayName": variables["JOB"], "jobSpec": body, "labels": ours}
    return Request(job.kind, variables["PROJECT"], variables["REGION"], body)


def _plain(data: Any, kind: Any) -> Any:
    """The data as gcloud's own client would send it: empty texts left out, int64 as text, numbers as numbers."""
    result = {}
    fields = {field.json_name: field for field in kind.fields}
    for key, value in data.items():
        field = fields[key]
        if value == "" and not field.is_repeated and field.name != "value":
            continue  # an optional variable without a value; to the API the same as leaving it out
        entries = value if isinstance(value, list) else [value]
        done = [_value(entry, field) for entry in entries]
        result[key] = done if isinstance(value, list) else done[0]
    return result


def _value(value: Any, field: Any) -> Any:
    kind = field.message_type
    if kind is not None and isinstance(value, dict) and not kind.full_name.startswith("google.protobuf."):
        return dict(value) if kind.GetOptions().map_entry else _plain(value, kind)
    if field.cpp_type == field.CPPTYPE_INT64:
        return str(int(value))
    if field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
        return float(value)
    return int(value) if field.cpp_type == field.CPPTYPE_INT32 and isinstance(value, float) else value


def our_labels(job: spec.JobFile, variables: Mapping[str, str]) -> dict[str, str]:
    """What the bill and the job list are sorted by: name, config and commit, in a label's alphabet."""
    stem = job.file.rsplit("/", 1)[-1].removesuffix(".yaml")
    wanted = {"name": variables.get("NAME", ""), "config": stem, "commit": commit()}
    clean = {key: re.sub(r"[^a-z0-9_-]", "-", value.lower())[:63] for key, value in wanted.items()}
    return {key: value for key, value in clean.items() if value}


def commit() -> str:
    """The short commit of the project, `-dirty` where files differ from it; empty outside a repository."""
    command = ["git", "-C", str(project.ROOT), "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def submit_once(request: Request) -> vertex.Job:
    """Send the request through gcloud, once. Raises GcloudError with what gcloud said."""
    with request.command() as (arguments, text):
        answer = gcloud.run(*arguments, text=text)
    job = vertex.Job.parse((answer or {}).get("name", ""))
    if job is None:
        raise LaunchError(f"gcloud sent the job and answered without its name: {answer!r:.200}", exit_code=1)
    return job
