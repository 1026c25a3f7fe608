"""gcloud: the account, the project, proxies and impersonation are its own business.

Each call is one `gcloud ... --format=json` (about a second); what it says on stderr is told when it fails.
"""

import json
import re
import shutil
import subprocess
from typing import Any

from launch.errors import LaunchError

INSTALL = "https://cloud.google.com/sdk/docs/install"
_TRANSIENT = re.compile(
    r"\b(429|50[0234])\b|UNAVAILABLE|RESOURCE_EXHAUSTED|DEADLINE_EXCEEDED|INTERNAL\b|[Tt]imed? ?out|[Cc]onnection|"
    r"[Nn]etwork is unreachable|[Nn]ame resolution|[Rr]emote end closed|reset by peer|Max retries",
)
_SIGN_IN = re.compile(
    r"do not currently have an active account|Reauthentication|refreshing your current auth|invalid_grant"
)


class GcloudError(LaunchError):
    """gcloud said no. `said` is its stderr; `transient`: the same call may work in a moment."""

    def __init__(self, said: str, command: str):
        lines = [line for line in said.splitlines() if not line.startswith("Using endpoint ")]
        self.said = "\n".join(lines).strip()
        self.transient = bool(_TRANSIENT.search(self.said))
        fix = "\nFix: gcloud auth login" if _SIGN_IN.search(self.said) else ""
        super().__init__(f"{command}: {self.said or 'it failed without a word'}{fix}", exit_code=1)


def run(*arguments: str, text: str | None = None) -> Any:
    """Run gcloud with --format=json; what it answered. `text` goes to its stdin. Raises GcloudError, LaunchError."""
    program = shutil.which("gcloud")
    if program is None:
        raise LaunchError(
            f"gcloud is not installed, and this needs it. Fix: install it from {INSTALL}, then `gcloud auth login`"
        )
    command = [program, *arguments, "--format=json", "--quiet"]
    given = {"input": text} if text is not None else {"stdin": subprocess.DEVNULL}
    done = subprocess.run(command, capture_output=True, text=True, **given)
    shown = f"gcloud {' '.join(arguments[:3])}"
    if done.returncode:
        raise GcloudError(done.stderr, shown)
    try:
        return json.loads(done.stdout or "null")
    except ValueError as error:
        raise GcloudError(f"an answer that isn't JSON: {done.stdout[:200]!r}", shown) from error


def settings() -> dict[str, str]:
    """PROJECT and REGION as gcloud's own configuration has them; {} without gcloud."""
    gcloud = shutil.which("gcloud")
    if not gcloud:
        return {}
    command = [gcloud, "config", "list", "--format=json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    try:
        config = json.loads(done.stdout or "{}")
    except ValueError:
        return {}
    region = (config.get("ai") or {}).get("region") or (config.get("compute") or {}).get("region")
    found = {"PROJECT": (config.get("core") or {}).get("project"), "REGION": region}
    return {name: value for name, value in found.items() if value}
