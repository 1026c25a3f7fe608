"""Lines are compared without their numbers, and these are the numbers that count all the same.

A log of a hundred megabytes has a few thousand different lines, once "step 120" and "step 121" are one. But a pattern
may want a number of its own, such as 403, and a line that holds it shows what its sisters don't.
"""

import re

# How a line is folded: lower case, every digit a 0, a tab and a NUL a blank.
FOLD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789\t\0", b"abcdefghijklmnopqrstuvwxyz000000000  ")
DIGITS = bytes(byte if 48 <= byte <= 57 else 32 for byte in range(256))
NUMBER = re.compile(r"(?:\\d|\[[\d-]+\]|\d)+")
KEPT = re.compile(r"\\x[0-9a-f]{2}|\\.|\{[\d,]+\}|[1-9]")


def blind(source: str) -> str:
    """A regular expression that fits a folded line wherever `source` fits the line itself, whatever its numbers."""
    return KEPT.sub(lambda found: "0" if len(found[0]) == 1 else found[0], source)


def of_line(raw: bytes) -> list[bytes]:
    """All numbers that stand in a line."""
    return raw.translate(DIGITS).split()


def numbers(pattern: str) -> list[str]:
    """The numbers that the pattern tells from others, as it writes them: `403`, `5\\d\\d`, but not `\\d+` or `v1`."""
    bare = re.sub(r"\\[^d]|\{[\d,]+\}|(?<!\\)[A-Za-z]\d+", " ", pattern)
    return [found for found in NUMBER.findall(bare) if re.search(r"\d", found.replace(r"\d", ""))]


def is_telling(number: str) -> bool:
    """Whether few lines hold this number of `numbers` by chance: three digits or more, or a 0 on its own."""
    return number == "0" or len(re.findall(r"\\d|\[[^]]*\]|\d", number)) >= 3


def written_out(numbers: set[str]) -> frozenset[bytes]:
    """All numbers up to 999 that a telling one of `numbers` stands for: `5\\d\\d` for 500 to 599."""
    telling = re.compile("|".join(filter(is_telling, numbers)))
    return frozenset(str(number).encode() for number in range(1000) if telling.fullmatch(str(number)))
