"""Security: VPC Service Controls. Is the project inside a perimeter, did it change lately, is all on one side?"""

import re
from collections.abc import Iterator

from launch.checks import Check
from launch.preflight import packages
from launch.preflight.cloud import Cloud
from launch.preflight.iam import number
from launch.preflight.job import Job
from launch.preflight.perimeters import Perimeter, changed, perimeters
from launch.preflight.probe import Probe
from launch.preflight.registry import parsed
from launch.preflight.request import Trouble

READ_ROLE = "roles/accesscontextmanager.policyReader"


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
        for flag, value in pool.flags.items():
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
