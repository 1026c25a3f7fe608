"""Google's REST APIs with gcloud's own token, account, project and endpoints: one gcloud call, then plain HTTPS.

A gcloud command costs a second or more; a request costs a tenth of it. `gcloud config config-helper` is what
kubectl asks for credentials, and answers with the account, the project and any endpoint override as well.
"""

import contextlib
import dataclasses
import json
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

# As in gcloud's clients, whose rule for overrides is ours: one without a path keeps the path that stands here.
BASES = {
    "accesscontextmanager": "https://accesscontextmanager.googleapis.com/",
    "aiplatform": "https://aiplatform.googleapis.com/",
    "artifactregistry": "https://artifactregistry.googleapis.com/",
    "cloudresourcemanager": "https://cloudresourcemanager.googleapis.com/",
    "compute": "https://compute.googleapis.com/compute/v1/",
    "iam": "https://iam.googleapis.com/",
    "iamcredentials": "https://iamcredentials.googleapis.com/",
    "logging": "https://logging.googleapis.com/",
    "monitoring": "https://monitoring.googleapis.com/",
    "serviceusage": "https://serviceusage.googleapis.com/",
    "storage": "https://storage.googleapis.com/storage/v1/",
}
# Of the time for everything, the share that a single request may take: one hung service leaves room for others.
REQUEST_SHARE = 0.4


class Trouble(Exception):  # noqa: N818 - it is what came back, not a fault of this program
    """A request that brought no answer; `kind` says why, `detail` is Google's own sentence."""

    def __init__(self, kind: str, detail: str, asked: str = "", status: int = 0):
        super().__init__(f"{asked}: {detail}" if asked else detail)
        # denied, perimeter, missing, limited, disabled, credentials, late, unreachable or other
        self.kind, self.detail, self.asked, self.status = kind, detail, asked, status


@dataclasses.dataclass
class Account:
    """Who asks: what gcloud is set to. `account` is empty where only a token was given."""

    token: str
    account: str
    project: str
    region: str
    overrides: dict[str, str]
    impersonated: str = ""


def sign_in(timeout_s: float) -> Account:
    """gcloud's own account. Raises Trouble("credentials") with the command that mends it."""
    if not shutil.which("gcloud"):
        raise Trouble("credentials", "gcloud is not installed: https://cloud.google.com/sdk/docs/install")
    command = ["gcloud", "config", "config-helper", "--format=json", "--quiet"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise Trouble("late", f"gcloud gave no token within {timeout_s:.0f} s") from None
    if done.returncode:
        said = next((line for line in done.stderr.splitlines() if line.startswith("ERROR")), done.stderr.strip())
        raise Trouble("credentials", said.removeprefix("ERROR: ") or "gcloud has no account")
    answer = json.loads(done.stdout)
    properties = answer["configuration"]["properties"]
    return Account(
        token=answer["credential"]["access_token"],
        account=properties.get("core", {}).get("account", ""),
        project=properties.get("core", {}).get("project", ""),
        region=properties.get("ai", {}).get("region", "") or properties.get("compute", {}).get("region", ""),
        overrides=properties.get("api_endpoint_overrides", {}),
        impersonated=properties.get("auth", {}).get("impersonate_service_account", ""),
    )


class Cloud:
    """Asks Google; every answer is remembered, and asked for once even by several threads at a time."""

    def __init__(self, account: Account, deadline: float, region: str = ""):
        self.account = account
        self.region = region
        self.deadline = deadline  # time.monotonic() after which no request is waited for
        self._longest_s = max(1.0, REQUEST_SHARE * (deadline - time.monotonic()))
        self._answers: dict[tuple, object] = {}
        self._locks: dict[tuple, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, api: str, path: str, token: str = "", **query: object) -> dict:
        """The JSON at a path such as `v1/projects/p`. Raises Trouble."""
        return self._once("GET", api, path, None, token, query)

    def post(self, api: str, path: str, body: dict, token: str = "") -> dict:
        """The answer to a question that is asked with POST; nothing is changed by any of them."""
        return self._once("POST", api, path, body, token, {})

    def url(self, api: str, path: str, query: dict | None = None) -> str:
        """The whole address, with gcloud's endpoint override where there is one."""
        given = self.account.overrides.get(api, "")
        base = override(BASES[api], given)
        if api == "aiplatform" and not given:  # jobs are a region's: the global address doesn't know them
            base = f"https://{self.region}-aiplatform.googleapis.com/"
        pairs = [(k, v) for k, v in (query or {}).items() if v is not None]
        return base + path + ("?" + urllib.parse.urlencode(pairs, doseq=True) if pairs else "")

    def _once(self, method: str, api: str, path: str, body: dict | None, token: str, query: dict) -> dict:
        url = self.url(api, path, query)
        key = (method, url, json.dumps(body, sort_keys=True), token)
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._answers:
                try:
                    self._answers[key] = self._asked(method, api, url, body, token or self.account.token)
                except Trouble as trouble:
                    self._answers[key] = trouble
            answer = self._answers[key]
        if isinstance(answer, Trouble):
            raise answer
        return answer

    def _asked(self, method: str, api: str, url: str, body: dict | None, token: str) -> dict:
        asked = f"{api} {urllib.parse.unquote(urllib.parse.urlsplit(url).path).lstrip('/')}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        for attempt in (1, 2):
            try:
                status, _, raw = fetch(url, method, data, headers, self.remaining_s())
            except Trouble as trouble:
                raise Trouble(trouble.kind, trouble.detail, asked) from None
            if status < 400:
                return _parsed(raw, asked)
            trouble = explained(status, raw, asked)
            # a rate limit is often over within a second; more than one more try would only add to it
            if trouble.kind != "limited" or attempt == 2 or self.remaining_s() < 2:
                raise trouble
            time.sleep(1)
        raise AssertionError("unreachable")

    def remaining_s(self) -> float:
        """Seconds that the next request may take; raises Trouble("late") where none are left."""
        left = self.deadline - time.monotonic()
        if left <= 0.05:
            raise Trouble("late", "no time was left to ask")
        return min(self._longest_s, left)


def fetch(
    url: str, method: str, data: bytes | None, headers: dict[str, str], timeout_s: float
) -> tuple[int, dict[str, str], bytes]:
    """(status, headers, body) of any answer that came. Raises Trouble("late" or "unreachable") where none did."""
    request = urllib.request.Request(url, data, method=method)
    for name, value in headers.items():
        # not sent on to where a registry redirects: its signed addresses refuse a second credential
        request.add_unredirected_header(name, value)
    host = urllib.parse.urlsplit(url).netloc
    until = time.monotonic() + timeout_s
    try:
        with contextlib.closing(urllib.request.urlopen(request, timeout=timeout_s)) as answer:
            return answer.status, dict(answer.headers), _read(answer, until)
    except urllib.error.HTTPError as error:
        with contextlib.closing(error):
            return error.code, dict(error.headers), _read(error, until)
    except TimeoutError:
        raise Trouble("late", f"{host} gave no answer within {timeout_s:.0f} s") from None
    except (urllib.error.URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        kind = "late" if isinstance(reason, TimeoutError) else "unreachable"
        raise Trouble(kind, f"{host} can't be reached: {reason}") from None


def _read(answer, until: float, limit: int = 16 << 20) -> bytes:
    """The body, piece by piece: a time-out on a socket is one for each piece, and drops would never end."""
    parts, size = [], 0
    while part := answer.read1(65536):
        parts.append(part)
        size += len(part)
        if time.monotonic() > until:
            raise TimeoutError
        if size > limit:
            raise ValueError(f"the answer is larger than {limit >> 20} MiB")
    return b"".join(parts)


def _parsed(raw: bytes, asked: str) -> dict:
    try:
        answer = json.loads(raw or b"{}")
    except ValueError:
        raise Trouble("other", f"the answer is no JSON: {raw[:80]!r}", asked) from None
    if not isinstance(answer, dict):
        raise Trouble("other", f"the answer is no object: {raw[:80]!r}", asked)
    return answer


def explained(status: int, raw: bytes, asked: str) -> Trouble:
    """What an error answer of Google's means, as Trouble; the shapes are google.rpc.Status in JSON."""
    try:
        error = json.loads(raw)["error"]
        message = str(error["message"]) if isinstance(error, dict) else str(error)
        details = error.get("details", []) if isinstance(error, dict) else []
    except (ValueError, KeyError, TypeError):
        message, details = raw.decode("utf-8", "replace").strip()[:300] or f"HTTP {status}", []
    reasons = {str(d.get("reason", "")) for d in details if isinstance(d, dict)}
    return Trouble(_kind(status, message, reasons), message, asked, status)


def _kind(status: int, message: str, reasons: set[str]) -> str:
    if "SECURITY_POLICY_VIOLATED" in reasons or "vpcServiceControls" in message or "VPC Service Controls" in message:
        return "perimeter"
    if "SERVICE_DISABLED" in reasons or "has not been used in project" in message:
        return "disabled"
    return {401: "credentials", 403: "denied", 404: "missing", 429: "limited", 503: "limited"}.get(status, "other")


def override(base: str, given: str) -> str:
    """gcloud's rule for api_endpoint_overrides: an address without a path keeps the API's own path."""
    if not given:
        return base
    parts = urllib.parse.urlsplit(given)
    if parts.path.strip("/"):
        return given.rstrip("/") + "/"
    return f"{parts.scheme}://{parts.netloc}{urllib.parse.urlsplit(base).path}"
