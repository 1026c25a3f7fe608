"""From hits to causes, most likely first.

The order is by evidence: a root before what follows from it, a sure sign before a hint, the earliest before what came
later (a replica that dies takes its peers with it), a line that ended the run before one that was tried again, and
wrappers ("The replica workerpool0-0 exited with a non-zero status of 1") last.
"""

import dataclasses

from launch.diagnose.causes import Advice, Cause
from launch.diagnose.matches import Hit

ROOT, HINT, SYMPTOM, WARNING, WRAPPER = range(5)


@dataclasses.dataclass(frozen=True)
class Finding:
    """One cause that the log shows, and the line that shows it best. `seconds` is when it was written, if known."""

    cause: Cause
    advice: Advice
    line: str
    line_number: int
    offset: int
    tier: int
    retry: bool
    times: int
    seconds: float | None = None
    replica: str = ""

    def as_dict(self) -> dict[str, object]:
        """The finding as `--json` shows it."""
        return {
            "cause": self.cause.id,
            "line": self.line,
            "line_number": self.line_number,
            "tip": self.advice.tip,
            "explanation": self.advice.explanation,
            "fixes": list(self.advice.fixes),
        }


def tier(hit: Hit) -> int:
    """How much a hit says, less is more."""
    if hit.sign.level == "wrapper":
        return WRAPPER
    if hit.quiet or hit.sign.level == "warning":
        return WARNING
    if hit.sign.level == "symptom":
        return SYMPTOM
    return HINT if hit.sign.hint else ROOT


def nearest(hits: list[Hit]) -> list[Hit]:
    """Of the hits on one line the nearest to the root: no wrapper, a sure sign, the cause of higher rank."""
    best: dict[int, Hit] = {}
    for hit in hits:
        now = best.get(hit.line_number)
        key = (tier(hit) == WRAPPER, hit.sign.hint, -hit.sign.cause.rank)
        if now is None or key < (tier(now) == WRAPPER, now.sign.hint, -now.sign.cause.rank):
            best[hit.line_number] = hit
    return list(best.values())


def findings(hits: list[Hit], when) -> list[Finding]:
    """One finding a cause, most likely first; `when(hit)` gives (seconds or None, replica)."""
    groups: dict[str, list[Hit]] = {}
    for hit in nearest(hits):
        groups.setdefault(hit.sign.cause.id, []).append(hit)
    found = []
    for group in groups.values():
        lowest = min(map(tier, group))
        shown = [hit for hit in group if tier(hit) == lowest]
        moments = [(when(hit), hit) for hit in shown[:5] + shown[-5:]]
        first = shown[0]
        (seconds, replica), first = min(
            moments, key=lambda pair: (pair[0][0] is None, pair[0][0] or 0.0, pair[1].line_number)
        )
        sign = first.sign
        found.append(
            Finding(
                sign.cause,
                sign.advice,
                first.line,
                first.line_number,
                first.offset,
                lowest,
                sign.retry,
                len(group),
                seconds,
                replica,
            )
        )
    timed = all(finding.seconds is not None for finding in found)
    return sorted(found, key=lambda f: (f.tier, f.seconds if timed else 0.0, f.line_number, -f.cause.rank))
