"""Is this environment right for its hardware? What TensorFlow was built for, against what is really here.

`check` reads files and asks three small libraries for their version: well under 0.2 s, and TensorFlow
is not imported, so a libtpu that would abort the process at import is told before it does.
`check(kind, deep=True)` opens every library and imports TensorFlow in a process of its own: what each
Dockerfile runs, and `make doctor`.
"""

import os
from pathlib import Path

from trainer.doctor import common, cuda, imports, tpu
from trainer.doctor.installed import TensorFlow, version_of
from trainer.doctor.result import Check

__all__ = ["KINDS", "Check", "check", "kind_here"]

KINDS = ("cpu", "gpu", "tpu")


def kind_here() -> str:
    """What this environment is meant for: what its Dockerfile says, else what is installed and plugged in."""
    said = os.environ.get("TRAINYARD_IMAGE", "")
    if said in KINDS:
        return said
    if version_of("tensorflow-tpu"):
        return "tpu"
    if version_of("nvidia-cudnn-cu12") or Path("/proc/driver/nvidia/version").exists():
        return "gpu"
    return "cpu"


def check(kind: str | None = None, deep: bool = False) -> list[Check]:
    """Every check for `kind` ("cpu", "gpu" or "tpu"; None: what is at hand), in the order to read them.

    Nothing is raised for what is wrong with the environment: that is a Check with status "failure".
    """
    kind = kind or kind_here()
    if kind not in KINDS:
        raise ValueError(f"kind is one of {', '.join(KINDS)}; received {kind!r}")
    tensorflow = TensorFlow.find()
    checks = common.checks(kind, tensorflow)
    if tensorflow is None:
        return checks
    if kind == "gpu":
        checks += cuda.checks(tensorflow, deep)
    if kind == "tpu":
        checks += tpu.checks(tensorflow)
    if deep:
        checks.append(imports.check(kind))
    return checks
