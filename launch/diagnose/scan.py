"""The first reading of a log: which lines show something, and where they are.

The log goes by in pieces of about a megabyte, each through a few automata made of all patterns. Only a line
that it stops at is looked at closely, and of lines that stop it alike only some, so neither a hundred megabytes, nor
a line of that length, nor the same message a million times takes long.
"""

import collections
import dataclasses
from collections.abc import Iterator
from typing import BinaryIO

from launch.diagnose import entry, patterns
from launch.diagnose.causes import Sign

PIECE = 1 << 20
LONGEST_LINE = 1 << 16  # a longer one is read in parts that overlap
OVERLAP = 1 << 12
WRAPPED = 400  # bytes of the next line, where a message goes on in it
KEY_BYTES = 24  # stops that begin alike are looked at A_LOG times, then A_PIECE times in each piece
A_LOG = 20
A_PIECE = 3
KEPT = 40  # of one pattern: the first half and the last half


@dataclasses.dataclass(frozen=True)
class Hit:
    """One line that shows something. `line_number` counts from 1; `offset` is the line's first byte."""

    sign: Sign
    line: str
    line_number: int
    offset: int
    quiet: bool  # the line itself says that it will be tried again, or is a mere warning


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


class Scanner:
    """Finds the lines in which any of `signs` shows; `benign` lines show nothing."""

    def __init__(self, signs: tuple[Sign, ...], benign: tuple[str, ...]):
        self.signs = signs
        self.automata = patterns.automata([sign.pattern for sign in signs])
        self.benign = patterns.any_of(list(benign))
        self.hits: dict[int, list[Hit]] = {}

    def read(self, log: BinaryIO) -> list[Hit]:
        """All that is kept, in the order of the log."""
        self.hits, self.seen = {}, collections.Counter()
        for piece, offset, number in pieces(log):
            for automaton, indices in self.automata:
                self._piece(automaton, indices, piece, offset, number)
        found = (hit for hits in self.hits.values() for hit in hits)
        return sorted(found, key=lambda hit: (hit.offset, hit.line_number))

    def _piece(self, automaton, indices: list[int], piece: bytes, offset: int, number: int) -> None:
        """The hits of one automaton's patterns in one piece. `number` is that of its first line."""
        at = counted = 0
        searched = piece
        here = collections.Counter()
        while match := automaton.search(searched, at):
            begin = match.start()
            end = piece.find(b"\n", begin)
            end = min(len(piece) if end < 0 else end, begin + LONGEST_LINE // 2)
            at = end + 1
            key = piece[begin : min(match.end(), begin + KEY_BYTES)]
            here[key] += 1
            self.seen[key] += 1
            if here[key] > A_PIECE and self.seen[key] > A_LOG:
                if b"\n" not in key:  # a search costs as much as a megabyte read past: none for this one again
                    searched = searched.replace(key, b"\0" * len(key))
                continue
            start = max(piece.rfind(b"\n", 0, begin) + 1, begin - LONGEST_LINE // 2)
            number += piece.count(b"\n", counted, start)
            counted = start
            for index, hit in self._line(
                piece[start:end], piece[start : end + WRAPPED], indices, offset + start, number
            ):
                self._keep(index, hit)

    def _line(self, raw: bytes, wide: bytes, indices: list[int], offset: int, number: int) -> Iterator[tuple[int, Hit]]:
        """The hits that begin in this line; of a structured line, those in its message first."""
        if self.benign.search(raw):
            return
        texts = entry.texts(raw)
        found, text = [], raw
        for text in texts or [wide]:
            matches = ((index, patterns.exact(self.signs[index].pattern).search(text)) for index in indices)
            found = [
                (index, match.start()) for index, match in matches if match and (texts or match.start() < len(raw))
            ]
            if found:
                break
        for index, start in found:
            line = entry.line_at(text, start)
            if not any(patterns.exact(pattern).search(line) for pattern in self.signs[index].unless):
                yield index, Hit(self.signs[index], entry.plain(line), number, offset, entry.quiet(raw, line))

    def _keep(self, index: int, hit: Hit) -> None:
        hits = self.hits.setdefault(index, [])
        if len(hits) >= KEPT:
            del hits[KEPT // 2]
        hits.append(hit)
