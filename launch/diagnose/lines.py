"""A log in pieces of whole lines, and its lines as they are compared: folded, and without what is unique in each."""

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import BinaryIO, NamedTuple

from launch.diagnose import numbers

PIECE = 1 << 20
OVERLAP = 1 << 9
# bytes of an indented next line that belong to a line of so many bytes, or of any next line where one ends in a blank
WRAPPED, WRAPS_FROM = 160, 40
UNIQUE = re.compile(rb'"(?:insertid|trace|spanid)": ?"[^"]*"')  # in a JSON entry, another one on each line
# JSON's escapes of < = > and of quotes once their digits are folded
ESCAPED = ((b"\\u000c", b"<"), (b"\\u000d", b"="), (b"\\u000e", b">"), (b"\\u0000", b"'"))


class Row(NamedTuple):
    """A line of the log without its colours, where it is, and the beginning of an indented next one."""

    raw: bytes
    more: bytes
    number: int
    offset: int


def pieces(log: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """(bytes, offset, number of the first line): whole lines, but for lines that are too long to hold."""
    held, offset, number = b"", 0, 1
    while chunk := log.read(PIECE):
        held += chunk
        if len(chunk) < PIECE:  # the end, or a slow pipe
            continue
        cut = held.rfind(b"\n") + 1
        if not cut:
            if len(held) < 4 * PIECE:
                continue
            cut = len(held) - OVERLAP
        yield held[:cut], offset, number
        number += held.count(b"\n", 0, cut)
        held, offset = held[cut:], offset + cut
    if held:
        yield held, offset, number


def folded(piece: bytes) -> list[bytes]:
    """The lines of a piece without colours as they are compared: numbers don't count, nor what is unique in JSON."""
    text = piece.translate(numbers.FOLD)
    if b'"insertid"' in text:
        text = UNIQUE.sub(b"", text)
    if b"\\u00" in text:
        for escape, char in ESCAPED:
            text = text.replace(escape, char)
    lines = text.split(b"\n")
    if b"\n " in text or b" \n" in text:  # a message that goes on in the next line
        lines = [_wrapped(line, after) for line, after in pairwise([*lines, b""])]
    return lines


def _wrapped(line: bytes, after: bytes) -> bytes:
    if line.endswith(b" ") or (len(line) >= WRAPS_FROM and after.startswith(b" ")):
        return line + b"\n" + after[:WRAPPED]
    return line


def starts(lines: list[bytes]) -> list[int]:
    """Where each line begins."""
    return list(accumulate((len(line) + 1 for line in lines[:-1]), initial=0))
