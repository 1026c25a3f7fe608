"""Where a job file must have lists and mappings: asked by what runs or rewrites a file without validating it first.

`launch validate` knows every field, and takes most of a second for it; this takes none. A field without a value counts
as left out.
"""

from collections.abc import Iterator
from typing import Any

from launch.errors import LaunchError
from launch.spec import JobFile
from launch.spec.document import Path, short, show

_CODE = {"args": [], "command": [], "packageUris": [], "env": [{}]}
_POOL = {"machineSpec": {}, "containerSpec": _CODE, "pythonPackageSpec": _CODE}
_JOB = {"workerPoolSpecs": [_POOL], "scheduling": {}, "baseOutputDirectory": {}}
_LIST = {"values": []}
_PARAMETER = {"doubleValueSpec": {}, "integerValueSpec": {}, "discreteValueSpec": _LIST, "categoricalValueSpec": _LIST}
_PARENTS = {"parentIntValues": _LIST, "parentDiscreteValues": _LIST, "parentCategoricalValues": _LIST}
_PARAMETER["conditionalParameterSpecs"] = [{**_PARENTS, "parameterSpec": _PARAMETER}]
_STUDY = {"metrics": [{}], "parameters": [_PARAMETER]}
TUNING = {"studySpec": _STUDY, "trialJobSpec": _JOB}


def check(job: JobFile) -> None:
    """Raise LaunchError with every place of the file that holds something else than the list or mapping it must."""
    found = list(wrong(job.data, TUNING if job.kind == "tuning" else _JOB))
    if found:
        doc = job.document
        lines = [
            f"{doc.file}:{mark.line}:{mark.column}: {show(path)}: {came}. Expected: a {expected}"
            for path, came, expected in found
            for mark in [doc.mark(path)]
        ]
        raise LaunchError("\n".join([*lines, f"All that is wrong: python -m launch validate {doc.file}"]))


def wrong(data: Any, shape: dict | list, path: Path = ()) -> Iterator[tuple[Path, str, str]]:
    """(where, what came, `list` or `mapping`) for everything in `data` that hasn't the shape."""
    if not isinstance(data, type(shape)):
        yield path, short(data), "list" if isinstance(shape, list) else "mapping"
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            if data.get(key) is not None:
                yield from wrong(data[key], inner, (*path, key))
    elif shape:
        for place, entry in enumerate(data):
            if entry is not None or shape[0] is not _POOL:  # an empty pool keeps the place of the next one
                yield from wrong(entry, shape[0], (*path, place))
