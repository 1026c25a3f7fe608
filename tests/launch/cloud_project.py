"""A Google Cloud project that keeps its state, behind the stand-in API: enough of it for bootstrap.

Paths and bodies are those of the discovery documents, as the message classes that come with gcloud
(googlecloudsdk/generated_clients/apis) have them.
"""

import itertools

from tests.standin import StandIn, failure

NUMBER = "123456789012"


class CloudProject:
    """One project; `accounts` are the e-mail addresses that a policy may name."""

    def __init__(self, api: StandIn, project: str = "my-project"):
        self.project = project
        self.services: set[str] = set()
        self.repositories: dict[str, dict] = {}
        self.buckets: dict[str, dict] = {}
        self.accounts: dict[str, dict] = {}
        self.agents: set[str] = set()
        self.triggers: dict[str, dict] = {}
        self.policies: dict[str, dict] = {}
        self.slow_accounts: list[str] = []  # refused once each, as an account made a moment ago may be
        self._operations = itertools.count()
        self._routes(api)

    def _routes(self, api: StandIn) -> None:
        home = f"/v1/projects/{self.project}"
        here = home + "/locations/(?P<location>[^/]+)"
        api.route("GET", home, lambda call: {"projectId": self.project, "projectNumber": NUMBER})
        api.route("GET", home + "/services", self._list_services)
        api.route("POST", home + "/services:batchEnable", self._enable)
        api.route("GET", here + "/repositories", lambda call: {"repositories": list(self.repositories.values())})
        api.route("GET", f"/v1/(?P<name>{here[4:]}/repositories/[^/:]+)", lambda call: self.repositories[call["name"]])
        api.route("POST", here + "/repositories", self._create_repository)
        api.route(
            "GET", "/storage/v1/b", lambda call: {"kind": "storage#buckets", "items": list(self.buckets.values())}
        )
        api.route("POST", "/storage/v1/b", self._create_bucket)
        api.route("GET", home + "/serviceAccounts", lambda call: {"accounts": list(self.accounts.values())})
        api.route("POST", home + "/serviceAccounts", self._create_account)
        api.route("GET", here + "/triggers", lambda call: {"triggers": list(self.triggers.values())})
        api.route("POST", here + "/triggers", self._create_trigger)
        for method in ("GET", "POST"):
            api.route(method, "(?P<of>/v1/.+):getIamPolicy", self._get_policy)
        api.route("POST", "(?P<of>/v1/.+):setIamPolicy", lambda call: self._set_policy(call, call.body["policy"]))
        api.route("GET", "(?P<of>/storage/v1/b/[^/]+)/iam", self._get_policy)
        api.route("PUT", "(?P<of>/storage/v1/b/[^/]+)/iam", lambda call: self._set_policy(call, call.body))

    def _done(self, where: str, response: dict) -> dict:
        return {"name": f"{where}/operations/{next(self._operations)}", "done": True, "response": response}

    def _list_services(self, call):
        return {"services": [{"config": {"name": name}, "state": "ENABLED"} for name in sorted(self.services)]}

    def _enable(self, call):
        self.services |= set(call.body["serviceIds"])
        return {"name": "operations/noop.DONE_OPERATION", "done": True, "response": {}}

    def _create_repository(self, call):
        [name] = call.query["repositoryId"]
        path = f"projects/{self.project}/locations/{call['location']}/repositories/{name}"
        self.repositories[path] = {**call.body, "name": path}
        return self._done(path.rpartition("/repositories")[0], self.repositories[path])

    def _create_bucket(self, call):
        name = call.body["name"]
        if name in self.buckets:
            return failure(409, "ALREADY_EXISTS", "the bucket name is not available")
        self.buckets[name] = {"kind": "storage#bucket", **call.body}
        return self.buckets[name]

    def _create_account(self, call):
        email = f"{call.body['accountId']}@{self.project}.iam.gserviceaccount.com"
        name = f"projects/{self.project}/serviceAccounts/{email}"
        self.accounts[email] = {"name": name, "email": email, **call.body["serviceAccount"]}
        self.slow_accounts.append(email)
        return self.accounts[email]

    def _create_trigger(self, call):
        self.triggers[call.body["name"]] = {"id": f"trigger-{len(self.triggers)}", **call.body}
        return self.triggers[call.body["name"]]

    def _get_policy(self, call):
        return self.policies.get(_last(call["of"]), {"etag": "AAA=", "version": 1})

    def _set_policy(self, call, policy):
        for member in {member for binding in policy["bindings"] for member in binding["members"]}:
            email = member.partition(":")[2]
            slow = email in self.slow_accounts
            if slow:
                self.slow_accounts.remove(email)
            if slow or email not in self.agents | set(self.accounts):
                return failure(400, "INVALID_ARGUMENT", f"Service account {email} does not exist.")
        self.policies[_last(call["of"])] = policy
        return policy

    def grants(self) -> set[tuple[str, str, str]]:
        """(what, role, e-mail address) of everything that a policy gives."""
        return {
            (of, binding["role"], member.partition(":")[2])
            for of, policy in self.policies.items()
            for binding in policy.get("bindings", [])
            for member in binding["members"]
        }


def _last(path: str) -> str:
    """A policy is kept under its thing's last name: an account's path may say `-` for its project."""
    return path.rpartition("/")[2]
