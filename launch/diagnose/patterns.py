"""How a pattern of causes.yaml becomes RE2.

A pattern is a regular expression without upper or lower case, with three shorthands that keep it readable and
make it fit other wordings of the same thing:
    a space  any run of white space, a line break and its indentation included, also as JSON escapes it
    ' or "   any quotes, escaped or not, or none
    ...      (between spaces) whatever stands between two words of a line or its indented next one, up to 240 bytes, or
             nothing
A pattern that begins with a letter begins at a word's start. RE2 has no look-around and no back-references, and in
return no input makes it slow (https://github.com/google/re2/wiki/Syntax).
"""

import functools
import re

import re2

from launch.diagnose import numbers

BETWEEN = " ... "
SPACE = r"(?:(?:[\s>|]|\\[nrt])+)"  # a group, so that a ? after it makes it optional
QUOTES = r"(?:(?:[\\\x22\x27\x60]|\xe2\x80[\x98\x99\x9c\x9d]|\\u0027|&#39;|&quot;|\\u201[89cd])*)"
BREAK = r"(?:[^\w\n]|\n +)"  # a gap may also go on in an indented line
GAP = BREAK + r"(?:.{0,240}" + BREAK + ")?"
LONG_GAP = BREAK + r"(?:.*" + BREAK + ")?"  # where many patterns are one a bound would cost a state for each byte
START = r"(?:\b|\\[nrt])"
BEGINS_A_WORD = re.compile(r"\(*(?:\?:)?[A-Za-z]")
EDGES = {"^": r"(?:^|[\x22\x27]|\\[nrt])", "$": r"(?:$|\r|[\x22\x27]|\\[nrt])"}  # of a message inside a JSON line
EXACT_BYTES = 2 << 20
MANY_BYTES = 2 << 20
BLIND_BYTES = 1 << 20  # of each pattern, for the states that it has met


def expand(pattern: str, gap: str = GAP, edges: dict[str, str] | None = None) -> str:
    """The RE2 source of a pattern, its shorthands written out."""
    written = {" ": SPACE, "'": QUOTES, '"': QUOTES, **(edges or {})}
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
            out.append(written.get(char, char))
        at += 1
    start = START if BEGINS_A_WORD.match(pattern) else ""
    return f"(?im){start}" + "".join(out)


def options(max_bytes: int = EXACT_BYTES, *, never_capture: bool = False) -> re2.Options:
    """RE2's, for bytes: a log may hold anything."""
    chosen = re2.Options()
    chosen.never_capture = never_capture
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.max_mem = max_bytes
    chosen.log_errors = False
    return chosen


@functools.cache
def exact(pattern: str) -> "re2._Regexp":
    """The compiled pattern, gaps bounded. Raises re2.error where the pattern isn't RE2's."""
    return re2.compile(expand(pattern).encode("latin-1"), options())


def any_of(patterns: list[str]) -> "re2._Regexp":
    """One automaton for all of them: whether any fits a line, be it plain or JSON. It may say yes too often."""
    joined = "|".join(dict.fromkeys(f"(?:{expand(pattern, LONG_GAP, EDGES)})" for pattern in patterns))
    # with groups to fill in, every match would go through RE2's slow engine as well
    return re2.compile(joined.encode("latin-1"), options(MANY_BYTES, never_capture=True))


def possible(patterns: list[str]) -> "re2.Filter":
    """Which of the patterns can fit a folded line (numbers.py), all at once: RE2 looks for their words first."""
    found = re2.Filter()
    for pattern in patterns:
        source = numbers.blind(expand(pattern, LONG_GAP, EDGES))
        found.Add(source.encode("latin-1"), options(BLIND_BYTES))
    found.Compile()
    return found
