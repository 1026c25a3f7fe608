"""The log lines of a job's replicas, each told once, in order, whatever arrives late or comes twice."""

import dataclasses
import datetime
import re

from launch import gcloud
from launch.vertex import Job, place

WINDOW = datetime.timedelta(seconds=60)  # entries of several replicas arrive out of order by some seconds
PAGE = 1000
SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_ROLES = {"workerpool0": "chief", "workerpool1": "worker", "workerpool2": "ps", "workerpool3": "evaluator"}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclasses.dataclass(frozen=True)
class Line:
    """One entry: when (UTC), which replica, how serious, what."""

    time: datetime.datetime
    replica: str
    severity: str
    message: str
    entry: dict = dataclasses.field(compare=False, repr=False, default_factory=dict)


class Reader:
    """Reads on from where it was; `read()` gives the lines that are new."""

    def __init__(self, job: Job, since: str, severity: str = "DEFAULT"):
        self.job = job
        self.severity = severity
        self.newest = parse_time(since) or _EPOCH
        self.seen: dict[str, datetime.datetime] = {}

    def read(self) -> list[Line]:
        """New lines, oldest first. Raises GcloudError; nothing is lost then, the next call asks again."""
        cursor = self.newest - WINDOW
        found: dict[str, Line] = {}
        while True:
            page = entries(self.job, stamp(cursor), self.severity, PAGE)
            lines = {_key(entry): _line(entry) for entry in page}
            found.update({key: line for key, line in lines.items() if key not in self.seen})
            last = max((line.time for line in lines.values()), default=cursor)
            if len(page) < PAGE:
                break
            # A full page of one instant would come again for ever: step over it.
            cursor = last if last > cursor else cursor + datetime.timedelta(microseconds=1)
        fresh = sorted(found.items(), key=lambda item: item[1].time)
        self.newest = max([self.newest, *(line.time for _, line in fresh)])
        self.seen.update({key: line.time for key, line in fresh})
        self.seen = {key: time for key, time in self.seen.items() if time >= self.newest - 2 * WINDOW}
        return [line for _, line in fresh]


def _key(entry: dict) -> str:
    return f"{entry.get('timestamp')} {entry.get('insertId')} {entry.get('logName')}"


def _line(entry: dict) -> Line:
    labels = (entry.get("resource") or {}).get("labels") or {}
    payload = entry.get("jsonPayload") or {}
    message = payload.get("message") if payload else entry.get("textPayload")
    if message is None:
        message = str(payload or entry.get("protoPayload") or "")
    trial = next((str(v) for k, v in (entry.get("labels") or {}).items() if k.endswith("trial_id")), "")
    replica = role(labels.get("task_name") or "service") + (f" trial {trial}" if trial else "")
    time = parse_time(entry.get("timestamp") or "") or _EPOCH
    return Line(time, replica, str(entry.get("severity") or "DEFAULT"), str(message).rstrip("\n"), entry)


def role(task: str) -> str:
    """`workerpool1-0` -> `worker 0`; the chief has no number, and anything else stays as it is."""
    match = re.fullmatch(r"(workerpool\d)-(\d+)", task)
    if not match or match[1] not in _ROLES:
        return task
    name = _ROLES[match[1]]
    return name if name == "chief" else f"{name} {match[2]}"


def parse_time(text: str) -> datetime.datetime | None:
    """RFC 3339 with up to nine digits of a second, as Google's APIs write it; None for anything else."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    if not match:
        return None
    fraction = (match[2] or "")[:7]
    return datetime.datetime.fromisoformat(match[1] + fraction + match[3].replace("Z", "+00:00"))


def stamp(time: datetime.datetime) -> str:
    """The time as a log filter takes it."""
    return max(time, _EPOCH).astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def entries(job: Job, since: str, severity: str = "DEFAULT", limit: int = 1000) -> list[dict]:
    """Log entries of all replicas from `since` (RFC 3339) on, oldest first.

    The filter is the one that `gcloud ai custom-jobs stream-logs` uses.
    """
    parts = ['resource.type="ml_job"', f'resource.labels.job_id="{job.id}"', f'timestamp>="{since}"']
    if severity != "DEFAULT":
        parts.append(f"severity>={severity}")
    order = ("--order=asc", f"--limit={limit}", f"--project={owner(job)}")
    return gcloud.run("logging", "read", " AND ".join(parts), *order) or []


def owner(job: Job) -> str:
    """The id of the job's project. The API's own names hold its number, which gcloud refuses in --project."""
    return place()["PROJECT"] if job.project.isdigit() else job.project
