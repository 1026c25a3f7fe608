"""A YAML file as a tree of nodes, read so that no file can hurt.

PyYAML's events are taken one by one, so nesting costs no recursion in the parser; size, depth and the
number of values are bounded, aliases included (an alias that repeats an alias that repeats ... explodes).
"""

import dataclasses
import pathlib
import sys
from typing import Any

import yaml

from launch.spec.document import Mark, UnreadableError

MAX_BYTES = 256 * 1024
MAX_DEPTH = 40  # the API's own types nest about 12 deep
MAX_VALUES = 20_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(file: str) -> "Node | None":
    """The nodes of one YAML file, or of stdin for `-`; None for an empty one. Raises UnreadableError."""
    return _parse(_text(file), file)


def _text(file: str) -> str:
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with pathlib.Path(file).open("rb") as stream:
                raw = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableError(
            f"{file}: can't be read: {reason}. Expected: a job file such as configs/cpu.yaml"
        ) from error
    if len(raw) > MAX_BYTES:
        raise UnreadableError(f"{file}: larger than {MAX_BYTES // 1024} KiB. Expected: a job file of a few KiB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UnreadableError(
            f"{file}:{line}: byte {error.start} isn't UTF-8. Expected: a text file in UTF-8"
        ) from error


@dataclasses.dataclass
class Node:
    """A scalar, a list or a mapping as the parser met it; a mapping's children are key, value, key, value ..."""

    event: Any
    children: list["Node"] = dataclasses.field(default_factory=list)

    @property
    def mark(self) -> Mark:
        """Its first character."""
        return Mark(self.event.start_mark.line + 1, self.event.start_mark.column + 1)


def _parse(text: str, file: str) -> Node | None:
    """The tree of nodes; an alias is the node that it names."""
    root: Node | None = None
    anchors: dict[str, Node] = {}
    stack: list[Node] = []
    values = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, yaml.CollectionEndEvent):
                stack.pop()
                continue
            if not isinstance(event, yaml.NodeEvent):
                continue
            values += 1
            if values > MAX_VALUES or len(stack) > MAX_DEPTH:
                refuse_size(file, event)
            if isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchors:
                    line = event.start_mark.line + 1
                    raise UnreadableError(
                        f"{file}:{line}: *{event.anchor} names no anchor. Expected: &{event.anchor} before it"
                    )
                node = anchors[event.anchor]
            else:
                node = Node(event)
                if event.anchor:
                    anchors[event.anchor] = node
            if stack:
                stack[-1].children.append(node)
            elif root is not None:
                line = event.start_mark.line + 1
                raise UnreadableError(f"{file}:{line}: a second document begins. Expected: one job in one file")
            else:
                root = node
            if isinstance(event, yaml.CollectionStartEvent):
                stack.append(node)
    except yaml.YAMLError as error:
        raise UnreadableError(_syntax(error, file)) from error
    return root


def refuse_size(file: str, event: Any) -> None:
    """Raise UnreadableError: the file is larger than any job is, here."""
    line = event.start_mark.line + 1
    message = f"more than {MAX_VALUES} values, or nested deeper than {MAX_DEPTH}, aliases counted"
    raise UnreadableError(f"{file}:{line}: {message}. Expected: a job file of a few KiB")


def _syntax(error: yaml.YAMLError, file: str) -> str:
    mark = getattr(error, "problem_mark", None)
    place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it can't be parsed"
    context = getattr(error, "context", None)
    said = f"{context}, {problem}" if context else problem
    fix = ""
    if problem and ("tab" in problem or "\\t" in problem):
        fix = " Fix: indent with spaces."
    return f"{file}{place}: not YAML: {said}. Expected: YAML as in configs/cpu.yaml.{fix}"
