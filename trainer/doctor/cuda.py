"""The GPU's half: CUDA, cuDNN and NCCL, asked for their own version, against what TensorFlow was built for."""

import ctypes
from pathlib import Path

from trainer.doctor import driver, libraries, loader
from trainer.doctor.installed import TensorFlow, nvidia_folders, version_of, within
from trainer.doctor.libraries import pip
from trainer.doctor.result import Check


def checks(tensorflow: TensorFlow, deep: bool) -> list[Check]:
    """Every check of a GPU environment; `deep` opens each library, otherwise only CUDA's and cuDNN's front."""
    built = _numbers(str(tensorflow.build.get("cuda_version", "")))
    if not built:
        return []  # a build without CUDA: said by the check of TensorFlow itself
    opens = [tensorflow.folder / name for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")]
    folders = loader.search_folders(opens)
    found = [_cuda(built, folders), _cudnn(tensorflow, folders), _nccl(tensorflow, folders, deep)]
    found += libraries.checks(built[0], tensorflow, folders, deep)
    return [*found, libraries.compiler(tensorflow), driver.check(built)]


def _cuda(built: tuple[int, ...], folders: list[Path]) -> Check:
    wanted = f"{built[0]}.{built[1]} or newer, below {built[0] + 1}"
    library = loader.load(loader.find(f"libcudart.so.{built[0]}", folders))
    if isinstance(library, str):
        return Check("CUDA", "failure", library, wanted, pip("nvidia-cuda-runtime-cu12", ""))
    version = ctypes.c_int()
    library.cudaRuntimeGetVersion(ctypes.byref(version))
    numbers = (version.value // 1000, version.value % 1000 // 10)
    fits = numbers[0] == built[0] and numbers >= built[:2]
    fix = "" if fits else pip("nvidia-cuda-runtime-cu12", f">={built[0]}.{built[1]},<{built[0] + 1}")
    return Check("CUDA", "ok" if fits else "failure", f"{numbers[0]}.{numbers[1]}", wanted, fix)


def _cudnn(tensorflow: TensorFlow, folders: list[Path]) -> Check:
    """cuDNN's own version; where the major that TensorFlow opens is missing, another that lies there is named."""
    package = "nvidia-cudnn-cu12"
    major = _numbers(str(tensorflow.build.get("cudnn_version", "9")))[0]
    wanted = tensorflow.wants(package) or f">={major},<{major + 1}"
    where = loader.find(f"libcudnn.so.{major}", folders)
    library = loader.load(where)
    if isinstance(library, str):
        other = _other_cudnn(major, tensorflow, folders)
        found = f"{other}, no libcudnn.so.{major}" if other else library
        return Check("cuDNN", "failure", found, wanted, pip(package, wanted))
    version = cudnn_version(library.cudnnGetVersion())
    fits = within(version, _release(wanted))
    return Check("cuDNN", "ok" if fits else "failure", version, wanted, "" if fits else pip(package, wanted))


def _other_cudnn(major: int, tensorflow: TensorFlow, folders: list[Path]) -> str:
    """The version of a cuDNN that is not the wanted major, "" where there is none."""
    places = [*folders, *(folder / "cudnn" / "lib" for folder in nvidia_folders(tensorflow))]
    names = [str(path) for place in places for path in sorted(place.glob("libcudnn.so.*"))]
    names += [file for name, file in loader.cached().items() if name.startswith("libcudnn.so.")]
    for name in names:
        library = loader.load(name)
        if not isinstance(library, str) and not name.endswith(f".so.{major}"):
            return f"{cudnn_version(library.cudnnGetVersion())} at {name}"
    return ""


def _nccl(tensorflow: TensorFlow, folders: list[Path], deep: bool) -> Check:
    """NCCL's version: its own call, or at start its wheel's, since opening 250 MB takes a cold disk seconds."""
    package = "nvidia-nccl-cu12"
    wanted = tensorflow.wants(package) or ">=2,<3"
    text = "" if deep else version_of(package)
    if not text:
        library = loader.load(loader.find("libnccl.so.2", folders))
        if isinstance(library, str):
            return Check("NCCL", "failure", library, wanted, pip(package, wanted))
        version = ctypes.c_int()
        library.ncclGetVersion(ctypes.byref(version))
        number = version.value  # 22707 is 2.27.7
        text = f"{number // 10000}.{number % 10000 // 100}.{number % 100}"
    fits = within(text, wanted)
    return Check("NCCL", "ok" if fits else "failure", text, wanted, "" if fits else pip(package, wanted))


def cudnn_version(number: int) -> str:
    """cudnnGetVersion's number as text: 92800 is 9.28.0, and before version 9 8907 was 8.9.7."""
    scale = 10000 if number >= 90000 else 1000
    return f"{number // scale}.{number % scale // 100}.{number % 100}"


def _release(wanted: str) -> str:
    """A range on the wheel's version (>=9.3.0.75) as one on the library's own, which has three numbers."""
    return ",".join(".".join(part.split(".")[:3]) for part in wanted.split(","))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
