"""The NVIDIA driver: the machine's, not the image's."""

import ctypes
from pathlib import Path

from trainer.doctor import loader
from trainer.doctor.result import Check

# CUDA 12 runs on this driver and newer (minor version compatibility: docs.nvidia.com/deploy/cuda-compatibility).
DRIVER = "525.60.13 or newer"


def check(built: tuple[int, ...]) -> Check:
    """The driver's version and the CUDA it can run, `built` being TensorFlow's; none at build time is no failure."""
    library = loader.load("libcuda.so.1")
    if isinstance(library, str):
        return Check("driver", "unknown", "none here; it comes from the machine", DRIVER)
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    numbers = (version.value // 1000, version.value % 1000 // 10)
    found = f"{_module_version()} for CUDA {numbers[0]}.{numbers[1]}".strip()
    if numbers[0] < built[0]:
        fix = "take a machine with a newer driver; images with an older TensorFlow run on older drivers"
        return Check("driver", "failure", found, DRIVER, fix)
    if numbers < built[:2]:
        fix = "H100 and newer GPUs need it: TensorFlow brings no kernels for them, and the driver compiles its PTX"
        return Check("driver", "warning", found, f"CUDA {built[0]}.{built[1]} or newer", fix)
    return Check("driver", "ok", found, DRIVER)


def _module_version() -> str:
    """The version of the loaded kernel module, such as 550.90.07; "" where it can't be read."""
    try:
        words = Path("/proc/driver/nvidia/version").read_text().split()
    except OSError:
        return ""
    return next((word for word in words if word.count(".") >= 1 and word.replace(".", "").isdigit()), "")
