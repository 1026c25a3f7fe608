"""The steps in their order: what each makes, why, the command, and how to see that it is there already."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from launch.bootstrap.roles import APIS, GRANTS, WHO, Grant
from launch.bootstrap.settings import Names
from launch.bootstrap.state import Cloud
from launch.errors import LaunchError


@dataclass(frozen=True)
class Step:
    """One thing that must be there; `later` is what to say where the account it is for isn't made yet."""

    title: str
    reason: str
    command: Callable[[str], list[str]]  # the project's number -> gcloud's arguments
    there: Callable[[Cloud], bool]
    later: str = ""


def steps(names: Names) -> Iterator[Step]:
    """All steps for a project; each relies on those before it."""
    yield _apis()
    yield _repository(names)
    yield _bucket(names)
    yield _account(names.training, f"{names.name}: training jobs run as this account", "what a job may touch")
    yield _account(names.build, f"{names.name}: Cloud Build runs as this account", "what a build may touch")
    for grant in GRANTS:
        if not grant.needs or getattr(names, grant.needs.lower()):
            yield _grant(names, grant)
    if names.github:
        yield _trigger(names)


def _fixed(*arguments: str) -> Callable[[str], list[str]]:
    return lambda number: list(arguments)


def _apis() -> Step:
    def there(cloud: Cloud) -> bool:
        enabled = {api["config"]["name"] for api in cloud.ask("services", "list", "--enabled")}
        return set(APIS) <= enabled

    uses = "; ".join(f"{api.partition('.')[0]}: {use}" for api, use in APIS.items())
    return Step(f"{len(APIS)} APIs", uses, _fixed("services", "enable", *APIS), there)


def _repository(names: Names) -> Step:
    def there(cloud: Cloud) -> bool:
        listed = cloud.ask("artifacts", "repositories", "list", f"--location={names.region}")
        found = [r for r in listed if r["name"].rpartition("/")[2] == names.repository]
        if found and found[0].get("format") != "DOCKER":
            raise LaunchError(
                f"REPOSITORY={names.repository}: it is there and holds {found[0].get('format')}. Expected: DOCKER."
                " Fix: choose another name in project.env",
                exit_code=1,
            )
        return bool(found)

    where = f"--location={names.region}"
    create = ["artifacts", "repositories", "create", names.repository, where, "--repository-format=docker"]
    about = f"--description=Training images of {names.name}"
    return Step(f"repository {names.repository} in {names.region}", "holds the images", _fixed(*create, about), there)


def _bucket(names: Names) -> Step:
    url = f"gs://{names.bucket}"

    def there(cloud: Cloud) -> bool:
        return any(bucket["name"] == names.bucket for bucket in cloud.ask("storage", "buckets", "list"))

    create = ["storage", "buckets", "create", url, f"--location={names.region}"]
    closed = ["--uniform-bucket-level-access", "--public-access-prevention"]
    reason = "what jobs read and write, in the region that they run in; no object can be made public"
    return Step(f"bucket {url} in {names.region}", reason, _fixed(*create, *closed), there)


def _account(email: str, title: str, reason: str) -> Step:
    def there(cloud: Cloud) -> bool:
        return any(account["email"] == email for account in cloud.ask("iam", "service-accounts", "list"))

    short = email.partition("@")[0]
    create = _fixed("iam", "service-accounts", "create", short, f"--display-name={title}")
    return Step(f"service account {email}", reason, create, there)


def member(names: Names, who: str, number: str) -> str:
    """The policy's name for one of roles.WHO."""
    agent = f"service-{number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
    return "serviceAccount:" + {"training": names.training, "build": names.build, "agent": agent}[who]


def resource(names: Names, on: str) -> tuple[list[str], list[str]]:
    """gcloud's group and arguments for one of roles.ON."""
    return {
        "project": (["projects"], [names.project]),
        "repository": (["artifacts", "repositories"], [names.repository, f"--location={names.region}"]),
        "bucket": (["storage", "buckets"], [f"gs://{names.bucket}"]),
        "training_account": (["iam", "service-accounts"], [names.training]),
    }[on]


def _grant(names: Names, grant: Grant) -> Step:
    group, name = resource(names, grant.on)

    def there(cloud: Cloud) -> bool:
        number = cloud.number() if grant.who == "agent" else ""
        return (grant.role, member(names, grant.who, number)) in cloud.policy(group, name)

    def command(number: str) -> list[str]:
        binding = [f"--member={member(names, grant.who, number)}", f"--role={grant.role}"]
        # Where a policy has bindings with conditions gcloud wants to be told that this one has none.
        condition = ["--condition=None"] if grant.on in ("project", "training_account") else []
        return [*group, "add-iam-policy-binding", *name, *binding, *condition]

    later = ""
    if grant.who == "agent":
        later = (
            "Google makes this account with the project's first job, and lets it read the images of its own project;"
            " run bootstrap again after that job to have the role on the repository as well"
        )
    on = name[0] if grant.on != "project" else f"project {names.project}"
    return Step(f"{grant.role} on {on} for the {WHO[grant.who]}", grant.reason, command, there, later)


def _trigger(names: Names) -> Step:
    account = f"projects/{names.project}/serviceAccounts/{names.build}"
    where = f"--region={names.trigger_region}"

    def there(cloud: Cloud) -> bool:
        listed = cloud.ask("builds", "triggers", "list", where)
        found = next((trigger for trigger in listed if trigger.get("name") == names.trigger), None)
        if not found:
            return False
        wanted = {"filename": "cloudbuild.yaml", "serviceAccount": account, "substitutions": names.substitutions}
        if differ := [key for key, value in wanted.items() if found.get(key) != value]:
            raise LaunchError(
                f"trigger {names.trigger}: it is there with another {', '.join(differ)} than project.env asks for."
                f" Fix: `gcloud builds triggers delete {names.trigger} {where}` and run bootstrap again",
                exit_code=1,
            )
        return True

    owner, _, short = names.github.partition("/")
    if names.trigger_region == "global":
        source = [f"--repo-owner={owner}", f"--repo-name={short}"]
    else:
        source = [f"--repository={names.github}"]
    filled = ",".join(f"{key}={value}" for key, value in names.substitutions.items())
    create = ["builds", "triggers", "create", "github", f"--name={names.trigger}", where, *source]
    build = ["--branch-pattern=^main$", "--build-config=cloudbuild.yaml", f"--service-account={account}"]
    reason = "a merge to main builds, tests and pushes the images"
    return Step(f"trigger {names.trigger}", reason, _fixed(*create, *build, f"--substitutions={filled}"), there)
