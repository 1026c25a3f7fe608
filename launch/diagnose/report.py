"""What a log says, all of it: the causes in order, the last traceback, the last line that looks like an error."""

import dataclasses
import functools
import re
from typing import BinaryIO

from launch.diagnose import causes, entry, rank
from launch.diagnose.matches import Hit
from launch.diagnose.scan import Scanner

BEFORE = 1 << 13  # bytes looked at around a hit for the time and the replica
AFTER = 1 << 14
TRACEBACK = 1 << 16
RAISED = re.compile(
    r"^(?:\S+ ){0,3}?"
    r"([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit|Warning|Iteration)\b.*|[a-z_]\w*(?:\.\w+)+(?:: .*)?)$"
)


@dataclasses.dataclass(frozen=True)
class Report:
    """`traceback` holds the last one's lines, `end` the last lines of the log; either may be empty."""

    findings: list[rank.Finding]
    traceback: list[str]
    end: list[str]

    @property
    def named(self) -> list[rank.Finding]:
        """The causes without the wrappers, where there is anything better."""
        better = [finding for finding in self.findings if finding.tier != rank.WRAPPER]
        return better or self.findings


@functools.cache
def scanner() -> Scanner:
    """The scanner for causes.yaml."""
    _, signs, benign = causes.load()
    return Scanner(signs, benign)


def read(log: BinaryIO) -> Report:
    """The report of a seekable log."""
    hits = scanner().read(log)
    traceback, raised = [], 0
    starts = [hit for hit in hits if hit.line.rstrip().endswith("(most recent call last):")]
    if starts:
        traceback, raised = _traceback(log, starts[-1])
    findings = rank.findings(hits, lambda hit: _context(log, hit))
    explained = {hit.line_number for hit in hits if hit.sign.level != "wrapper"}
    kept = []
    for finding in findings:
        if finding.line.rstrip().endswith("(most recent call last):") and traceback:
            if raised in explained and finding.tier == rank.WRAPPER:
                continue
            finding = dataclasses.replace(finding, line=traceback[-1], line_number=raised)
        kept.append(finding)
    return Report(kept, traceback, _end(log))


def _window(log: BinaryIO, start: int, size: int) -> bytes:
    log.seek(max(start, 0))
    return log.read(size)


def _context(log: BinaryIO, hit: Hit) -> tuple[float | None, str]:
    """(when, which replica) of a hit, from its line and what stands around it."""
    before = _window(log, hit.offset - BEFORE, min(BEFORE, hit.offset))
    rest = _window(log, hit.offset, AFTER)
    raw, _, after = rest.partition(b"\n")
    return entry.written(before, raw, b"\n" + after), entry.replica(raw, after)


def _traceback(log: BinaryIO, hit: Hit) -> tuple[list[str], int]:
    """The lines of the traceback that begins at the hit, and the number of the line with the exception."""
    lines = _window(log, hit.offset, TRACEBACK).splitlines()
    inside = entry.texts(lines[0])
    if inside and b"\n" in inside[0].strip():  # all of it in one structured entry
        text = [entry.plain(line) for line in inside[0].splitlines()]
        begin = next((i for i, line in enumerate(text) if "most recent call last" in line), 0)
        return text[begin:], hit.line_number
    taken = []
    for raw in lines:
        said = entry.texts(raw)
        line = entry.plain(said[0] if said else raw)
        taken.append(line)
        if len(taken) > 1 and RAISED.match(line):
            return taken, hit.line_number + len(taken) - 1
        if len(taken) > 200:
            break
    return taken[:40], hit.line_number


def _end(log: BinaryIO, lines: int = 5) -> list[str]:
    log.seek(0, 2)
    tail = _window(log, log.tell() - 8192, 8192).splitlines()[-lines:]
    return [entry.plain((entry.texts(raw) or [raw])[0]).splitlines()[0] for raw in tail if raw.strip()]
