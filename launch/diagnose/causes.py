"""The causes of causes.yaml, read and checked."""

import dataclasses
import functools
import re
from pathlib import Path
from typing import Literal

import yaml

FILE = Path(__file__).resolve().parent.parent / "causes.yaml"
SEVEN = {
    1: "packages",
    2: "strategy",
    3: "permissions",
    4: "security perimeter",
    5: "batch size and memory",
    6: "NaN",
    7: "capacity",
}
STATUS = re.compile(r"<(\d[\d\[\]]+)>")
STATUS_WRITTEN = (
    r"((http|httperror|code|status|error|exception|response|returned|got|with|failed)\S* '?\(?N\b|: N\b|\bN '?"
    r"(get|post|put|delete|head|patch|forbidden|unauthorized|not found|too many|client|server|error|service|internal)\b"
    ")"
)
VARIANT_KEYS = frozenset({"tip", "explanation", "fixes", "level", "retry", "patterns", "hints"})
KEYS = VARIANT_KEYS | {"id", "title", "seven", "rank", "links", "unless", "variants"}
Level = Literal["root", "symptom", "warning", "wrapper"]


class CausesError(ValueError):
    """causes.yaml can't be used; the text says where and why."""


@dataclasses.dataclass(frozen=True)
class Advice:
    """What a reader is told: one sentence, what happened, and what to do in order."""

    tip: str
    explanation: str
    fixes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Cause:
    """One entry. `rank` decides between causes that one line shows: the higher is the nearer to the root."""

    id: str
    title: str
    seven: int | None
    level: Level
    rank: int
    retry: bool
    advice: Advice
    links: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Sign:
    """One pattern: what it shows, how surely (a hint counts less), and what cancels it on the same line."""

    pattern: str
    cause: Cause
    advice: Advice
    hint: bool
    level: Level
    retry: bool
    unless: tuple[str, ...]


def _lines(text: str | None) -> list[str]:
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return [STATUS.sub(lambda found: STATUS_WRITTEN.replace("N", found[1]), line) for line in lines]


def _advice(entry: dict, base: Advice | None = None) -> Advice:
    def words(key: str) -> str:
        return " ".join(entry[key].split()) if key in entry else getattr(base, key)

    fixes = tuple(" ".join(fix.split()) for fix in entry["fixes"]) if "fixes" in entry else base.fixes
    return Advice(words("tip"), words("explanation"), fixes)


def _known(entry: dict, keys: frozenset[str]) -> None:
    """Raises CausesError for a key that nothing reads: whoever wrote it believes that it counts."""
    if unknown := entry.keys() - keys:
        named = entry.get("id") or entry.get("tip", entry)
        raise CausesError(f"{named!r} has {', '.join(sorted(unknown))}; known are {', '.join(sorted(keys))}")


def _signs(entry: dict, cause: Cause) -> list[Sign]:
    """The signs of one entry, those of its variants (the same cause, other advice) among them."""
    signs = []
    _known(entry, KEYS)
    for variant in entry.get("variants", []):
        _known(variant, VARIANT_KEYS)
    for part in [*entry.get("variants", []), entry]:
        advice = _advice(part, cause.advice)
        level, retry = part.get("level", cause.level), part.get("retry", cause.retry)
        unless = tuple(_lines(entry.get("unless")))
        for key, hint in (("patterns", False), ("hints", True)):
            signs += [Sign(line, cause, advice, hint, level, retry, unless) for line in _lines(part.get(key))]
    return signs


@functools.cache
def load(path: Path = FILE) -> tuple[tuple[Cause, ...], tuple[Sign, ...], tuple[str, ...]]:
    """(causes, signs, the patterns of lines that mean nothing). Raises CausesError with the entry it is about."""
    entries = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    causes, signs = [], []
    for entry in entries["causes"]:
        try:
            cause = Cause(
                id=entry["id"],
                title=entry["title"],
                seven=entry.get("seven"),
                level=entry.get("level", "root"),
                rank=entry.get("rank", 50),
                retry=entry.get("retry", False),
                advice=_advice(entry),
                links=tuple(entry.get("links", ())),
            )
        except (KeyError, AttributeError, TypeError) as error:
            raise CausesError(f"{path}: entry {entry.get('id', entry)!r}: {error} is missing or not text") from error
        causes.append(cause)
        signs += _signs(entry, cause)
    return tuple(causes), tuple(signs), tuple(_lines(entries["benign"]))
