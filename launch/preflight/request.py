"""One HTTP request: its answer, or the trouble that brought none, with what Google's error answers mean."""

import contextlib
import json
import time
import urllib.error
import urllib.parse
import urllib.request


class Trouble(Exception):  # noqa: N818 - it is what came back, not a fault of this program
    """A request that brought no answer; `kind` says why, `detail` is Google's own sentence."""

    def __init__(self, kind: str, detail: str, asked: str = "", status: int = 0):
        super().__init__(f"{asked}: {detail}" if asked else detail)
        # denied, perimeter, missing, limited, disabled, credentials, late, unreachable or other
        self.kind, self.detail, self.asked, self.status = kind, detail, asked, status


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


def parsed(raw: bytes, asked: str) -> dict:
    """The JSON object of an answer. Raises Trouble("other") where it is none."""
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
