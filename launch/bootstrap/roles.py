"""Who may do what, and why: the one table that the script, Terraform and docs/bootstrap.md are held against.

The roles are those that Vertex AI's page "Use a custom service account" and Cloud Build's page "Configure
user-specified service accounts" ask for, given on the smallest thing that has a policy of its own.
"""

from dataclasses import dataclass

# What gets switched on, and what for.
APIS = {
    "aiplatform.googleapis.com": "training and tuning jobs",
    "artifactregistry.googleapis.com": "the images",
    "cloudbuild.googleapis.com": "the pipeline that builds them",
    "cloudresourcemanager.googleapis.com": "the project's own policy, which this script reads and adds to",
    "compute.googleapis.com": "the machines that jobs run on, and their quotas",
    "iam.googleapis.com": "the two service accounts",
    "logging.googleapis.com": "what jobs and builds print",
    "serviceusage.googleapis.com": "this list",
    "storage.googleapis.com": "the bucket",
}


@dataclass(frozen=True)
class Grant:
    """One role: `who` and `on` are keys of Plan.members and Plan.resources; `needs` a setting without which it goes."""

    who: str
    role: str
    on: str
    reason: str
    needs: str = ""


GRANTS = (
    Grant(
        "training",
        "roles/logging.logWriter",
        "project",
        "without it everything the trainer prints is lost: a job with an account of its own logs as that account",
    ),
    Grant(
        "training",
        "roles/storage.objectUser",
        "bucket",
        "reads data, writes checkpoints, the model and logs, and removes checkpoints it no longer keeps",
    ),
    Grant(
        "training",
        "roles/aiplatform.user",
        "project",
        "sends curves to the managed TensorBoard; only where TENSORBOARD is set, because it may start jobs too",
        needs="TENSORBOARD",
    ),
    Grant(
        "build",
        "roles/logging.logWriter",
        "project",
        "CLOUD_LOGGING_ONLY: the build's log is written as this account",
    ),
    Grant(
        "build",
        "roles/artifactregistry.writer",
        "repository",
        "pushes the three images and their cache, and pulls the cache",
    ),
    Grant(
        "build",
        "roles/storage.objectViewer",
        "bucket",
        "fetches the source that `gcloud builds submit` puts under gs://BUCKET/source",
    ),
    Grant("build", "roles/aiplatform.user", "project", "submits the smoke job; only with --smoke", needs="SMOKE"),
    Grant(
        "build",
        "roles/iam.serviceAccountUser",
        "training_account",
        "the smoke job runs as the training account; to start a job as an account takes the right to act as it",
        needs="SMOKE",
    ),
    Grant(
        "agent",
        "roles/artifactregistry.reader",
        "repository",
        "Vertex AI pulls the image as its Custom Code Service Agent, whichever account the job runs as",
    ),
)

WHO = {
    "training": "training account",
    "build": "build account",
    "agent": "Vertex AI Custom Code Service Agent",
}
ON = {"project": "project", "repository": "repository", "bucket": "bucket", "training_account": "training account"}


def table() -> str:
    """The grants as the Markdown table of docs/bootstrap.md."""
    rows = [f"| {WHO[g.who]} | `{g.role}` | {ON[g.on]} | {g.reason} |" for g in GRANTS]
    return "\n".join(["| who | role | on the | why |", "|---|---|---|---|", *rows])
