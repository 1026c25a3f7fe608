"""Permissions of the one who submits: account, project, its APIs, and the right to start a job and act as its account.

Roles and who needs them: Vertex AI's "Access control with IAM" and "Use a custom service account".
"""

from collections.abc import Iterator

from launch import project as settings
from launch.checks import Check
from launch.preflight.cloud import Cloud
from launch.preflight.iam import bind, member, number
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.preflight.request import Trouble

APIS = ("aiplatform", "artifactregistry", "logging", "storage")


def filled_in(job: Job) -> Iterator[Check]:
    """Offline: every variable of the file has a value."""
    lacking = [name for name in job.file.missing if name != "IMAGE"]  # the image has a check of its own
    if lacking:
        said = settings.missing(lacking).rstrip(".")
        yield Check("settings", "failure", said, "fill them in", "$EDITOR project.env")
    else:
        yield Check("settings", "ok", f"project {job.project or 'of gcloud'}, region {job.region or 'of gcloud'}")


def account(job: Job, cloud: Cloud) -> Iterator[Check]:
    """gcloud's account, and that the project is there and active."""
    who = cloud.account.impersonated or cloud.account.account or "an access token"
    yield Check("account", "ok", f"gcloud acts as {who}")
    if not job.project:
        yield Check("project", "failure", "no project is set", "set PROJECT", "gcloud config set project ID")
        return
    try:
        found = cloud.get("cloudresourcemanager", f"v3/projects/{job.project}")
    except Trouble as trouble:
        if trouble.kind not in ("missing", "denied"):
            raise
        # Google answers 403 for a project that does not exist, too: who may not see it shall not learn of it
        said = f"{job.project} does not exist, or {who} may not see it ({trouble.detail})"
        fix = "correct PROJECT in project.env, or have roles/browser on it"
        yield Check("project", "failure", said, fix, "gcloud projects list")
        return
    state = found.get("state", "ACTIVE")
    if state != "ACTIVE":
        command = f"gcloud projects undelete {job.project}"
        yield Check("project", "failure", f"{job.project} is {state}", "bring it back or use another", command)
    else:
        yield Check("project", "ok", f"{job.project} ({found.get('name', '')})")


def apis(job: Job, cloud: Cloud) -> Iterator[Check]:
    """The APIs that a job needs are on."""
    needed = [*APIS, *(["compute"] if any("reservationAffinity" in pool.machine for pool in job.pools) else [])]
    names = [f"projects/{job.project}/services/{api}.googleapis.com" for api in needed]
    answer = cloud.get("serviceusage", f"v1/projects/{job.project}/services:batchGet", names=names)
    on = {one["name"].rpartition("/")[2] for one in answer.get("services", []) if one.get("state") == "ENABLED"}
    off = [f"{api}.googleapis.com" for api in needed if f"{api}.googleapis.com" not in on]
    if off:
        command = f"gcloud services enable {' '.join(off)} --project={job.project}"
        yield Check("APIs", "failure", f"off in {job.project}: {', '.join(off)}", "turn them on", command)
    else:
        yield Check("APIs", "ok", ", ".join(needed))


def submit(job: Job, cloud: Cloud) -> Iterator[Check]:
    """gcloud's account may start this kind of job."""
    kind = "hyperparameterTuningJobs" if job.file.kind == "tuning" else "customJobs"
    wanted = [f"aiplatform.{kind}.create", f"aiplatform.{kind}.get"]
    answer = cloud.post(
        "cloudresourcemanager", f"v3/projects/{job.project}:testIamPermissions", {"permissions": wanted}
    )
    lacking = sorted(set(wanted) - set(answer.get("permissions", [])))
    if lacking:
        said = f"{member(cloud)} lacks {', '.join(lacking)} on {job.project}"
        command = bind(job.project, member(cloud), "roles/aiplatform.user")
        yield Check("submit", "failure", said, "have roles/aiplatform.user", command)
    else:
        yield Check("submit", "ok", f"may create {kind} in {job.project}")


def act_as(job: Job, cloud: Cloud) -> Iterator[Check]:
    """gcloud's account may hand the job to the service account that the file names."""
    if not job.runs_as:
        said = "the job runs as Vertex AI's own Custom Code Service Agent, which needs no `act as`"
        yield Check("act as", "ok", said)
        return
    path = f"v1/projects/-/serviceAccounts/{job.runs_as}:testIamPermissions"
    command = (
        f"gcloud iam service-accounts add-iam-policy-binding {job.runs_as} "
        f"--member={member(cloud)} --role=roles/iam.serviceAccountUser"
    )
    try:
        answer = cloud.post("iam", path, {"permissions": ["iam.serviceAccounts.actAs"]})
    except Trouble as trouble:
        if trouble.kind not in ("missing", "denied"):
            raise
        said = f"{job.runs_as} does not exist, or may not be seen ({trouble.detail})"
        yield Check("act as", "failure", said, "correct SERVICE_ACCOUNT, or make it", "make bootstrap")
        return
    if "iam.serviceAccounts.actAs" in answer.get("permissions", []):
        yield Check("act as", "ok", f"may act as {job.runs_as}")
    else:
        said = f"{member(cloud)} may not act as {job.runs_as}"
        yield Check("act as", "failure", said, "have roles/iam.serviceAccountUser on it", command)
    yield from _of_another_project(job, cloud)


def _of_another_project(job: Job, cloud: Cloud) -> Iterator[Check]:
    """A service account of another project takes two things more, which can't be seen from here."""
    owner = job.runs_as.partition("@")[2].removesuffix(".iam.gserviceaccount.com")
    if "." in owner or owner == job.project:  # a default account (...-compute@developer...) doesn't tell
        return
    agent = f"service-{number(job.project, cloud)}@gcp-sa-aiplatform.iam.gserviceaccount.com"
    said = f"{job.runs_as} is of the project {owner}, the job of {job.project}"
    fix = (
        "give Vertex AI's service agent roles/iam.serviceAccountTokenCreator on it, and see that the organization's "
        "policy iam.disableCrossProjectServiceAccountUsage is off in its project"
    )
    command = (
        f"gcloud iam service-accounts add-iam-policy-binding {job.runs_as} --project={owner} "
        f"--member=serviceAccount:{agent} --role=roles/iam.serviceAccountTokenCreator"
    )
    yield Check("service account's project", "warning", said, fix, command)


PROBES = (
    Probe("permissions", "settings", filled_in),
    Probe("permissions", "account", account, online=True),
    Probe("permissions", "APIs", apis, online=True),
    Probe("permissions", "submit", submit, online=True),
    Probe("permissions", "act as", act_as, online=True),
)
