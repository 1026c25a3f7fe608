"""Permissions: the account, the project, its APIs, who may submit, act as, write logs and pull the image.

Roles and who needs them: Vertex AI's "Access control with IAM" and "Use a custom service account".
"""

from collections.abc import Iterable, Iterator

from launch import project as settings
from launch.checks import Check
from launch.preflight import packages
from launch.preflight.cloud import Cloud, Trouble
from launch.preflight.iam import BASIC, bind, impersonate, member, number, policy, roles_of
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.preflight.registry import parsed

APIS = ("aiplatform", "artifactregistry", "logging", "storage")
PULL_ROLES = {"reader", "writer", "repoAdmin", "admin", "createOnPushWriter", "createOnPushRepoAdmin"}
LOG_ROLES = BASIC | {"roles/logging.logWriter", "roles/logging.admin", "roles/aiplatform.customCodeServiceAgent"}


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


def _probes(*pairs: tuple[str, object]) -> Iterable[Probe]:
    return (Probe("permissions", name, look, online=True) for name, look in pairs)


PROBES = (
    Probe("permissions", "settings", filled_in),
    *_probes(
        ("account", account),
        ("APIs", apis),
        ("submit", submit),
        ("act as", act_as),
        ("log writing", logs),
        ("image pull", pull),
    ),
)
