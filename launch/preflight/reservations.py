"""Capacity: do the reservations that a file names exist, match in shape, zone and sharing, and have room?"""

import re
from collections.abc import Iterator

from launch.checks import Check
from launch.preflight.cloud import Cloud
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.preflight.request import Trouble
from launch.spec import Pool, dig

PATH = re.compile(r"projects/([^/]+)/zones/([^/]+)/reservations/([^/]+)")
# What Compute Engine calls the accelerators of n1 machines; the others' are part of the machine type.
COMPUTE_NAMES = {
    "NVIDIA_TESLA_P4": "nvidia-tesla-p4",
    "NVIDIA_TESLA_T4": "nvidia-tesla-t4",
    "NVIDIA_TESLA_V100": "nvidia-tesla-v100",
}


def look(job: Job, cloud: Cloud) -> Iterator[Check]:
    """A finding for every pool that may take a reservation."""
    for pool in job.pools:
        affinity = dig(pool.machine, "reservationAffinity", kind=dict, default={})
        kind = affinity.get("reservationAffinityType", "")
        if kind == "SPECIFIC_RESERVATION":
            for path in affinity.get("values") or [""]:
                yield _named(job, cloud, pool, str(path))
        elif kind == "ANY_RESERVATION":
            yield _any(job, cloud, pool)


def _named(job: Job, cloud: Cloud, pool: Pool, path: str) -> Check:
    match = PATH.fullmatch(path)
    if not match:
        fix = "name it in full: projects/OWNER/zones/ZONE/reservations/NAME (RESERVATION in project.env)"
        return Check("reservation", "failure", f"{path or 'no name'} is no reservation's path", fix)
    owner, zone, name = match.groups()
    command = f"gcloud compute reservations describe {name} --project={owner} --zone={zone}"
    try:
        found = cloud.get("compute", f"projects/{owner}/zones/{zone}/reservations/{name}")
    except Trouble as trouble:
        if trouble.kind != "missing":
            raise
        return Check("reservation", "failure", f"{path} does not exist", "correct its name, zone or project", command)
    troubles = mismatches(found, job, pool, owner, zone)
    if troubles:
        said = f"{name}: " + "; ".join(troubles)
        return Check("reservation", "failure", said, "have it changed, or use another", command)
    said = f"{name} in {zone}: {_free(found)} of {_count(found)} free, {_needed(job, pool)} needed"
    return Check("reservation", "ok", said)


def mismatches(found: dict, job: Job, pool: Pool, owner: str, zone: str) -> list[str]:
    """Everything that keeps a reservation (Compute Engine's JSON) from holding a pool."""
    troubles = []
    if found.get("status", "READY") != "READY":
        troubles.append(f"its state is {found['status']}, not READY")
    if job.region and zone.rpartition("-")[0] != job.region:
        troubles.append(f"it is in {zone}, the job runs in {job.region}")
    properties = dig(found, "specificReservation", "instanceProperties", kind=dict, default={})
    if properties.get("machineType") != pool.machine_type:
        troubles.append(f"it holds {properties.get('machineType')}, the pool asks for {pool.machine_type}")
    troubles += _accelerators(properties.get("guestAccelerators", []), pool)
    if properties.get("localSsds") and pool.machine_type.startswith("n1-"):
        troubles.append("it has Local SSDs attached by hand, which Vertex AI's machines don't")
    if dig(found, "reservationSharingPolicy", "serviceShareType", kind=str, default="DISALLOW_ALL") != "ALLOW_ALL":
        troubles.append("it is not shared with Vertex AI (made without --reservation-sharing-policy=ALLOW_ALL)")
    if job.project and owner != job.project and not _shared(found, job.project):
        troubles.append(f"{owner} doesn't share it with {job.project}")
    if _free(found) < _needed(job, pool):
        troubles.append(f"{_free(found)} of {_count(found)} are free, {_needed(job, pool)} needed")
    return troubles


def _accelerators(held: list[dict], pool: Pool) -> Iterator[str]:
    wanted = COMPUTE_NAMES.get(pool.accelerator)
    if not wanted:
        return
    for one in held or [{}]:
        kind, count = str(one.get("acceleratorType", "none")).rpartition("/")[2], int(one.get("acceleratorCount", 0))
        if (kind, count) != (wanted, pool.devices):
            yield f"it holds {count} {kind}, the pool asks for {pool.devices} {wanted}"


def _shared(found: dict, project: str) -> bool:
    settings = dig(found, "shareSettings", kind=dict, default={})
    if settings.get("shareType") == "ORGANIZATION":
        return True
    names = {value.get("projectId") or key for key, value in settings.get("projectMap", {}).items()}
    return project in names or project in settings.get("projectMap", {})


def _count(found: dict) -> int:
    return int(dig(found, "specificReservation", "count", kind=int | str, default=0))


def _free(found: dict) -> int:
    return _count(found) - int(dig(found, "specificReservation", "inUseCount", kind=int | str, default=0))


def _needed(job: Job, pool: Pool) -> int:
    return pool.replicas * job.trials_at_a_time


def _any(job: Job, cloud: Cloud, pool: Pool) -> Check:
    """ANY_RESERVATION falls back to on demand, so nothing here is a failure."""
    command = f"gcloud compute reservations list --project={job.project}"
    reasons = []
    answer = cloud.get("compute", f"projects/{job.project}/aggregated/reservations")
    for zone, scoped in answer.get("items", {}).items():
        for found in scoped.get("reservations", []):
            where = str(found.get("zone", zone)).rpartition("/")[2]
            troubles = mismatches(found, job, pool, job.project, where)
            if found.get("specificReservationRequired"):
                troubles.append("only jobs that name it may use it")
            if not troubles:
                return Check("reservation", "ok", f"{found.get('name')} in {where} fits")
            reasons.append(f"{found.get('name')}: {troubles[0]}")
    said = f"no reservation of {job.project} fits; the job will run on demand" + "".join(f"; {r}" for r in reasons[:3])
    return Check("reservation", "warning", said, "name one that fits, or drop reservationAffinity", command)


PROBES = (Probe("capacity", "reservation", look, online=True),)
