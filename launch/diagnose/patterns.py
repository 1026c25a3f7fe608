"""How a pattern of causes.yaml becomes RE2: one automaton that reads a log at hundreds of megabytes a second.

A pattern is a regular expression without upper or lower case, with three shorthands that keep it readable and
make it fit other wordings of the same thing:
    a space  any run of white space, a line break and its indentation included, also as JSON escapes it
    ' or "   any quotes, escaped or not, or none
    ...      (between spaces) whatever stands between two words on the same line, up to 240 bytes of it, or nothing
A pattern that begins with a letter begins at a word's start. RE2 has no look-around and no back-references, and in
return no input makes it slow (https://github.com/google/re2/wiki/Syntax).
"""

import functools
import re

import re2

BETWEEN = " ... "
SPACE = r"(?:[\s>|]|\\[nrt]|\x1b\[[0-9;]*m)+"
QUOTES = r"(?:[\\\x22\x27\x60]|\xe2\x80[\x98\x99\x9c\x9d]|\\u0027|&#39;|&quot;|\x1b\[[0-9;]*m)*"
GAP = r"[^\w\n](?:.{0,240}[^\w\n])?"
LONG_GAP = r"[^\w\n](?:.*[^\w\n])?"  # in an automaton of many patterns a bound would cost a state for each byte
START = r"(?:\b|\\[nrt]|\x1b\[[0-9;]*m)"
BEGINS_A_WORD = re.compile(r"\(*(?:\?:)?[A-Za-z]")
AUTOMATON_BYTES = 24 << 20
TELLING = 5  # letters
GROUP = 50  # patterns with gaps in one automaton

# What logs are full of. A piece of a pattern that stands in here is a poor thing to look for.
ORDINARY = b"""
2026-11-21 02:33:10.123456: I tensorflow/core/framework/local.cc:1] step 120/400  loss 0.1234  accuracy 0.9712
{"severity": "INFO", "message": "step 10 of 1000, val_loss: 0.5", "labels": {"task_name": "workerpool0-0"}}
Epoch 1/20 [====>....] - ETA: 4s - loss: 0.1234 - accuracy: 0.97 - val_loss: 0.2 is was are not found in to from
INFO:root:saving model checkpoint to gs://bucket/jobs/x/checkpoints file path directory folder training trial metric
metrics worker replica process step host device GPU TPU CPU CUDA memory limit batch image tensor value variable
network service system error code status name:Tesla machine instance node task project region zone resource
permission object record parameter model learning rate job data dataset 512 examples/s
"""


def expand(pattern: str, gap: str = GAP) -> str:
    """The RE2 source of a pattern, its shorthands written out."""
    out, at, inside = [], 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            out.append(pattern[at : at + 2])
            at += 2
            continue
        if inside:
            inside = char != "]"
            out.append(char)
        elif char == "[":
            inside = True
            out.append(char)
            if pattern[at + 1 : at + 2] in ("]", "^"):
                at += 1
                out.append(pattern[at])
        elif pattern.startswith(BETWEEN, at):
            out.append(gap)
            at += len(BETWEEN) - 1
        else:
            out.append({" ": SPACE, "'": QUOTES, '"': QUOTES}.get(char, char))
        at += 1
    start = START if BEGINS_A_WORD.match(pattern) else ""
    return f"(?im){start}" + "".join(out)


def options(never_capture: bool = False) -> re2.Options:
    """RE2's, for bytes: a log may hold anything."""
    chosen = re2.Options()
    chosen.never_capture = never_capture
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.max_mem = AUTOMATON_BYTES
    chosen.log_errors = False
    return chosen


@functools.cache
def exact(pattern: str) -> "re2._Regexp":
    """The compiled pattern, gaps bounded. Raises re2.error where the pattern isn't RE2's."""
    return re2.compile(expand(pattern).encode("latin-1"), options())


def any_of(patterns: list[str]) -> "re2._Regexp":
    """One automaton for all of them; finds where any begins, not which."""
    joined = "|".join(dict.fromkeys(f"(?:{expand(pattern, LONG_GAP)})" for pattern in patterns))
    # with groups to fill in, every match would go through RE2's slow engine as well
    return re2.compile(joined.encode("latin-1"), options(never_capture=True))


def telling(pattern: str) -> str | None:
    """A piece without gaps that every match holds and that ordinary lines don't, or None.

    Looking for it first is much cheaper than looking for the whole pattern, and loses nothing.
    """
    found = []
    for piece in pattern.split(BETWEEN):
        try:
            re.compile(piece)
        except re.error:  # the gap is inside parentheses: no piece of its own
            return None
        shortest = min(
            (len(re.sub(r"\\.|[^A-Za-z_]", "", way)) for way in re.split(r"[|()]+", piece) if way), default=0
        )
        if BETWEEN not in pattern or (shortest >= TELLING and not exact(piece).search(ORDINARY)):
            found.append((shortest, piece))
    return max(found)[1] if found else None


def automata(patterns: list[str]) -> "list[tuple[re2._Regexp, list[int]]]":
    """(automaton, the indices of the patterns that it stands for): few, and each small enough to be fast."""
    pieces = [telling(pattern) for pattern in patterns]
    rest = [index for index, piece in enumerate(pieces) if piece is None]
    groups = [[index for index, piece in enumerate(pieces) if piece is not None]]
    groups += [rest[start : start + GROUP] for start in range(0, len(rest), GROUP)]
    return [(any_of([pieces[index] or patterns[index] for index in group]), group) for group in groups if group]
