"""Google's REST APIs with gcloud's own token and endpoints: plain HTTPS, each question asked once.

A gcloud command costs a second or more; a request costs a tenth of it.
"""

import json
import threading
import time
import urllib.parse

from launch.preflight.account import Account
from launch.preflight.request import Trouble, explained, fetch, parsed

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
                return parsed(raw, asked)
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


def override(base: str, given: str) -> str:
    """gcloud's rule for api_endpoint_overrides: an address without a path keeps the API's own path."""
    if not given:
        return base
    parts = urllib.parse.urlsplit(given)
    if parts.path.strip("/"):
        return given.rstrip("/") + "/"
    return f"{parts.scheme}://{parts.netloc}{urllib.parse.urlsplit(base).path}"
