"""Questions about accounts and roles that several subjects ask."""

from launch.preflight.cloud import Cloud

# Basic roles hold all that a job asks for, but for actAs.
BASIC = {"roles/owner", "roles/editor"}


def number(project: str, cloud: Cloud) -> str:
    """The project's number. Raises Trouble."""
    return cloud.get("cloudresourcemanager", f"v3/projects/{project}")["name"].rpartition("/")[2]


def impersonate(cloud: Cloud, email: str) -> str:
    """A token of the service account, good for five minutes. Raises Trouble("denied") where that isn't allowed."""
    body = {"scope": ["https://www.googleapis.com/auth/cloud-platform"], "lifetime": "300s"}
    path = f"v1/projects/-/serviceAccounts/{email}:generateAccessToken"
    return cloud.post("iamcredentials", path, body)["accessToken"]


def policy(project: str, cloud: Cloud) -> dict:
    """A project's IAM policy. Raises Trouble."""
    body = {"options": {"requestedPolicyVersion": 3}}
    return cloud.post("cloudresourcemanager", f"v3/projects/{project}:getIamPolicy", body)


def roles_of(policy: dict, *members: str) -> set[str]:
    """The roles that a policy gives to any of the members, without conditions; groups can't be seen into."""
    return {
        binding["role"]
        for binding in policy.get("bindings", [])
        if not binding.get("condition") and set(members) & set(binding.get("members", []))
    }


def member(cloud: Cloud) -> str:
    """gcloud's account as IAM writes it."""
    who = cloud.account.impersonated or cloud.account.account
    kind = "serviceAccount" if who.endswith("gserviceaccount.com") else "user"
    return f"{kind}:{who}" if who else "user:YOU"


def bind(project: str, who: str, role: str) -> str:
    """The command that gives a role on a project."""
    return f"gcloud projects add-iam-policy-binding {project} --member={who} --role={role}"
