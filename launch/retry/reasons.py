"""Whether a failure is worth another try: diagnose says what it was, and its cause says whether it passes."""

import dataclasses
import io


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why a try failed. `kind`: stockout, perimeter, limit or passing; "" for what waiting doesn't mend."""

    kind: str
    said: str
    tip: str = ""
    fixes: tuple[str, ...] = ()


KINDS = {"stockout": "stockout", "vpc_sc": "perimeter", "quota": "limit", "gcs_rate_limit": "limit"}


def of(text: str) -> Reason:
    """The reason that a message of gcloud's or of the job's shows."""
    from launch.diagnose import report

    last = [line.strip() for line in text.splitlines() if line.strip()]
    found = report.read(io.BytesIO(text.encode())).named
    if not found:
        return Reason("", last[-1] if last else "no reason was given")
    first = found[0]
    kind = KINDS.get(first.cause.id, "passing") if first.retry else ""
    return Reason(kind, first.line.strip(), first.advice.tip, first.advice.fixes)
