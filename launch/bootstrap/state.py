"""What the project has now, asked of gcloud: each question once, and only when it is needed."""

import json
import subprocess
import time
from collections.abc import Sequence

from launch.bootstrap.settings import Names
from launch.errors import LaunchError

# An API that was switched on a moment ago, or an account made a moment ago, is not known everywhere at once.
_SOON = ("SERVICE_DISABLED", "has not been used in project", "it is disabled")
_UNKNOWN_ACCOUNT = ("does not exist", "unknown service account")
ATTEMPTS = 8
PAUSE_S = 8.0


class NoSuchAccountError(LaunchError):
    """A role for an account that Google hasn't made yet."""


class Cloud:
    """The project through gcloud."""

    def __init__(self, names: Names, gcloud: str):
        self.names = names
        self._gcloud = gcloud
        self._asked: dict[tuple[str, ...], object] = {}
        self.fresh = False  # something was made in this run, so a refusal may pass by itself

    def ask(self, *arguments: str) -> object:
        """The JSON that a reading command prints, asked once per run."""
        if arguments not in self._asked:
            self._asked[arguments] = json.loads(self._run([*arguments, "--format=json"]) or "null")
        return self._asked[arguments]

    def change(self, arguments: Sequence[str], patient: bool = True) -> None:
        """Run a changing command. `patient`: an account that isn't known yet is waited for.

        Answers that were kept stay true: bootstrap only adds, and no step asks after what another has made.
        """
        self._run(arguments, patient)
        self.fresh = True

    def number(self) -> str:
        """The project's number."""
        return str(self.ask("projects", "describe", self.names.project)["projectNumber"])

    def policy(self, group: Sequence[str], name: Sequence[str]) -> set[tuple[str, str]]:
        """(role, member) of every binding without a condition on one thing, e.g. ["projects"], ["my-project"]."""
        answer = self.ask(*group, "get-iam-policy", *name) or {}
        bindings = [b for b in answer.get("bindings", []) if not b.get("condition")]
        return {(b["role"], member) for b in bindings for member in b.get("members", [])}

    def _run(self, arguments: Sequence[str], patient: bool = True) -> str:
        command = [self._gcloud, *arguments, f"--project={self.names.project}", "--quiet"]
        passing = _SOON + (_UNKNOWN_ACCOUNT if patient else ())
        for attempt in range(1, ATTEMPTS + 1):
            done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
            if done.returncode == 0:
                return done.stdout
            said = done.stderr.lower()
            if not (self.fresh and any(text.lower() in said for text in passing)) or attempt == ATTEMPTS:
                break
            time.sleep(PAUSE_S)
        if any(text in said for text in _UNKNOWN_ACCOUNT) and "add-iam-policy-binding" in arguments:
            raise NoSuchAccountError(done.stderr.strip(), exit_code=1)
        raise LaunchError(_told(arguments, done.stderr.strip()), exit_code=1)


# What gcloud says -> what to do about it.
_FIXES = {
    "permission": "ask an owner of the project to run this, or for the roles that docs/bootstrap.md lists",
    "do not have": "sign in with `gcloud auth login`",
    "reauth": "sign in again with `gcloud auth login`",
    "already exists": "the name is taken, a bucket's in the whole world: choose another in project.env",
    "billing": "link a billing account: `gcloud billing projects link PROJECT --billing-account=ID`",
}


def _told(arguments: Sequence[str], said: str) -> str:
    fix = next((fix for text, fix in _FIXES.items() if text in said.lower()), "see what gcloud said above")
    return (
        f"`gcloud {' '.join(arguments)}` failed:\n  {said}\nFix: {fix}. Then run bootstrap again: it goes on from here."
    )
