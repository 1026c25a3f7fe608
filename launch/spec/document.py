"""A job file's data, and the line and column of every key and value in it; what is wrong there is a Finding."""

import dataclasses
from typing import Any

from launch.errors import LaunchError

MAX_FINDINGS = 200  # of one file: nobody reads more, and suggestions take time

Path = tuple[str | int, ...]


class UnreadableError(LaunchError):
    """The file can't be taken as a job file at all: exit code 2."""


class EnoughError(Exception):
    """A file has more findings than anybody reads."""


@dataclasses.dataclass(frozen=True, order=True)
class Mark:
    """A place in the file, both counted from 1."""

    line: int
    column: int


@dataclasses.dataclass(frozen=True)
class Finding:
    """What is wrong in one place of a job file."""

    file: str
    mark: Mark
    came: str
    expected: str
    fix: str = ""

    def __str__(self) -> str:
        text = f"{self.file}:{self.mark.line}:{self.mark.column}: {self.came}\n    Expected: {self.expected}"
        return text + (f"\n    Fix: {self.fix}" if self.fix else "")

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON shows it."""
        return {
            "file": self.file,
            "line": self.mark.line,
            "column": self.mark.column,
            "came": self.came,
            "expected": self.expected,
            "fix": self.fix,
        }


@dataclasses.dataclass
class Document:
    """The data of a file, and where each piece of it stands."""

    file: str
    data: Any = None
    values: dict[Path, Mark] = dataclasses.field(default_factory=dict)
    keys: dict[Path, Mark] = dataclasses.field(default_factory=dict)
    plain: set[Path] = dataclasses.field(default_factory=set)  # scalars written without quotes
    findings: list[Finding] = dataclasses.field(default_factory=list)

    def mark(self, path: Path, key: bool = False) -> Mark:
        """Where the value of `path` stands (or its key), else the nearest thing around it."""
        places = self.keys if key else self.values
        while path and path not in places:
            path = path[:-1]
        return places.get(path) or self.values.get(path) or Mark(1, 1)

    def find(self, path: Path, came: str, expected: str, fix: str = "", key: bool = False) -> None:
        """Note a finding at `path`. Raises EnoughError at MAX_FINDINGS of them."""
        if len(self.findings) >= MAX_FINDINGS:
            raise EnoughError
        self.findings.append(Finding(self.file, self.mark(path, key), came, expected, fix))


def show(path: Path) -> str:
    """`("workerPoolSpecs", 0, "args")` -> `workerPoolSpecs[0].args`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.lstrip(".") or "the file"


def dig(data: Any, *path: str | int, kind: type, default: Any) -> Any:
    """The value at `path` if it is there and of the type `kind` (true isn't a number), else `default`."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return default
    if isinstance(data, bool) and kind is not bool:
        return default
    return data if isinstance(data, kind) else default


def short(value: Any) -> str:
    """What a value is, for a person: `the number 5`, `a list`, `the text '1h'`."""
    if isinstance(value, dict | list):
        return f"a {'mapping' if isinstance(value, dict) else 'list'}"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"the truth value {str(value).lower()}"
    return f"the text {value[:60]!r}" if isinstance(value, str) else f"the number {str(value)[:60]}"
