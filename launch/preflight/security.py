"""Security: VPC Service Controls. Is the project inside a perimeter, did it change lately, is all on one side?

A change of a perimeter takes up to 15 minutes to be in force everywhere, so a job started in between fails
for a reason that is gone when somebody looks. Perimeters: the Access Context Manager API, version 1. When one
changed: its `updateTime` where the answer has one, else the organization's Admin Activity log.
"""

import dataclasses
import datetime
import re
from collections.abc import Iterator

from launch.checks import Check
from launch.preflight import packages
from launch.preflight.cloud import Cloud, Trouble
from launch.preflight.job import Job, flags
from launch.preflight.permissions import number
from launch.preflight.probe import Probe
from launch.preflight.registry import parsed
from launch.spec import dig

SETTLES_S = 15 * 60
READ_ROLE = "roles/accesscontextmanager.policyReader"


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


def look(job: Job, cloud: Cloud) -> Iterator[Check]:
    """The perimeter, its last change, both sides of it and what the job needs from outside."""
    try:
        organization, found = perimeters(job.project, cloud)
    except Trouble as trouble:
        if trouble.kind not in ("denied", "missing", "disabled"):
            raise
        said = f"whether a VPC Service Controls perimeter is around {job.project} can't be seen: {trouble.detail}"
        command = f"gcloud organizations add-iam-policy-binding ORGANIZATION --member=user:YOU --role={READ_ROLE}"
        yield Check("perimeter", "unknown", said, f"have {READ_ROLE} on the organization", command)
        return
    if not organization:
        yield Check("perimeter", "ok", f"{job.project} is in no organization, so in no perimeter")
        return
    own = number(job.project, cloud)
    mine = [one for one in found if own in one.projects]
    inside = next((one for one in mine if not one.bridge), None)
    if inside:
        yield Check("perimeter", "ok", f"{job.project} is inside {inside.title}")
    else:
        yield Check("perimeter", "ok", f"{job.project} is in no perimeter")
    yield from changed(cloud, organization, found, mine)
    yield from sides(job, cloud, found, own, inside)
    if inside:
        yield from egress(job, inside)


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


def sides(job: Job, cloud: Cloud, found: list[Perimeter], own: str, inside: Perimeter | None) -> Iterator[Check]:
    """Every bucket and registry on the job's side of the fence, where the fence restricts that service."""
    across, unseen = [], []
    for what, service, owner in _resources(job, cloud, own):
        if not owner:
            unseen.append(what)
            continue
        other = next((one for one in found if owner in one.projects and not one.bridge), None)
        bridged = any(one.bridge and {own, owner} <= one.projects for one in found)
        fenced = {one.title for one in (inside, other) if one and service in one.services}
        if owner != own and other != inside and not bridged and fenced:
            across.append(f"{what} is {f'inside {other.title}' if other else 'outside'}")
    if across:
        said = f"{'; '.join(across)}; the job is {f'inside {inside.title}' if inside else 'outside'}"
        fix = "use resources on the job's side, or have an ingress or egress rule made for them"
        yield Check("perimeter sides", "failure", said, fix)
    elif unseen and found:
        yield Check("perimeter sides", "unknown", f"the projects of {', '.join(unseen)} can't be seen", "")
    elif found:
        yield Check("perimeter sides", "ok", "project, buckets and registry are on the same side")


def _resources(job: Job, cloud: Cloud, own: str) -> Iterator[tuple[str, str, str]]:
    """(what, the service that a perimeter would restrict, its project's number or "") of all that the job reaches."""
    for bucket in job.buckets():
        try:
            owner = str(cloud.get("storage", f"b/{bucket}").get("projectNumber", ""))
        except Trouble:
            owner = ""
        yield f"gs://{bucket}", "storage.googleapis.com", owner
    for image in dict.fromkeys(pool.image for pool in packages.ours(job) if not packages.unbuilt(job, pool.image)):
        where = parsed(image).artifact_registry
        if where is None:
            continue
        owner = own
        if where[0] != job.project:
            try:
                owner = number(where[0], cloud)
            except Trouble:
                owner = ""
        yield f"registry {where[0]}/{where[2]}", "artifactregistry.googleapis.com", owner


def egress(job: Job, inside: Perimeter) -> Iterator[Check]:
    """What the job needs from outside of a perimeter, where there is no way out to the internet."""
    needs = []
    for pool in job.pools:
        where = parsed(pool.image)
        if pool.image and not where.artifact_registry and not packages.unbuilt(job, pool.image):
            needs.append(f"{pool.image} from {where.host}")
        if pool.role == "reducer" and "artifactregistry.googleapis.com" in inside.services:
            needs.append("Google's Reduction Server image, which is in a project outside (an egress rule allows it)")
        if pool.package:
            needs.append("a package index, if the Python package has dependencies that the image lacks")
        for flag, value in flags(pool.args).items():
            if re.match(r"(https?|s3|ftp)://", value):
                needs.append(f"--{flag}={value}")
    if needs:
        fix = "bake it into the image, or copy it to a bucket or registry inside the perimeter"
        listed = "; ".join(dict.fromkeys(needs))
        said = f"inside {inside.title} nothing reaches the internet, and the job needs {listed}"
        yield Check("egress", "warning", said, fix)
    else:
        yield Check("egress", "ok", "the job needs nothing from the internet")


PROBES = (Probe("security", "perimeter", look, online=True),)
