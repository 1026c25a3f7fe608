"""YAML's nodes into plain data, with the line and column of every key and value.

The rules for plain scalars are YAML 1.1's, as gcloud reads them (googlecloudsdk.core.yaml).
"""

import math
from collections.abc import Callable
from typing import Any

import yaml

from launch.spec import nodes
from launch.spec.document import Document, Finding, Mark, Path, UnreadableError
from launch.spec.nodes import Node

MAX_NUMBER = 64  # characters; YAML 1.1 reads 1:59:59:... as one number, slowly
_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null")}


def read(file: str, fill: Callable[[str, Mark], str]) -> Document:
    """Read one YAML file, or stdin for `-`; `fill` puts values into a scalar's text, given its place.

    Raises UnreadableError where there is no single mapping to be had.
    """
    root = nodes.read(file)
    document = Document(file)
    _Builder(document, fill).build(root, (), 0)
    if not isinstance(document.data, dict):
        kind = "nothing" if document.data is None else f"a {_kind(document.data)}"
        raise UnreadableError(f"{file}: the file holds {kind}. Expected: a mapping, as in configs/cpu.yaml")
    return document


class _Builder:
    """Turns nodes into data, aliases followed, and notes where each value stands."""

    def __init__(self, document: Document, fill: Callable[[str, Mark], str]):
        self.document = document
        self.fill = fill
        self.count = 0
        self.resolver = yaml.resolver.Resolver()
        self.constructor = yaml.constructor.SafeConstructor()

    def build(self, node: Node | None, path: Path, depth: int) -> Any:
        if node is None:
            return None
        self.count += 1
        if self.count > nodes.MAX_VALUES or depth > nodes.MAX_DEPTH:
            nodes.refuse_size(self.document.file, node.event)
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

    def _mapping(self, node: Node, path: Path, depth: int) -> dict:
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

    def _scalar(self, node: Node, path: Path) -> Any:
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

    def _note(self, node: Node, came: str, expected: str, fix: str = "") -> None:
        self.document.findings.append(Finding(self.document.file, node.mark, came, expected, fix))


def _kind(value: Any) -> str:
    """The YAML word for a value's type."""
    if isinstance(value, bool):
        return "true/false value"
    names = {str: "text", int: "number", float: "number", list: "list", dict: "mapping", type(None): "null"}
    return names.get(type(value), type(value).__name__)
