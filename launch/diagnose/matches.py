"""What one line shows: the exact look, at the few patterns that can fit it."""

import dataclasses

from launch.diagnose import entry, patterns
from launch.diagnose.causes import Sign
from launch.diagnose.lines import Row


@dataclasses.dataclass(frozen=True)
class Hit:
    """One line that shows something. `line_number` counts from 1; `offset` is the line's first byte."""

    sign: Sign
    line: str
    line_number: int
    offset: int
    quiet: bool  # the line itself says that it will be tried again, or is a mere warning


def shown(signs: dict[int, Sign], row: Row) -> list[int]:
    """The keys of those that show in a line; in a structured one those in its message, if there are any."""
    for text in _texts(row):
        found = [key for key, sign in signs.items() if _start(sign, text, row) is not None]
        if found:
            return [key for key in found if not _cancelled(signs[key], text, row)]
    return []


def hit(sign: Sign, row: Row) -> Hit:
    """The line as it is told, of a row in which the sign shows."""
    for text in _texts(row):
        if (start := _start(sign, text, row)) is not None:
            break
    line = entry.line_at(text, start or 0)
    return Hit(sign, entry.plain(line), row.number, row.offset, entry.quiet(row.raw, line))


def _texts(row: Row) -> list[bytes]:
    """What to look in: of a structured line its message, then all of it; else the line, with what wraps."""
    return entry.texts(row.raw) or [row.raw.rstrip(b"\r") + (b"\n" + row.more if row.more else b"")]


def _start(sign: Sign, text: bytes, row: Row) -> int | None:
    match = patterns.exact(sign.pattern).search(text)
    if not match or (row.more and match.start() > len(row.raw)):
        return None
    return match.start()


def _cancelled(sign: Sign, text: bytes, row: Row) -> bool:
    line = text if row.more else entry.line_at(text, _start(sign, text, row))
    return any(patterns.exact(pattern).search(line) for pattern in sign.unless)
