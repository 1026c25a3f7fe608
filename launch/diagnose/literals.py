"""What a log line must hold, letter for letter, for a pattern to fit it.

Most lines hold none of it, and looking for a few hundred words costs a fraction of looking for a few hundred patterns.
A clause is a set of words of which one must be there; a pattern has several clauses, and all of them must be met. Words
are folded as the log is: lower case, every digit a 0.
"""

import dataclasses
import re

FOLD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ123456789\t", b"abcdefghijklmnopqrstuvwxyz000000000 ")
WAYS = 48  # words that a clause may grow to
REMEMBERED = 5_000  # sets of words
SHORTEST = 2  # bytes of a word worth looking for
BETWEEN = " ... "
LETTERS = b"abcdefghijklmnopqrstuvwxyz"
# What logs are full of. A word that stands in here tells little.
ORDINARY = b"""
i tensorflow/core/framework/local.cc:0] step 000/000  loss 0.0000  accuracy 0.0000 device:gpu:0 name: nvidia
{"severity": "info", "message": "step 00 of 0000, val_loss: 0.0", "labels": {"task_name": "workerpool0-0", "json": 0}}
epoch 0/00 [====>....] - eta: 4s - loss: 0.0000 - accuracy: 0.00 - val_loss: 0.0 is was are not found in to from
info:root:saving model checkpoint to gs://bucket/jobs/x/checkpoints file path directory folder training trial metric
metrics worker replica process step host device gpu tpu cpu cuda memory limit batch image tensor value variable
network service system error code status name:tesla machine instance node task project region zone resource
permission object record parameter model learning rate job data dataset 000 examples/s https://storage.googleapis.com
package python keras numpy connection open get use act for sh read write command failed success warning function
"""
NUMBER = re.compile(r"(?:\\d|\[[\d-]+\]|\d)+")
Words = frozenset[bytes]
NOTHING = frozenset({b""})


@dataclasses.dataclass
class _Part:
    """A piece of a pattern: all that it can match, if that is a few words (`exact`), and what it must hold."""

    exact: Words | None
    clauses: list[Words]


ANYTHING = _Part(None, [])


class _Reader:
    """Reads one pattern from left to right."""

    def __init__(self, pattern: str):
        self.pattern, self.at = pattern, 0

    def alternation(self) -> _Part:
        """Up to the end, or to the parenthesis that closes."""
        ways = [self._sequence()]
        while self.pattern.startswith("|", self.at):
            self.at += 1
            ways.append(self._sequence())
        if len(ways) == 1:
            return ways[0]
        if all(way.exact is not None for way in ways):
            words = frozenset().union(*(way.exact for way in ways))
            if len(words) <= WAYS:
                return _Part(words, [])
        best = [max(_clauses(way), key=_worth, default=None) for way in ways]
        return _Part(None, [] if None in best else [frozenset().union(*best)])

    def _sequence(self) -> _Part:
        run, clauses, broken = NOTHING, [], False
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            part = self._repeated(self._atom())
            if part.exact is not None and len(run) * len(part.exact) <= WAYS:
                run = frozenset(left + right for left in run for right in part.exact)
                continue
            clauses += [run, *part.clauses]
            run, broken = (NOTHING if part.exact is None else part.exact), True
        return _Part(None if broken else run, _useful([*clauses, run]) if broken else [])

    def _atom(self) -> _Part:
        pattern, at = self.pattern, self.at
        if pattern.startswith(BETWEEN, at):
            self.at += len(BETWEEN) - 1  # the blank after it belongs to the gap as well
            self.at += 1
            return ANYTHING
        self.at += 1
        char = pattern[at]
        if char == "\\":
            self.at += 1
            return _escaped(pattern[at + 1])
        if char == "(":
            if pattern.startswith("?:", self.at):
                self.at += 2
            part = self.alternation()
            self.at += 1
            return part
        if char == "[":
            return self._class()
        if char in "^$":
            return _Part(NOTHING, [])
        return ANYTHING if char in " '\"." else _Part(frozenset({_folded(char)}), [])

    def _class(self) -> _Part:
        end = self.pattern.index("]", self.at + 1)
        inside, self.at = self.pattern[self.at : end], end + 1
        if inside.startswith("^") or "\\" in inside or "-" in inside[1:-1]:
            return _Part(frozenset({b"0"}), []) if inside in ("0-9", "1-9") else ANYTHING
        return _Part(frozenset(map(_folded, inside)), [])

    def _repeated(self, part: _Part) -> _Part:
        sign = self.pattern[self.at : self.at + 1]
        if not sign or sign not in "?*+{":
            return part
        self.at = self.pattern.index("}", self.at) + 1 if sign == "{" else self.at + 1
        if self.pattern.startswith("?", self.at):
            self.at += 1
        if sign == "?" and part.exact is not None:
            return _Part(part.exact | NOTHING, [])
        return _Part(None, _clauses(part)) if sign == "+" else ANYTHING


def _folded(char: str) -> bytes:
    return char.encode("latin-1", "replace").translate(FOLD)


def _escaped(char: str) -> _Part:
    if char in "bB":
        return _Part(NOTHING, [])
    if char == "d":
        return _Part(frozenset({b"0"}), [])
    return ANYTHING if char.isalnum() else _Part(frozenset({_folded(char)}), [])


def _useful(clauses: list[Words]) -> list[Words]:
    return [clause for clause in clauses if min(map(len, clause)) >= SHORTEST]


def _clauses(part: _Part) -> list[Words]:
    return part.clauses if part.exact is None else _useful([part.exact])


def _weight(word: bytes) -> float:
    letters = sum(word.count(letter) for letter in LETTERS)
    return letters / 10 if word in ORDINARY else letters


def _worth(clause: Words) -> tuple[float, int]:
    """How seldom a line meets the clause, more is less often."""
    return min(map(_weight, clause)), -len(clause)


def clauses(pattern: str) -> list[Words]:
    """The clauses of a pattern of causes.yaml (see patterns.py for its language); empty where it holds no word."""
    return _clauses(_Reader(pattern).alternation())


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


class Index:
    """Which of many patterns can fit a line that holds some of `words`."""

    def __init__(self, patterns: list[str]):
        needed = [clauses(pattern) for pattern in patterns]
        self.words = sorted(frozenset().union(*(clause for each in needed for clause in each)))
        number = {word: at for at, word in enumerate(self.words)}
        self.masks = [[sum(1 << number[word] for word in clause) for clause in each] for each in needed]
        self.always = [at for at, each in enumerate(needed) if not each]
        self.by_word: list[list[int]] = [[] for _ in self.words]
        for at, each in enumerate(needed):
            for word in max(each, key=_worth, default=()):
                self.by_word[number[word]].append(at)
        self.seen: dict[tuple[int, ...], tuple[int, ...]] = {}

    def possible(self, words: tuple[int, ...]) -> tuple[int, ...]:
        """The patterns whose clauses are all met by these words, which are numbers in `self.words`."""
        if (known := self.seen.get(words)) is not None:
            return known
        mask = 0
        for word in words:
            mask |= 1 << word
        near = {at for word in words for at in self.by_word[word]}
        fit = tuple(sorted([*self.always, *(at for at in near if all(mask & each for each in self.masks[at]))]))
        if len(self.seen) >= REMEMBERED:
            self.seen.clear()
        self.seen[words] = fit
        return fit
