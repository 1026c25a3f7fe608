"""A small Google Cloud in which a job of `configs/` would run: a project, its buckets, images, quotas, perimeters.

Every answer has the shape of Google's own. A test changes what it is about (`google.limits["..."] = ...`) and
leaves the rest as it is. The calls go over loopback to a stand-in, from the real client code.
"""

import datetime

from tests.standin import Call, StandIn, failure

PROJECT, NUMBER, REGION, BUCKET = "yard", "415104041262", "us-central1", "yard-bucket"
RUNS_AS = "train@yard.iam.gserviceaccount.com"
AGENT = f"service-{NUMBER}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
DIGEST = "sha256:" + "1" * 64
IMAGE = f"us-central1-docker.pkg.dev/{PROJECT}/trainyard/digits@{DIGEST}"
RESERVATION = f"projects/{PROJECT}/zones/us-central1-a/reservations/two"
VARIABLES = {
    "PROJECT": PROJECT,
    "REGION": REGION,
    "REPOSITORY": "trainyard",
    "BUCKET": BUCKET,
    "NAME": "digits",
    "SERVICE_ACCOUNT": RUNS_AS,
    "IMAGE": IMAGE,
    "PACKAGE": f"gs://{BUCKET}/packages/trainyard.tar.gz",
    "RESERVATION": RESERVATION,
}
# The body of a denial by VPC Service Controls, as in public reports of it; only the names are ours.
PERIMETER_DENIAL = (
    403,
    {
        "error": {
            "code": 403,
            "message": "Request is prohibited by organization's policy. "
            "vpcServiceControlsUniqueIdentifier: eYhDkfYCu-dOCjuj8X4Am9-spkxs0-kX5YnhAJmc3PZ7pmNNfSsqtQ",
            "status": "PERMISSION_DENIED",
            "details": [
                {
                    "@type": "type.googleapis.com/google.rpc.PreconditionFailure",
                    "violations": [{"type": "VPC_SERVICE_CONTROLS", "description": "eYhDkfYCu-dOCjuj8X4Am9"}],
                },
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "SECURITY_POLICY_VIOLATED",
                    "domain": "googleapis.com",
                    "metadata": {"service": "storage.googleapis.com", "consumer": f"projects/{NUMBER}"},
                },
            ],
        }
    },
)
RATE_LIMIT = failure(
    429, "RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Read requests' and limit 'per minute'"
)
DENIED = failure(403, "PERMISSION_DENIED", "The caller does not have permission")


class Google:
    """The routes of that cloud on a stand-in; its attributes are what the routes answer from."""

    def __init__(self, api: StandIn):
        self.api = api
        self.permissions = {"aiplatform.customJobs.create", "aiplatform.customJobs.get", "logging.logEntries.create"}
        self.permissions |= {f"aiplatform.hyperparameterTuningJobs.{verb}" for verb in ("create", "get")}
        self.act_as = ["iam.serviceAccounts.actAs"]
        self.may_impersonate = True
        self.enabled = {"aiplatform", "artifactregistry", "logging", "storage", "compute"}
        self.buckets = {BUCKET: {"location": "US-CENTRAL1", "locationType": "region", "projectNumber": NUMBER}}
        self.bucket_permissions = {f"storage.objects.{verb}" for verb in ("get", "list", "create", "delete")}
        self.bucket_policy: dict = {"bindings": []}
        self.policies: dict[str, dict] = {PROJECT: {"bindings": []}}
        self.repository_policy: dict = {"etag": "ACAB"}
        self.labels = {"org.trainyard.accelerator": "gpu", "org.trainyard.tensorflow": "2.21.0"}
        self.platforms = ["amd64"]
        self.limits = {"custom_model_training_nvidia_l4_gpus": {"us-central1": 8}}
        self.used: dict[str, int] = {}
        self.jobs: list[dict] = []
        self.reservations: dict[str, dict] = {"two": reservation()}
        self.organization = "987654321"
        self.perimeters: list[dict] = []
        self.changes: list[dict] = []
        self._routes()

    def _routes(self) -> None:
        get, post = (lambda *given: self.api.route("GET", *given)), (lambda *given: self.api.route("POST", *given))
        get(r"/v3/projects/(?P<id>[^/:]+)", self._project)
        post(r"/v1/projects/[^/:]+:getAncestry", self._ancestry)
        post(r"/v3/projects/[^/:]+:testIamPermissions", lambda call: self._allowed(call, self.permissions))
        post(r"/v3/projects/(?P<id>[^/:]+):getIamPolicy", lambda call: self.policies[call["id"]])
        get(r"/v1/projects/[^/]+/services:batchGet", self._services)
        post(r"/v1/projects/-/serviceAccounts/.+:testIamPermissions", lambda call: {"permissions": self.act_as})
        post(r"/v1/projects/-/serviceAccounts/.+:generateAccessToken", self._token)
        get(r"/storage/v1/b/(?P<bucket>[^/]+)", self._bucket)
        get(r"/storage/v1/b/[^/]+/iam", lambda call: self.bucket_policy)
        get(r"/storage/v1/b/[^/]+/iam/testPermissions", self._bucket_allowed)
        get(r"/v1/projects/[^/]+/locations/[^/]+/repositories/[^/]+:getIamPolicy", lambda call: self.repository_policy)
        get(r"/v2/.+/manifests/(?P<wanted>.+)", self._manifest)
        get(r"/v2/.+/blobs/.+", self._config)
        get(r"/v1beta1/.+/consumerQuotaMetrics/aiplatform.googleapis.com/(?P<metric>.+)", self._quota)
        get(r"/v3/projects/[^/]+/timeSeries", self._usage)
        get(r"/v1/projects/[^/]+/locations/(?P<region>[^/]+)/customJobs", lambda call: {"customJobs": self.jobs})
        get(r"/compute/v1/projects/[^/]+/zones/[^/]+/reservations/(?P<name>.+)", self._reservation)
        get(r"/compute/v1/projects/[^/]+/aggregated/reservations", self._reservations)
        get(r"/v1/accessPolicies", lambda call: {"accessPolicies": [{"name": "accessPolicies/1"}]})
        get(r"/v1/accessPolicies/1/servicePerimeters", lambda call: {"servicePerimeters": self.perimeters})
        post(r"/v2/entries:list", lambda call: {"entries": self.changes} if self.changes else {})

    def _project(self, call: Call) -> object:
        if call["id"] not in self.policies:
            message = f"Permission 'resourcemanager.projects.get' denied on resource '//.../projects/{call['id']}'"
            return failure(403, "PERMISSION_DENIED", message)
        number = NUMBER if call["id"] == PROJECT else "777000777"
        return {"name": f"projects/{number}", "projectId": call["id"], "state": "ACTIVE"}

    def _ancestry(self, call: Call) -> dict:
        ids = [{"type": "project", "id": PROJECT}]
        ids += [{"type": "organization", "id": self.organization}] if self.organization else []
        return {"ancestor": [{"resourceId": one} for one in ids]}

    def _allowed(self, call: Call, held: set[str]) -> dict:
        granted = [one for one in call.body["permissions"] if one in held]
        return {"permissions": granted} if granted else {}

    def _services(self, call: Call) -> dict:
        states = {True: "ENABLED", False: "DISABLED"}
        names = call.query["names"]
        return {
            "services": [{"name": n, "state": states[n.rsplit("/")[-1].split(".")[0] in self.enabled]} for n in names]
        }

    def _token(self, call: Call) -> object:
        if self.may_impersonate:
            return {"accessToken": "as-the-job", "expireTime": "2026-11-21T02:50:00Z"}
        return failure(403, "PERMISSION_DENIED", "Permission 'iam.serviceAccounts.getAccessToken' denied on resource")

    def _bucket(self, call: Call) -> object:
        if call["bucket"] in self.buckets:
            return {"kind": "storage#bucket", "name": call["bucket"], **self.buckets[call["bucket"]]}
        return failure(404, "notFound", "The specified bucket does not exist.")

    def _bucket_allowed(self, call: Call) -> dict:
        granted = [one for one in call.query["permissions"] if one in self.bucket_permissions]
        return {"kind": "storage#testIamPermissionsResponse", **({"permissions": granted} if granted else {})}

    def _manifest(self, call: Call) -> object:
        if call["wanted"] == DIGEST:
            platforms = [{"os": "linux", "architecture": a} for a in self.platforms] + [{"os": "unknown"}]
            return {"manifests": [{"digest": f"sha256:{p.get('architecture')}", "platform": p} for p in platforms]}
        if call["wanted"] == "sha256:amd64":
            return {"config": {"digest": "sha256:config"}, "layers": []}
        return 404, {"errors": [{"code": "MANIFEST_UNKNOWN", "message": f"Failed to fetch {call['wanted']}"}]}

    def _config(self, call: Call) -> dict:
        return {"os": "linux", "architecture": "amd64", "config": {"Labels": self.labels}}

    def _quota(self, call: Call) -> object:
        if call["metric"] not in self.limits:
            return failure(404, "NOT_FOUND", f"The metric {call['metric']} does not exist")
        buckets = [{"effectiveLimit": "0", "defaultLimit": "0"}]
        for region, limit in self.limits[call["metric"]].items():
            buckets.append({"effectiveLimit": str(limit), "defaultLimit": "0", "dimensions": {"region": region}})
        return {
            "metric": f"aiplatform.googleapis.com/{call['metric']}",
            "consumerQuotaLimits": [{"unit": "1/{project}/{region}", "quotaBuckets": buckets}],
        }

    def _usage(self, call: Call) -> dict:
        metric = call.query["filter"][0].rpartition("aiplatform.googleapis.com/")[2].rstrip('"')
        series = {
            "metric": {"labels": {"quota_metric": f"aiplatform.googleapis.com/{metric}"}},
            "resource": {"type": "consumer_quota", "labels": {"location": REGION, "project_id": PROJECT}},
            "points": [{"value": {"int64Value": str(self.used.get(metric, 0))}}],
        }
        return {"timeSeries": [series]} if metric in self.used else {}

    def _reservation(self, call: Call) -> object:
        if call["name"] in self.reservations:
            return self.reservations[call["name"]]
        return failure(404, "NOT_FOUND", "The resource 'reservations/...' was not found")

    def _reservations(self, call: Call) -> dict:
        return {"items": {"zones/us-central1-a": {"reservations": list(self.reservations.values())}}}


def reservation(**changed: object) -> dict:
    """A reservation of Compute Engine's that fits configs/reserved.yaml."""
    return {
        "name": "two",
        "zone": "https://www.googleapis.com/compute/v1/projects/yard/zones/us-central1-a",
        "status": "READY",
        "specificReservationRequired": True,
        "specificReservation": {
            "count": "2",
            "inUseCount": "0",
            "instanceProperties": {"machineType": "a3-highgpu-2g"},
        },
        "reservationSharingPolicy": {"serviceShareType": "ALLOW_ALL"},
        **changed,
    }


def ago(minutes: float) -> str:
    """The time that many minutes ago, as the API writes it."""
    when = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=minutes)
    return when.isoformat().replace("+00:00", "Z")


def perimeter(*projects: str, title: str = "fence", updated: str = "", kind: str = "REGULAR") -> dict:
    """An enforced perimeter of Access Context Manager around projects, given by number."""
    return {
        "name": f"accessPolicies/1/servicePerimeters/{title}",
        "title": title,
        "perimeterType": f"PERIMETER_TYPE_{kind}",
        **({"updateTime": updated} if updated else {}),
        "status": {
            "resources": [f"projects/{number}" for number in projects],
            "restrictedServices": ["storage.googleapis.com", "artifactregistry.googleapis.com"],
        },
    }
