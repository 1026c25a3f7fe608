"""The first reading of a log: which lines show something, and where they are.

Each line is folded (numbers.py), and lines that are alike are looked at once, in two steps: which patterns fit it if
its numbers are left aside, all patterns in one go, and which of those fit the line itself. A line that is too long to
be one is read in parts.
"""

import collections
import re
from typing import BinaryIO

from launch.diagnose import entry, lines, matches, numbers, patterns
from launch.diagnose.causes import Sign
from launch.diagnose.lines import OVERLAP, WRAPPED, Row

LONGEST_LINE = 1 << 14  # a longer one is read in parts that overlap
PART = 1 << 12
KEPT = 40  # of one pattern: the first half and the last half
REMEMBERED = 10_000  # lines
OFTEN, A_FEW = 500, 32  # of lines that show something, by the same patterns, so many are looked at; then one in a few
TOGETHER = 16  # lines are looked at in one go while none of them shows anything
ID = re.compile(rb"[0a-f]{10,}")  # of a request or a trace, its digits folded


class Scanner:
    """Finds the lines in which any of `signs` shows; `benign` lines show nothing."""

    def __init__(self, signs: tuple[Sign, ...], benign: tuple[str, ...]):
        self.signs = signs
        self.candidates = patterns.possible([sign.pattern for sign in signs])
        own = [numbers.numbers(sign.pattern) for sign in signs]
        told = [sum(map(numbers.numbers, sign.unless), list(own[at])) for at, sign in enumerate(signs)]
        self.by_number = [bool(each) for each in told]
        self.lasting = [all(map(numbers.is_telling, each)) for each in own]
        self.lasting_if_shown = [all(map(numbers.is_telling, each)) for each in told]
        self.telling = numbers.written_out({number for each in told for number in each})
        self.benign = patterns.any_of(list(benign))
        self._forget()

    def _forget(self) -> None:
        self.dull: set[bytes] = set()  # folded lines that show nothing, whatever their numbers
        self.known: dict[bytes, tuple[int, ...]] = {}  # folded line and telling numbers -> what it shows
        self.possible: dict[bytes, tuple[int, ...]] = {}  # folded line -> what it may show
        self.same: dict[bytes, tuple[int, ...]] = {}  # a line as it stands -> what it shows
        self.shown: collections.Counter[tuple[int, ...]] = collections.Counter()
        self.first: dict[int, list[Row]] = {}
        self.last: dict[int, collections.deque[Row]] = {}

    def read(self, log: BinaryIO) -> list[matches.Hit]:
        """All that is kept, in the order of the log."""
        self._forget()
        for piece, offset, number in lines.pieces(log):
            self._piece(piece, offset, number)
        found = []
        for sign, rows in self.first.items():
            found += [matches.hit(self.signs[sign], row) for row in (*rows, *self.last[sign])]
        self._forget()
        return sorted(found, key=lambda hit: (hit.offset, hit.line_number))

    def _piece(self, piece: bytes, offset: int, number: int) -> None:
        """What shows in one piece. `number` is that of its first line."""
        raws = piece.split(b"\n")
        plain = entry.colourless(piece)
        folded = lines.folded(plain)
        if plain is not piece:
            raws = plain.split(b"\n")
        dull = self.dull
        for known in (dull, self.known, self.possible, self.same):
            if len(known) > REMEMBERED:
                known.clear()
        undecided = self._sieved(folded, [at for at, line in enumerate(folded) if line not in dull])
        if not undecided:
            return
        starts = lines.starts(raws if plain is piece else piece.split(b"\n"))
        for at in undecided:
            line, raw = folded[at], raws[at]
            if line in dull:
                continue
            if len(raw) > LONGEST_LINE:
                for begin in range(0, len(raw), PART - OVERLAP):
                    part = raw[begin : begin + PART]
                    fold = ID.sub(b"0", part.translate(numbers.FOLD))
                    self._line(fold, Row(part, b"", number + at, offset + starts[at] + begin))
                continue
            more = raws[at + 1][:WRAPPED] if b"\n" in line and at + 1 < len(raws) else b""
            self._line(line, Row(raw, more, number + at, offset + starts[at]))

    def _sieved(self, folded: list[bytes], undecided: list[int]) -> list[int]:
        """Those of the undecided lines that may show something; in `folded` they lose their ids.

        Most lines of a log show nothing, and RE2 tells so for many together in little more time than for one.
        """
        bare = ID.sub(b"0", b"\0".join([folded[at] for at in undecided])).split(b"\0")
        unknown = [line for line in dict.fromkeys(bare) if line not in self.possible and len(line) <= LONGEST_LINE]
        begin, quiet = 0, TOGETHER
        while begin < len(unknown):
            some = unknown[begin : begin + TOGETHER] if quiet >= TOGETHER else unknown[begin : begin + 1]
            found = self.candidates.Match(b"\n".join(some))
            quiet = 0 if found else quiet + len(some)
            if found and len(some) > 1:
                continue  # the same again, one by one
            if found:
                self.possible[some[0]] = tuple(found)
            else:
                self.dull.update(some)
            begin += len(some)
        left = []
        for at, line in zip(undecided, bare, strict=False):  # without a line bare has one, an empty one
            folded[at] = line
            if line not in self.dull:
                left.append(at)
        return left

    def _line(self, line: bytes, row: Row) -> None:
        """Keeps what a line shows, `line` being its folded form."""
        if (shows := self.same.get(row.raw)) is None:
            if (possible := self.possible.get(line)) is None:
                if not (possible := tuple(self.candidates.Match(line) or ())):
                    self.dull.add(line)
                    return
                self.possible[line] = possible
            if (shows := self._what(line, possible, row)) is None:
                return
        for sign in shows:
            self._keep(sign, row)

    def _what(self, line: bytes, possible: tuple[int, ...], row: Row) -> tuple[int, ...] | None:
        """Which of the possible signs a line shows; None where so many like it were looked at that it doesn't count."""
        if any(self.by_number[sign] for sign in possible):
            line += b"\0".join([b"", *sorted(self.telling.intersection(numbers.of_line(row.raw)))])
        if (shows := self.known.get(line)) is not None:
            return shows
        self.shown[possible] += 1
        if self.shown[possible] > OFTEN and self.shown[possible] % A_FEW:
            return None
        shows = ()
        if not self.benign.search(row.raw.rstrip(b"\r")):
            shows = tuple(matches.shown({sign: self.signs[sign] for sign in possible}, row))
        lasting = self.lasting_if_shown if shows else self.lasting
        if all(lasting[sign] for sign in possible):
            if not shows and not any(self.by_number[sign] for sign in possible):
                self.dull.add(line)
            self.known[line] = shows
        if not row.more:
            self.same[row.raw] = shows
        return shows

    def _keep(self, sign: int, row: Row) -> None:
        first = self.first.setdefault(sign, [])
        if len(first) < KEPT // 2:
            first.append(row)
            self.last.setdefault(sign, collections.deque(maxlen=KEPT // 2))
        else:
            self.last[sign].append(row)
