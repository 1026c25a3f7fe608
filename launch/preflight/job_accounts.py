"""Permissions of the accounts that work for a job: the one it runs as writes its log, a service agent pulls its image.

Roles and who needs them: Vertex AI's "Access control with IAM" and "Use a custom service account".
"""

from collections.abc import Iterator

from launch.checks import Check
from launch.preflight import packages
from launch.preflight.cloud import Cloud
from launch.preflight.iam import BASIC, bind, impersonate, number, policy, roles_of
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.preflight.registry import parsed
from launch.preflight.request import Trouble

PULL_ROLES = {"reader", "writer", "repoAdmin", "admin", "createOnPushWriter", "createOnPushRepoAdmin"}
LOG_ROLES = BASIC | {"roles/logging.logWriter", "roles/logging.admin", "roles/aiplatform.customCodeServiceAgent"}


def logs(job: Job, cloud: Cloud) -> Iterator[Check]:
    """The account that runs the job may write logs: without that every line of it is lost."""
    if not job.runs_as:
        yield Check("log writing", "ok", "the Custom Code Service Agent may write logs")
        return
    command = bind(job.project, f"serviceAccount:{job.runs_as}", "roles/logging.logWriter")
    fix = "give it roles/logging.logWriter, or the job will run without a line of log"
    said = f"{job.runs_as} may not write logs"
    try:
        token = impersonate(cloud, job.runs_as)
        answer = cloud.post(
            "cloudresourcemanager",
            f"v3/projects/{job.project}:testIamPermissions",
            {"permissions": ["logging.logEntries.create"]},
            token,
        )
        allowed, how = "logging.logEntries.create" in answer.get("permissions", []), "tried as that account"
    except Trouble as trouble:
        if trouble.kind == "perimeter":
            raise
        held = roles_of(policy(job.project, cloud), f"serviceAccount:{job.runs_as}")
        allowed, how = bool(held & LOG_ROLES), "read from the project's IAM policy"
    if allowed:
        yield Check("log writing", "ok", f"{job.runs_as} may write logs ({how})")
    else:
        yield Check("log writing", "failure", f"{said} ({how})", fix, command)


def pull(job: Job, cloud: Cloud) -> Iterator[Check]:
    """The service agent may pull the image: it does so itself, whatever account the job runs as."""
    agent = f"service-{number(job.project, cloud)}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
    for image in dict.fromkeys(pool.image for pool in packages.ours(job) if not packages.unbuilt(job, pool.image)):
        where = parsed(image).artifact_registry
        if where is None:
            continue
        owner, location, repository = where
        path = f"v1/projects/{owner}/locations/{location}/repositories/{repository}:getIamPolicy"
        command = (
            f"gcloud artifacts repositories add-iam-policy-binding {repository} --project={owner} "
            f"--location={location} --member=serviceAccount:{agent} --role=roles/artifactregistry.reader"
        )
        if owner == job.project:
            yield Check("image pull", "ok", f"{repository} is in the job's project, whose service agent may read it")
            continue
        held = roles_of(cloud.get("artifactregistry", path), f"serviceAccount:{agent}", "allUsers")
        if not held & {f"roles/artifactregistry.{role}" for role in PULL_ROLES}:
            held |= roles_of(policy(owner, cloud), f"serviceAccount:{agent}")
        if held & ({f"roles/artifactregistry.{role}" for role in PULL_ROLES} | BASIC | {"roles/viewer"}):
            yield Check("image pull", "ok", f"{agent} may read {repository} of {owner}")
        else:
            said = f"{agent} may not read {repository} of {owner}, which the image is in"
            fix = "give the agent roles/artifactregistry.reader there (the job's own service account doesn't pull)"
            yield Check("image pull", "failure", said, fix, command)


PROBES = (
    Probe("permissions", "log writing", logs, online=True),
    Probe("permissions", "image pull", pull, online=True),
)
