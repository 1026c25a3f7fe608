"""A check is data: what was looked at, how it stands, what to do about it and the command that does it."""

import dataclasses
from collections.abc import Iterable
from typing import Literal

Status = Literal["ok", "warning", "failure", "unknown"]


@dataclasses.dataclass(frozen=True)
class Check:
    """One finding; `fix` and `command` are empty where there is nothing to do."""

    name: str
    status: Status
    found: str
    fix: str = ""
    command: str = ""
    subject: str = ""  # which of the seven failures it belongs to, for preflight

    def as_dict(self) -> dict[str, str]:
        """The check as JSON shows it."""
        return dataclasses.asdict(self)


def exit_code(checks: Iterable[Check]) -> int:
    """1 if any check failed, otherwise 0: a warning or an unknown stops nobody."""
    return int(any(check.status == "failure" for check in checks))
