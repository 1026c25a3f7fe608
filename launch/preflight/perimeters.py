"""Perimeters of VPC Service Controls, and when they last changed.

A change of a perimeter takes up to 15 minutes to be in force everywhere, so a job started in between fails
for a reason that is gone when somebody looks. Perimeters: the Access Context Manager API, version 1. When one
changed: its `updateTime` where the answer has one, else the organization's Admin Activity log.
"""

import dataclasses
import datetime
import re
from collections.abc import Iterator

from launch.checks import Check
from launch.preflight.cloud import Cloud
from launch.preflight.iam import number
from launch.preflight.request import Trouble
from launch.spec import dig

SETTLES_S = 15 * 60


@dataclasses.dataclass(frozen=True)
class Perimeter:
    """An enforced perimeter of the organization; a dry run's is none."""

    name: str
    title: str
    bridge: bool
    projects: frozenset[str]  # numbers
    services: frozenset[str]
    updated: str

    @classmethod
    def of(cls, found: dict) -> "Perimeter":
        """From the API's JSON."""
        status = found.get("status", {})
        return cls(
            found["name"],
            found.get("title") or found["name"].rpartition("/")[2],
            found.get("perimeterType") == "PERIMETER_TYPE_BRIDGE",
            frozenset(r.removeprefix("projects/") for r in status.get("resources", []) if r.startswith("projects/")),
            frozenset(status.get("restrictedServices", [])),
            found.get("updateTime", ""),
        )


def perimeters(project: str, cloud: Cloud) -> tuple[str, list[Perimeter]]:
    """(organization's number or "", its perimeters). Raises Trouble."""
    answer = cloud.post("cloudresourcemanager", f"v1/projects/{project}:getAncestry", {})
    ids = [one["resourceId"] for one in answer.get("ancestor", [])]
    organization = next((one["id"] for one in ids if one["type"] == "organization"), "")
    if not organization:
        return "", []
    found = []
    parent = f"organizations/{organization}"
    for policy in cloud.get("accesscontextmanager", "v1/accessPolicies", parent=parent).get("accessPolicies", []):
        listed = cloud.get("accesscontextmanager", f"v1/{policy['name']}/servicePerimeters")
        found += [Perimeter.of(one) for one in listed.get("servicePerimeters", [])]
    return organization, found


def last_change(project: str, cloud: Cloud) -> Check | None:
    """What is known of the last change of a perimeter around a project; None where there is no perimeter at all.

    Raises Trouble where perimeters can't be seen.
    """
    organization, found = perimeters(project, cloud)
    mine = [one for one in found if number(project, cloud) in one.projects]
    return next(changed(cloud, organization, found, mine), None) if organization else None


def changed(cloud: Cloud, organization: str, found: list[Perimeter], mine: list[Perimeter]) -> Iterator[Check]:
    """The last change to a perimeter that matters here, and the time until it is in force everywhere.

    A project that was just taken out of a perimeter is in none: the log is asked about all of them.
    """
    now = datetime.datetime.now(datetime.UTC)
    dated = [(when, one.title) for one in mine if (when := moment(one.updated))]
    if not dated and found:
        try:
            dated = list(_logged(cloud, organization, now))
        except Trouble as trouble:
            said = f"when a perimeter last changed can't be seen: {trouble.detail}"
            fix = "have roles/logging.viewer on the organization; after a change, wait 15 minutes"
            yield Check("perimeter change", "unknown", said, fix)
            return
    recent = max(dated, default=None)
    left = SETTLES_S - (now - recent[0]).total_seconds() if recent else 0
    if recent and left > 0:
        said = f"{recent[1]} changed {minutes(SETTLES_S - left)} ago; that takes 15 minutes to be in force everywhere"
        yield Check("perimeter change", "failure", said, f"wait {minutes(left)}", f"sleep {left:.0f}")
    elif found:
        yield Check("perimeter change", "ok", "none in the last 15 minutes")


def _logged(cloud: Cloud, organization: str, now: datetime.datetime) -> Iterator[tuple[datetime.datetime, str]]:
    since = (now - datetime.timedelta(seconds=SETTLES_S)).replace(microsecond=0).isoformat().replace("+00:00", "Z")
    body = {
        "resourceNames": [f"organizations/{organization}"],
        "filter": f'logName="organizations/{organization}/logs/cloudaudit.googleapis.com%2Factivity" AND '
        'protoPayload.serviceName="accesscontextmanager.googleapis.com" AND '
        f'protoPayload.methodName:"ServicePerimeter" AND timestamp>="{since}"',
        "orderBy": "timestamp desc",
        "pageSize": 20,
    }
    for entry in cloud.post("logging", "v2/entries:list", body).get("entries", []):
        when = moment(entry.get("timestamp", ""))
        name = dig(entry, "protoPayload", "resourceName", kind=str, default="a perimeter")
        if when:
            yield when, name.rpartition("/")[2]


def moment(text: str) -> datetime.datetime | None:
    """A time of Google's JSON (RFC 3339, up to nine digits of a second), or None."""
    match = re.match(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", text)
    return datetime.datetime.fromisoformat(match[1]).replace(tzinfo=datetime.UTC) if match else None


def minutes(seconds: float) -> str:
    """`6 min 20 s`."""
    whole = max(0, round(seconds))
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"
