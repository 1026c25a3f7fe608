"""YAML with the line and column of every key and value, read so that no file can hurt.

PyYAML's events are taken one by one, so nesting costs no recursion in the parser; size, depth and the
number of values are bounded, aliases included (an alias that repeats an alias that repeats ... explodes).
The rules for plain scalars are YAML 1.1's, as gcloud reads them (googlecloudsdk.core.yaml).
"""

import dataclasses
import math
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import yaml

from launch.document import Document, Finding, Mark, Path, UnreadableError

MAX_BYTES = 256 * 1024
MAX_DEPTH = 40  # the API's own types nest about 12 deep
MAX_VALUES = 20_000
MAX_NUMBER = 64  # characters; YAML 1.1 reads 1:59:59:... as one number, slowly
_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null")}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(file: str, fill: Callable[[str, Mark], str]) -> Document:
    """Read one YAML file, or stdin for `-`; `fill` puts values into a scalar's text, given its place.

    Raises UnreadableError where there is no single mapping to be had.
    """
    text = _text(file)
    root = _parse(text, file)
    document = Document(file)
    _Builder(document, fill).build(root, (), 0)
    if not isinstance(document.data, dict):
        kind = "nothing" if document.data is None else f"a {_kind(document.data)}"
        raise UnreadableError(f"{file}: the file holds {kind}. Expected: a mapping, as in configs/cpu.yaml")
    return document


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
class _Node:
    event: Any
    children: list["_Node"] = dataclasses.field(default_factory=list)

    @property
    def mark(self) -> Mark:
        return Mark(self.event.start_mark.line + 1, self.event.start_mark.column + 1)


def _parse(text: str, file: str) -> _Node | None:
    """The tree of nodes; an alias is the node that it names."""
    root: _Node | None = None
    anchors: dict[str, _Node] = {}
    stack: list[_Node] = []
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
                _refuse_size(file, event)
            if isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchors:
                    line = event.start_mark.line + 1
                    raise UnreadableError(
                        f"{file}:{line}: *{event.anchor} names no anchor. Expected: &{event.anchor} before it"
                    )
                node = anchors[event.anchor]
            else:
                node = _Node(event)
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


def _refuse_size(file: str, event: Any) -> None:
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


class _Builder:
    """Turns nodes into data, aliases followed, and notes where each value stands."""

    def __init__(self, document: Document, fill: Callable[[str, Mark], str]):
        self.document = document
        self.fill = fill
        self.count = 0
        self.resolver = yaml.resolver.Resolver()
        self.constructor = yaml.constructor.SafeConstructor()

    def build(self, node: _Node | None, path: Path, depth: int) -> Any:
        if node is None:
            return None
        self.count += 1
        if self.count > MAX_VALUES or depth > MAX_DEPTH:
            _refuse_size(self.document.file, node.event)
        self.document.values[path] = node.mark
        if isinstance(node.event, yaml.ScalarEvent):
            data = self._scalar(node, path)
        elif isinstance(node.event, yaml.SequenceStartEvent):
            data = [self.build(child, (*path, place), depth + 1) for place, child in enumerate(node.children)]
        else:
            data = self._mapping(node, path, depth)
        if not path:
            self.document.data = data
        return data

    def _mapping(self, node: _Node, path: Path, depth: int) -> dict:
        data: dict[str, Any] = {}
        for key_node, value_node in zip(node.children[::2], node.children[1::2], strict=True):
            if not isinstance(key_node.event, yaml.ScalarEvent):
                self._note(key_node, "a list or mapping as a key", "a field's name")
                continue
            key = key_node.event.value
            if key == "<<":
                self._note(key_node, "the merge key <<", "fields written out, or an alias for a whole value")
                continue
            if key in data:
                first = self.document.keys[(*path, key)]
                self._note(key_node, f"{key} a second time (first in line {first.line})", "each key once", "remove one")
                continue
            self.document.keys[(*path, key)] = key_node.mark
            data[key] = self.build(value_node, (*path, key), depth + 1)
        return data

    def _scalar(self, node: _Node, path: Path) -> Any:
        event = node.event
        text = self.fill(event.value, node.mark)
        plain = not event.style  # None or "", by parser
        if plain:
            self.document.plain.add(path)
        tag = event.tag
        if tag is None or tag == "!":
            quoted = not plain or tag == "!"
            tag = self.resolver.resolve(yaml.ScalarNode, text, (not quoted, quoted))
        kind = _TAGS.get(tag)
        if kind is None:
            what = "a date" if tag.endswith("timestamp") else f"a value of the YAML type {tag}"
            self._note(node, f"{event.value!r:.60}, {what}", "text, a number or true/false", "put it in quotes")
            return text
        try:
            if kind in ("int", "float") and len(text) > MAX_NUMBER:
                raise ValueError(text)
            return getattr(self, f"_{kind}")(text)
        except (ValueError, ArithmeticError, KeyError, IndexError):
            self._note(node, f"{event.value!r:.60} as {kind}", f"a value of the type {kind}", "put it in quotes")
            return text

    def _str(self, text: str) -> str:
        return text

    def _null(self, text: str) -> None:
        return None

    def _bool(self, text: str) -> bool:
        return self.constructor.construct_yaml_bool(yaml.ScalarNode("", text))

    def _int(self, text: str) -> int:
        return self.constructor.construct_yaml_int(yaml.ScalarNode("", text))

    def _float(self, text: str) -> float:
        value = self.constructor.construct_yaml_float(yaml.ScalarNode("", text))
        if not math.isfinite(value):
            raise ValueError(text)
        return value

    def _note(self, node: _Node, came: str, expected: str, fix: str = "") -> None:
        self.document.findings.append(Finding(self.document.file, node.mark, came, expected, fix))


def _kind(value: Any) -> str:
    """The YAML word for a value's type."""
    if isinstance(value, bool):
        return "true/false value"
    names = {str: "text", int: "number", float: "number", list: "list", dict: "mapping", type(None): "null"}
    return names.get(type(value), type(value).__name__)
