"""What the API's types say of a field: what it takes, where it belongs, whether a request must or may carry it.

Which fields are required or only answered (state, trials) is read from the docstrings that Google generates
from the API's field annotations.
"""

import difflib
import functools
import re
import sys
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

WHOLE = {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64}
REAL = {FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE}
_UNITS = {"ms": 0.001, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "hr": 3600, "d": 86400, "w": 604800}


def wanted(field: FieldDescriptor) -> str:
    """What a value of the field looks like, for a finding."""
    if field.enum_type is not None:
        return f"one of {', '.join(_names(field))}"
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Duration":
            return "a time in seconds with the unit, such as 3600s"
        return f"a mapping ({field.message_type.name})"
    if field.cpp_type in WHOLE:
        return "a whole number, without quotes"
    if field.cpp_type in REAL:
        return "a number, without quotes"
    return "true or false" if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL else "text"


def _names(field: FieldDescriptor) -> list[str]:
    return [value.name for value in field.enum_type.values if not value.name.endswith("_UNSPECIFIED")]


def fix(field: FieldDescriptor, value: Any) -> str:
    """What to write instead, where it can be told."""
    if field.enum_type is not None:
        upper = re.sub(r"[\s-]+", "_", str(value).strip()).upper()
        near = difflib.get_close_matches(upper, _names(field), n=1)
        return f"write {near[0]}" if near else ""
    if field.message_type is not None and field.message_type.name == "Duration":
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]*)", str(value).strip().lower())
        unit = match and re.sub(r"(second|minute|hour|day|week)s?$", lambda m: m[1][0], match[2])
        if match and (unit or "s") in _UNITS:
            return f"write {float(match[1]) * _UNITS[unit or 's']:g}s".replace("e+", "e")
        return ""
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING and not isinstance(value, dict | list | None):
        text = str(value).lower() if isinstance(value, bool) else str(value)[:60]
        return f'write "{text}" in quotes'
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value.strip()) and len(value) < 20:
        return f"write {value.strip()}"
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL and str(value).lower() in ("true", "false"):
        return f"write {str(value).lower()}"
    return ""


@functools.cache
def places(root: Descriptor) -> dict[str, list[str]]:
    """field -> where in the file it belongs, such as `workerPoolSpecs[].machineSpec`."""
    found: dict[str, list[str]] = {}
    todo, seen = [(root, "")], set()
    while todo:
        kind, place = todo.pop(0)
        if kind.full_name in seen or kind.full_name.startswith("google.protobuf."):
            continue
        seen.add(kind.full_name)
        said = notes(kind.full_name)
        for field in kind.fields:
            if said.get(field.name) == "Output only":
                continue
            found.setdefault(field.json_name, []).append(place)
            if field.message_type is not None:
                step = f"{place}.{field.json_name}".lstrip(".") + ("[]" if field.is_repeated else "")
                todo.append((field.message_type, step))
    return found


@functools.cache
def notes(full_name: str) -> dict[str, str]:
    """field -> `Required` or `Output only`, where the API's documentation of the field begins so."""
    top, *nested = full_name.removeprefix("google.cloud.aiplatform.v1.").split(".")
    for name, module in list(sys.modules.items()):
        if name.startswith("google.cloud.aiplatform_v1.types.") and hasattr(module, top):
            cls = getattr(module, top)
            for part in nested:
                cls = getattr(cls, part, None)
            pattern = r"^\s+(\w+) \([^\n]*\):\n\s+(Required|Output\s+only)\b"
            found = re.findall(pattern, getattr(cls, "__doc__", None) or "", re.MULTILINE)
            return {field: " ".join(note.split()) for field, note in found}
    return {}
