"""Permissions: every bucket of the file exists, in the right region, readable and writable by who runs the job."""

from collections.abc import Iterator

from launch.checks import Check
from launch.preflight.cloud import Cloud
from launch.preflight.iam import BASIC, impersonate, number, policy, roles_of
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.preflight.request import Trouble

READ = ("storage.objects.get", "storage.objects.list")
# A checkpoint that replaces another deletes it, so writing takes both.
WRITE = ("storage.objects.create", "storage.objects.delete")
READ_ROLES = {
    "roles/storage.admin",
    "roles/storage.objectAdmin",
    "roles/storage.objectUser",
    "roles/storage.objectViewer",
    "roles/aiplatform.customCodeServiceAgent",
}
WRITE_ROLES = READ_ROLES - {"roles/storage.objectViewer"}
# Dual-regions by their codes: Cloud Storage's "Bucket locations".
DUAL = {
    "NAM4": ("us-central1", "us-east1"),
    "EUR4": ("europe-north1", "europe-west4"),
    "EUR5": ("europe-west1", "europe-west2"),
    "EUR7": ("europe-west2", "europe-west3"),
    "EUR8": ("europe-west3", "europe-west6"),
    "ASIA1": ("asia-northeast1", "asia-northeast2"),
}


def look(job: Job, cloud: Cloud) -> Iterator[Check]:
    """Findings for each bucket, one after the other; their requests are few."""
    for bucket, uses in job.buckets().items():
        try:
            about = cloud.get("storage", f"b/{bucket}")
        except Trouble as trouble:
            if trouble.kind == "missing":
                command = f"gcloud storage buckets create gs://{bucket} --location={job.region}"
                fix = "correct its name, or make it"
                yield Check("bucket", "failure", f"gs://{bucket} does not exist", fix, command)
                continue
            if trouble.kind != "denied":
                raise
            about = {}
        yield _place(job, bucket, about)
        yield from _access(job, cloud, bucket, uses)


def _place(job: Job, bucket: str, about: dict) -> Check:
    if not about:
        found = f"gs://{bucket}: gcloud's account may not see where it is"
        return Check("bucket", "unknown", found, "have storage.buckets.get on it")
    location = about.get("location", "")
    if near(job.region, location, about.get("customPlacementConfig", {}).get("dataLocations", [])):
        return Check("bucket", "ok", f"gs://{bucket} is in {location}, the job in {job.region}")
    found = f"gs://{bucket} is in {location}, the job in {job.region}: slow, and paid for by the gigabyte"
    command = f"gcloud storage buckets create gs://{bucket}-{job.region} --location={job.region}"
    return Check("bucket", "warning", found, f"use a bucket in {job.region}", command)


def near(region: str, location: str, places: list[str]) -> bool:
    """Whether a bucket's location holds the region: itself, a dual-region with it, its continent's multi-region."""
    location, held = location.upper(), [place.lower() for place in places]
    if region in (location.lower(), *held, *DUAL.get(location, ())):
        return True
    return {"US": "us-", "EU": "europe-", "ASIA": "asia-"}.get(location, "?") == region.partition("-")[0] + "-"


def _access(job: Job, cloud: Cloud, bucket: str, uses: set[str]) -> Iterator[Check]:
    wanted = [*(READ if "read" in uses or "write" in uses else ()), *(WRITE if "write" in uses else ())]
    does = "read and write" if "write" in uses else "read"
    who = job.runs_as or f"service-{number(job.project, cloud)}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
    role = "roles/storage.objectUser" if "write" in uses else "roles/storage.objectViewer"
    command = f"gcloud storage buckets add-iam-policy-binding gs://{bucket} --member=serviceAccount:{who} --role={role}"
    allowed, how = _tried(job, cloud, bucket, wanted)
    if allowed is None:
        allowed, how = _read_policy(job, cloud, bucket, who, "write" in uses)
    if allowed is None:
        said = f"whether {who} may {does} gs://{bucket} can't be told: {how}"
        yield Check("bucket access", "unknown", said, f"see that it has {role}", command)
    elif allowed:
        yield Check("bucket access", "ok", f"{who} may {does} gs://{bucket} ({how})")
    else:
        said = f"{who} may not {does} gs://{bucket} ({how})"
        yield Check("bucket access", "failure", said, f"give it {role}", command)


def _tried(job: Job, cloud: Cloud, bucket: str, wanted: list[str]) -> tuple[bool | None, str]:
    """Asked as the account itself, which sees groups, conditions and inherited roles; None where that's not allowed."""
    if not job.runs_as:
        return None, "Google's own agents can't be impersonated"
    try:
        token = impersonate(cloud, job.runs_as)
        answer = cloud.get("storage", f"b/{bucket}/iam/testPermissions", token, permissions=wanted)
    except Trouble as trouble:
        if trouble.kind == "perimeter":
            raise
        return None, f"impersonation is not allowed ({trouble.detail})"
    lacking = sorted(set(wanted) - set(answer.get("permissions", [])))
    return not lacking, "tried as that account" + (f": lacks {', '.join(lacking)}" if lacking else "")


def _read_policy(job: Job, cloud: Cloud, bucket: str, who: str, write: bool) -> tuple[bool | None, str]:
    enough = (WRITE_ROLES if write else READ_ROLES) | BASIC
    member = f"serviceAccount:{who}"
    seen, unseen, custom = [], [], False
    places = ((f"gs://{bucket}", _bucket_policy), (job.project, lambda c, _: policy(job.project, c)))
    for place, ask in places:
        try:
            held = roles_of(ask(cloud, bucket), member, "allUsers", "allAuthenticatedUsers")
        except Trouble as trouble:
            if trouble.kind == "perimeter":
                raise
            unseen.append(f"the IAM policy of {place} can't be read ({trouble.detail})")
            continue
        if held & enough:
            return True, f"read from the IAM policy of {place}"
        seen.append(place)
        custom = custom or any(not role.startswith("roles/") for role in held)
    if unseen or custom:
        return None, "; ".join(unseen) or "it has a custom role, which is not looked into"
    return False, f"read from the IAM policies of {' and '.join(seen)}, which show no groups"


def _bucket_policy(cloud: Cloud, bucket: str) -> dict:
    return cloud.get("storage", f"b/{bucket}/iam", optionsRequestedPolicyVersion=3)


PROBES = (Probe("permissions", "bucket", look, online=True),)
