"""What every kind of image needs: Python, glibc, the processor, one TensorFlow and the packages it asks for."""

import platform
import re
import sys
from pathlib import Path

from trainer.doctor.installed import TensorFlow, version_of, within
from trainer.doctor.result import Check

PYTHON = ((3, 11), (3, 13))  # as pyproject.toml's requires-python; a test compares them
# The Linux x86-64 wheels are compiled with AVX and abort without it: tensorflow.org/install/pip.
INSTRUCTIONS = ("sse4_2", "avx")
# In the wheel's metadata and imported by nothing in the wheel; the images leave it out.
UNUSED = ("libclang",)
# What to install, by kind, where there is no fitting TensorFlow.
PACKAGE = {"cpu": "tensorflow-cpu", "gpu": "tensorflow[and-cuda]", "tpu": "tensorflow-tpu"}


def checks(kind: str, tensorflow: TensorFlow | None) -> list[Check]:
    """Python, then TensorFlow, and what it rests on; only the first two where there is no TensorFlow."""
    found = [_python(), _tensorflow(kind, tensorflow)]
    if tensorflow is not None:
        found += [*_platform(tensorflow), *_processor(Path("/proc/cpuinfo")), *_packages(tensorflow)]
    return found


def _python() -> Check:
    oldest, newest = PYTHON
    status = "ok" if oldest <= sys.version_info[:2] <= newest else "failure"
    wanted = f"{oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}"
    fix = f"take a base image with Python {wanted}, such as python:3.12-slim" if status == "failure" else ""
    return Check("Python", status, platform.python_version(), wanted, fix)


def _tensorflow(kind: str, tensorflow: TensorFlow | None) -> Check:
    """One TensorFlow, and of the build that fits `kind`."""
    install = f"pip uninstall -y tensorflow tensorflow-cpu tensorflow-tpu; pip install -r requirements/{kind}.lock"
    if tensorflow is None:
        return Check(
            "TensorFlow", "failure", "not installed", PACKAGE[kind], f"pip install -r requirements/{kind}.lock"
        )
    cuda = bool(tensorflow.build.get("is_cuda_build"))
    tpu = tensorflow.name.endswith("-tpu")
    built = "for TPU" if tpu else f"for CUDA {tensorflow.build.get('cuda_version')}" if cuda else "for the CPU only"
    found = f"{tensorflow.name} {tensorflow.version}, built {built}"
    if tensorflow.others:
        several = " and ".join((tensorflow.name, *tensorflow.others))
        return Check("TensorFlow", "failure", several, "one: they overwrite each other's files", install)
    if not tensorflow.build:
        return Check("TensorFlow", "failure", f"{found}, with files missing", PACKAGE[kind], install)
    fits = {"cpu": not tpu, "gpu": cuda, "tpu": tpu}[kind]
    return Check("TensorFlow", "ok" if fits else "failure", found, PACKAGE[kind], "" if fits else install)


def _platform(tensorflow: TensorFlow) -> list[Check]:
    """glibc and the machine, against the tag of the wheel (manylinux_2_27_x86_64); nothing off Linux."""
    tag = re.search(r"manylinux_(\d+)_(\d+)_(\w+)", " ".join(tensorflow.tags))
    if tag is None or sys.platform != "linux":
        return []
    library, version = platform.libc_ver()
    wanted = f"glibc {tag[1]}.{tag[2]} or newer"
    numbers = tuple(int(part) for part in version.split(".")[:2]) if library == "glibc" else (0, 0)
    fits = numbers >= (int(tag[1]), int(tag[2]))
    fix = "" if fits else "take a base image of a newer Debian or Ubuntu; Alpine (musl) does not run TensorFlow"
    machine = platform.machine()
    same = machine == tag[3]
    turn = "" if same else "build with --platform=linux/amd64, as `make build-cpu` does"
    return [
        Check("glibc", "ok" if fits else "failure", f"{library or 'no glibc'} {version}".strip(), wanted, fix),
        Check("machine", "ok" if same else "failure", machine, tag[3], turn),
    ]


def _processor(cpuinfo: Path) -> list[Check]:
    """The instructions that the x86-64 wheels can't run without; nothing on other machines."""
    if platform.machine() != "x86_64" or not cpuinfo.is_file():
        return []
    flags = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(), re.MULTILINE)
    if flags is None:
        return [Check("CPU instructions", "unknown", f"{cpuinfo} lists none", " ".join(INSTRUCTIONS))]
    missing = [name for name in INSTRUCTIONS if name not in flags[1].split()]
    if not missing:
        return [Check("CPU instructions", "ok", " ".join(INSTRUCTIONS), " ".join(INSTRUCTIONS))]
    fix = "run on a machine whose CPU has them; an emulated or very old one has not"
    return [Check("CPU instructions", "failure", f"no {', '.join(missing)}", " ".join(INSTRUCTIONS), fix)]


def _packages(tensorflow: TensorFlow) -> list[Check]:
    """Keras, and in one line all else that TensorFlow's own metadata asks for."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return [Check("packages", "failure", "packaging is missing", "installed", "pip install packaging")]
    keras, wrong, counted = version_of("keras"), [], 0
    for line in tensorflow.requires:
        requirement = Requirement(line)
        if requirement.name in ("keras", *UNUSED) or (
            requirement.marker and not requirement.marker.evaluate({"extra": ""})
        ):
            continue
        counted += 1
        version = version_of(requirement.name)
        if not version or not within(version, str(requirement.specifier)):
            wrong.append(f"{requirement.name} {version or 'missing'} (wanted {requirement.specifier})")
    wanted = tensorflow.wants("keras")
    fits = bool(keras) and within(keras, wanted)
    return [
        Check("Keras", "ok" if fits else "failure", keras or "not installed", wanted, _install("keras", wanted, fits)),
        Check(
            "packages",
            "failure" if wrong else "ok",
            "; ".join(wrong) or f"all {counted} that TensorFlow asks for",
            "",
            "install from the lock again; something was installed over it" if wrong else "",
        ),
    ]


def _install(package: str, wanted: str, fits: bool) -> str:
    return "" if fits else f"pip install '{package}{wanted}'"
