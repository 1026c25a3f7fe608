"""A stand-in for Google's APIs on loopback, and the environment that points a real gcloud at it.

    with StandIn() as api:
        api.route("GET", r"/v1/projects/(?P<project>[^/:]+)", lambda call: {"projectId": call["project"]})
        subprocess.run(["gcloud", "projects", "describe", "p"], env=api.environment(tmp_path))
        assert api.calls[-1].path == "/v1/projects/p"

A route answers with a dict (200), with (status, dict), or with Late(seconds, either of them). A call that no
route takes gets 400 (gcloud retries a 5xx for half a minute) and lands in `unexpected`, so that a test can say
that there were none. No test needs the network or an account.
"""

import contextlib
import dataclasses
import json
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

# The names behind CLOUDSDK_API_ENDPOINT_OVERRIDES_*, as `gcloud config set api_endpoint_overrides/` has them.
APIS = (
    "accesscontextmanager",
    "aiplatform",
    "artifactregistry",
    "cloudbuild",
    "cloudresourcemanager",
    "compute",
    "iam",
    "iamcredentials",
    "logging",
    "monitoring",
    "serviceusage",
    "storage",
)


@dataclass(frozen=True)
class Call:
    """One request. `body` is parsed JSON where it is JSON, text otherwise, None where empty;
    `raw` is what came.
    """

    method: str
    path: str
    query: dict[str, list[str]] = field(default_factory=dict)
    body: object = None
    parts: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""

    def __getitem__(self, name: str) -> str:
        """The named group of the route's pattern."""
        return self.parts[name]


def failure(code: int, status: str, message: str) -> tuple[int, dict]:
    """An error as Google's APIs shape it, e.g. failure(404, "NOT_FOUND", "no such bucket")."""
    return code, {"error": {"code": code, "status": status, "message": message}}


@dataclass(frozen=True)
class Late:
    """An answer that comes after `seconds`, while others are answered; sooner where the server is closed."""

    seconds: float
    answer: object


class StandIn:
    """A server with routes; a context manager. Newer routes win over older ones."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.unexpected: list[Call] = []
        self._routes: list[tuple[str, re.Pattern, Callable]] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "StandIn":
        # a short poll: shutdown() waits for the next one
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def route(self, method: str, pattern: str, answer: Callable[[Call], object]) -> None:
        """Answer `method` on paths that match the whole pattern, one call at a time."""
        self._routes.insert(0, (method, re.compile(pattern), answer))

    def answer(self, call: Call) -> tuple[int, object]:
        """The first route's answer to a call, when it is time for it."""
        given = self._answer(call)
        if isinstance(given, Late):
            self._closing.wait(given.seconds)
            given = given.answer
        return given if isinstance(given, tuple) else (200, given)

    def _answer(self, call: Call) -> object:
        with self._lock:
            for method, pattern, answer in self._routes:
                match = pattern.fullmatch(call.path)
                if match and method == call.method:
                    call = dataclasses.replace(call, parts=match.groupdict())
                    self.calls.append(call)
                    return answer(call)
            self.calls.append(call)
            self.unexpected.append(call)
            return failure(400, "INVALID_ARGUMENT", f"no route for {call.method} {call.path}")

    def writes(self) -> list[Call]:
        """The calls that change something: all but GETs and the POSTs that only ask."""
        asks = (":getIamPolicy", ":testIamPermissions")
        return [c for c in self.calls if c.method != "GET" and not c.path.endswith(asks)]

    def environment(self, home: Path, project: str = "project") -> dict[str, str]:
        """This process's environment, with gcloud's settings in `home` and every API at this server."""
        home.mkdir(parents=True, exist_ok=True)
        token = home / "token"
        token.write_text("stand-in")
        kept = {k: v for k, v in os.environ.items() if not k.startswith("CLOUDSDK_") and "proxy" not in k.lower()}
        return kept | {
            "CLOUDSDK_CONFIG": str(home),
            "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token),
            "CLOUDSDK_CORE_PROJECT": project,
            "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
            "CLOUDSDK_CORE_CHECK_GCE_METADATA": "false",
            "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "1",
            **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name.upper()}": f"{self.address}/" for name in APIS},
        }


def _handler(api: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_any(self) -> None:
            url = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            text = raw.decode("utf-8", "replace")
            try:
                body = json.loads(text) if text else None
            except ValueError:
                body = text
            status, given = api.answer(Call(self.command, unquote(url.path), parse_qs(url.query), body, raw=raw))
            sent = json.dumps(given).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):  # who asked may have stopped waiting
                self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Silent: `calls` has it all."""

    return Handler
