"""A job file against the API's own types, google-cloud-aiplatform's protobuf classes: nothing here is a copy of them.

gcloud sends unknown and misspelt fields on without a word, and the types' own parser stops at the first one.
So the file is walked along the types' descriptors, every value is given to that parser, and its place is kept.
"""

import difflib
from typing import Any

from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from launch import spec
from launch.spec import api
from launch.spec.document import Document, Path, short, show
from launch.validate import fields

_BROKEN = (json_format.Error, ValueError, TypeError, AttributeError, OverflowError)
# Given by `submit` (and by gcloud's flags), so a file may leave it out.
_GIVEN_LATER = {"displayName"}
_ELSEWHERE = {
    "displayName": "submit names the job; leave it out",
    "labels": "submit sets labels (--label KEY=VALUE); leave it out",
    "jobSpec": "the file is the inside of jobSpec: move its fields to the left, and leave jobSpec out",
    "encryptionSpec": "a key is given to gcloud (--kms-key); leave it out",
}


def check(job: spec.JobFile) -> None:
    """Note every place where the API's types, or their documentation, refuse the file."""
    custom, tuning = api.types()
    message = tuning if job.kind == "tuning" else custom
    before = len(job.document.findings)
    _Walk(job.document, message.DESCRIPTOR).message(message.DESCRIPTOR, job.data, ())
    if len(job.document.findings) > before:
        return
    try:  # the last word is the types' own
        json_format.ParseDict(job.data, message())
    except _BROKEN as error:
        job.document.find((), f"the file, which the API's types refuse: {error}", f"a {message.DESCRIPTOR.name}")


class _Walk:
    """Goes through a file's data along the descriptors of `root`."""

    def __init__(self, document: Document, root: Descriptor):
        self.document = document
        self.root = root

    def message(self, kind: Descriptor, data: Any, path: Path) -> None:
        if not isinstance(data, dict):
            names = ", ".join(field.json_name for field in kind.fields[:8])
            self.document.find(path, f"{show(path)}: {short(data)}", f"a mapping with fields such as {names}")
            return
        known = {field.json_name: field for field in kind.fields}
        notes = fields.notes(kind.full_name)
        came = set()
        for key, value in data.items():
            field = known.get(key) or self._unknown(kind, key, (*path, key))
            if field is None:
                continue
            came.add(field.json_name)
            if notes.get(field.name) == "Output only":
                expected = "only fields that a request may set; the API answers with this one"
                self.document.find((*path, key), f"{show((*path, key))}", expected, "remove it", key=True)
                continue
            self._field(field, value, (*path, key))
        self._together(kind, data, path, came)
        for name, note in notes.items():
            field = kind.fields_by_name.get(name)
            if note == "Required" and field is not None and field.json_name not in came | _GIVEN_LATER:
                text = f"{show(path)} without {field.json_name}"
                self.document.find(path, text, f"{field.json_name}, which is required", key=bool(path))

    def _unknown(self, kind: Descriptor, key: str, path: Path) -> FieldDescriptor | None:
        """Note a key that isn't a field of `kind`; the field that was probably meant, if any."""
        known = {field.json_name: field for field in kind.fields}
        if key in kind.fields_by_name:
            field = kind.fields_by_name[key]
            expected = f"{field.json_name}: gcloud takes camelCase only"
            self.document.find(path, f"{show(path)}", expected, f"write {field.json_name}", key=True)
            return field
        lower = {name.lower(): name for name in known}
        near = difflib.get_close_matches(key.replace("_", "").lower(), lower, n=1, cutoff=0.75)
        where = [place for place in fields.places(self.root).get(key, ()) if place]
        if key in _ELSEWHERE and not path[:-1]:
            self.document.find(
                path, f"{key}, which isn't a field of a {kind.name}", "its own fields only", _ELSEWHERE[key], key=True
            )
        elif near and not where:
            name = lower[near[0]]
            expected = f"{name}"
            self.document.find(path, f"{show(path)}: no such field of {kind.name}", expected, f"write {name}", key=True)
            return known[name]
        else:
            expected = f"one of {', '.join(sorted(known))}"
            fix = f"{key} belongs in {where[0]}" if where else ""
            self.document.find(path, f"{show(path)}: no such field of {kind.name}", expected, fix, key=True)
        return None

    def _together(self, kind: Descriptor, data: dict, path: Path, came: set[str]) -> None:
        for group in kind.oneofs:
            given = [field.json_name for field in group.fields if field.json_name in came]
            real = len(group.fields) > 1
            if real and len(given) > 1:
                text = f"{show(path)} with {' and '.join(given)}"
                names = ", ".join(field.json_name for field in group.fields)
                key = given[-1] if given[-1] in data else None
                place = (*path, key) if key else path
                self.document.find(place, text, f"one of {names}", "keep one", key=True)

    def _field(self, field: FieldDescriptor, value: Any, path: Path) -> None:
        if value is None:
            came = f"{show(path)} without a value"
            self.document.find(path, came, fields.wanted(field), "give it one or remove the line")
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            self._map(field, value, path)
        elif field.is_repeated:
            if not isinstance(value, list):
                came = f"{show(path)}: {short(value)}"
                self.document.find(path, came, f"a list of {fields.wanted(field)}", "begin each entry with a dash")
                return
            for place, entry in enumerate(value):
                self._one(field, entry, (*path, place))
        else:
            self._one(field, value, path)

    def _one(self, field: FieldDescriptor, value: Any, path: Path) -> None:
        kind = field.message_type
        if kind is not None and not kind.full_name.startswith("google.protobuf."):
            self.message(kind, {} if value is None and isinstance(path[-1], int) else value, path)
        else:
            self._leaf(field, value, path)

    def _map(self, field: FieldDescriptor, value: Any, path: Path) -> None:
        if not isinstance(value, dict):
            self.document.find(path, f"{show(path)}: {short(value)}", "a mapping of names to texts")
            return
        for key, entry in value.items():
            if not isinstance(entry, str):
                came = f"{show((*path, key))}: {short(entry)}"
                self.document.find((*path, key), came, "text", f'write "{entry}" in quotes')

    def _leaf(self, field: FieldDescriptor, value: Any, path: Path) -> None:
        trial = message_factory.GetMessageClass(field.containing_type)()
        given = [value] if field.is_repeated else value
        quoted = isinstance(value, str) and field.cpp_type in fields.WHOLE | fields.REAL
        if quoted and field.cpp_type in fields.REAL and path in self.document.plain:
            quoted = False  # 1e-4 is text to YAML 1.1, and a number to everybody else
        if field.enum_type is not None and not isinstance(value, str):
            quoted = True
        try:
            json_format.ParseDict({field.json_name: given}, trial)
        except _BROKEN:
            quoted = True
        if quoted:
            came = f"{show(path)}: {short(value)}"
            self.document.find(path, came, fields.wanted(field), fields.fix(field, value))
