"""Every library that TensorFlow opens on a GPU, and what XLA compiles with."""

import shutil
from pathlib import Path

from trainer.doctor import loader
from trainer.doctor.installed import TensorFlow, nvidia_folders
from trainer.doctor.result import Check

# The libraries that TensorFlow opens by name (Get...DsoHandle in tsl/platform/default/dso_loader.cc), with the
# wheel that brings each, by CUDA's major version.
LIBRARIES = {
    12: {
        "libcudart.so.12": "nvidia-cuda-runtime-cu12",
        "libcublas.so.12": "nvidia-cublas-cu12",
        "libcublasLt.so.12": "nvidia-cublas-cu12",
        "libcufft.so.11": "nvidia-cufft-cu12",
        "libcusolver.so.11": "nvidia-cusolver-cu12",
        "libcusparse.so.12": "nvidia-cusparse-cu12",
        "libcupti.so.12": "nvidia-cuda-cupti-cu12",
        "libnccl.so.2": "nvidia-nccl-cu12",
    }
}
# What those open in turn: cuFFT, cuSPARSE and cuSOLVER the linker, cuBLAS and cuDNN the run-time compiler.
OPENED_BY_THEM = {
    12: {"libnvJitLink.so.12": "nvidia-nvjitlink-cu12", "libnvrtc.so.12": "nvidia-cuda-nvrtc-cu12"},
}
# What cuDNN 9 opens when a kernel of that kind is first needed; its engines of run-time compilation need the driver.
CUDNN_PARTS = ("ops", "cnn", "adv", "graph", "heuristic", "engines_precompiled")


def checks(major: int, tensorflow: TensorFlow, folders: list[Path], deep: bool) -> list[Check]:
    """Each library that TensorFlow opens: found by the loader, and with `deep` opened, with all that it needs."""
    if major not in LIBRARIES:
        return [Check("CUDA libraries", "unknown", f"the doctor knows those of CUDA {', '.join(map(str, LIBRARIES))}")]
    cudnn = str(tensorflow.build.get("cudnn_version", "9")).split(".")[0]
    first = LIBRARIES[major] | {f"libcudnn_{part}.so.{cudnn}": "nvidia-cudnn-cu12" for part in CUDNN_PARTS}
    found = [_library(name, package, tensorflow, folders, deep) for name, package in first.items()]
    openers = [Path(loader.find(name, folders)) for name in first]
    further = [*folders, *loader.search_folders(openers)]
    return found + [
        _library(name, package, tensorflow, further, deep) for name, package in OPENED_BY_THEM[major].items()
    ]


def _library(name: str, package: str, tensorflow: TensorFlow, folders: list[Path], deep: bool) -> Check:
    where = loader.find(name, folders)
    if where == name:
        where = loader.cached().get(name, name)
    wanted = "opened by the loader" if deep else "found by the loader"
    fix = pip(package, tensorflow.wants(package))
    if not deep:
        missing = where == name
        found = "not found" if missing else _short(where)
        return Check(name, "failure" if missing else "ok", found, wanted, fix if missing else "")
    opened = loader.load(where)
    if isinstance(opened, str):
        lies = [folder for root in nvidia_folders(tensorflow) for folder in root.glob(f"*/lib/{name}")]
        if lies:
            fix = f"name {lies[0].parent} in /etc/ld.so.conf.d and run ldconfig, as Dockerfile.gpu does"
        return Check(name, "failure", opened, wanted, fix)
    return Check(name, "ok", _short(where), wanted)


def compiler(tensorflow: TensorFlow) -> Check:
    """What XLA compiles with: ptxas, and libdevice with the mathematical functions."""
    roots = [folder / "cuda_nvcc" for folder in nvidia_folders(tensorflow)] + [Path("/usr/local/cuda")]
    ptxas = next((str(path) for root in roots if (path := root / "bin/ptxas").is_file()), shutil.which("ptxas"))
    device = next((path for root in roots if (path := root / "nvvm/libdevice/libdevice.10.bc").is_file()), None)
    missing = [name for name, path in (("ptxas", ptxas), ("libdevice.10.bc", device)) if not path]
    wanted = "ptxas and libdevice"
    if missing:
        fix = pip("nvidia-cuda-nvcc-cu12", tensorflow.wants("nvidia-cuda-nvcc-cu12"))
        return Check("XLA's compiler", "failure", f"no {' and no '.join(missing)}", wanted, fix)
    return Check("XLA's compiler", "ok", _short(str(ptxas)), wanted)


def pip(package: str, wanted: str) -> str:
    """The way to get a package back: by hand into this environment, or with all the rest."""
    return f"pip install '{package}{wanted}', or install requirements/gpu.lock again"


def _short(path: str) -> str:
    """A path without what every wheel's path starts with."""
    return path.split("-packages/", 1)[-1]
