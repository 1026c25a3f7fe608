"""The values of a study that the trainer is asked about: the ends of each range, and each value of a list."""

from collections.abc import Iterator
from typing import Any

from launch.spec import JobFile
from launch.spec.document import Path, dig


def flags(job: JobFile) -> Iterator[tuple[Path, str]]:
    """(place, `--parameter=value`) for the ends and the values of every parameter, conditional ones too."""
    todo = [(("studySpec", "parameters"), dig(job.study, "parameters", kind=list, default=[]))]
    while todo:
        base, entries = todo.pop()
        for place, entry in enumerate(entries):
            path = (*base, place)
            if base[-1] == "conditionalParameterSpecs":
                entry, path = dig(entry, "parameterSpec", kind=dict, default={}), (*path, "parameterSpec")
            name = dig(entry, "parameterId", kind=str, default="")
            if not name:
                continue
            for value_path, value in _values(entry):
                yield (*path, *value_path), f"--{name}={value}"
            children = dig(entry, "conditionalParameterSpecs", kind=list, default=[])
            todo.append(((*path, "conditionalParameterSpecs"), children))


def _values(entry: dict) -> Iterator[tuple[Path, Any]]:
    for kind in ("doubleValueSpec", "integerValueSpec"):
        for end in ("minValue", "maxValue"):
            value = dig(entry, kind, end, kind=object, default=None)
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield (kind, end), value
    for kind in ("discreteValueSpec", "categoricalValueSpec"):
        for place, value in enumerate(dig(entry, kind, "values", kind=list, default=[])):
            if isinstance(value, int | float | str) and not isinstance(value, bool):
                yield (kind, "values", place), value
