"""One finding of the doctor, and how findings are shown: as a table or as JSON."""

import dataclasses
import json
from collections.abc import Sequence
from typing import Literal

Status = Literal["ok", "warning", "failure", "unknown"]


@dataclasses.dataclass(frozen=True)
class Check:
    """What was looked at, how it stands, what is there, what should be, and what to do (empty if nothing)."""

    name: str
    status: Status
    found: str
    wanted: str = ""
    fix: str = ""


def failed(checks: Sequence[Check]) -> bool:
    """Whether any check says that training would fail or run on something else than it was asked to."""
    return any(check.status == "failure" for check in checks)


def as_json(kind: str, checks: Sequence[Check]) -> str:
    """{"for": kind, "checks": [{"name", "status", "found", "wanted", "fix"}, ...]}, indented."""
    return json.dumps({"for": kind, "checks": [dataclasses.asdict(check) for check in checks]}, indent=2)


def as_table(kind: str, checks: Sequence[Check]) -> str:
    """A line for each check, the fix under those that need one, and what it comes to at the end."""
    wide = max(len(check.name) for check in checks)
    found = min(max(len(check.found) for check in checks), 44)
    lines = []
    for check in checks:
        wanted = f"  wanted: {check.wanted}" if check.wanted else ""
        lines.append(f"{check.status:8} {check.name:{wide}}  {check.found:{found}}{wanted}".rstrip())
        if check.fix:
            lines.append(f"{'':8} {'':{wide}}  fix: {check.fix}")
    count = sum(check.status == "failure" for check in checks)
    if count:
        lines.append(f"not fit for {kind}: {count} of {len(checks)} checks failed")
    else:
        lines.append(f"fit for {kind}: {len(checks)} checks, none failed")
    return "\n".join(lines)
