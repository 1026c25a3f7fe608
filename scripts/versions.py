"""docs/versions.md: what each image holds, read from the locks. `make lock` writes it; a test compares it.

python scripts/versions.py      print the page
"""

import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "versions.md"
# What the wheels were compiled with, and the oldest driver that a CUDA release runs on:
# tensorflow.org/install/source (tested build configurations), docs.nvidia.com/deploy/cuda-compatibility.
COMPILED = {"2.21": ("12.5", "9.3"), "2.20": ("12.5", "9.3"), "2.19": ("12.5", "9.3")}
DRIVERS = {"12": "525.60.13 or newer; 555 or newer for H100 and later, compiled on first use"}
PAGE = """# Versions

What each image holds. `make lock` writes this page from the locks in requirements/; change a version in
pyproject.toml, or take the newest that it allows with `make lock UPGRADE=1`, which prints what changed.

{table}

Pinned with a hash each, {counts}.

- **Why pinned.** TensorFlow {tensorflow} asks for CUDA's wheels by range (cuDNN `>=9.3.0.75,<10`), so an image built
  without a lock holds other libraries each month. Within a major version newer libraries serve an older build:
  TensorFlow was compiled with CUDA {cuda} and cuDNN {cudnn}, and the doctor refuses what is older or of another major.
- **Why not the oldest that fits.** CUDA 12.8 is the first with kernels for B200 and RTX PRO 6000.
- **Why libtpu is held back.** tensorflow-tpu {tpu} accepts every later libtpu by its metadata, and aborts at import
  from 0.0.32 on: `TpuExecutable_FreeMaybeOwningDeviceMemoryArray not available in this library`.
- **Why tensorflow-tpu is older.** There is no tensorflow-tpu 2.21.
"""


def version(lock: str, package: str) -> str:
    """A package's version in a lock; several, where it depends on the Python; a dash where it is not in it."""
    found = re.findall(rf"^{re.escape(package)}==([^ ;\\]+)", lock, re.MULTILINE)
    return " or ".join(sorted(set(found))) or "-"


def column(kind: str) -> dict[str, str]:
    """Row -> value for one image."""
    lock = (ROOT / "requirements" / f"{kind}.lock").read_text()
    wheel = {"cpu": "tensorflow-cpu", "gpu": "tensorflow", "tpu": "tensorflow-tpu"}[kind]
    runtime = re.search(r"^nvidia-cuda-runtime-cu(\d+)==", lock, re.MULTILINE)
    cuda = runtime[1] if runtime else ""
    libraries = {
        "CUDA runtime": "cuda-runtime",
        "cuBLAS": "cublas",
        "cuDNN": "cudnn",
        "NCCL": "nccl",
        "ptxas (XLA)": "cuda-nvcc",
    }
    return {
        "TensorFlow": f"{wheel} {version(lock, wheel)}",
        "Python": f"3.12; any of {python_range()}",
        "Keras": version(lock, "keras"),
        "NumPy": version(lock, "numpy"),
        **{name: version(lock, f"nvidia-{package}-cu{cuda}") if cuda else "-" for name, package in libraries.items()},
        "libtpu": version(lock, "libtpu"),
        "NVIDIA driver needed": DRIVERS[cuda] if cuda else "-",
    }


def python_range() -> str:
    """requires-python of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]


def page() -> str:
    """The whole page."""
    columns = {kind: column(kind) for kind in ("cpu", "gpu", "tpu")}
    rows = ["| | cpu | gpu | tpu |", "|---|---|---|---|"]
    rows += [f"| {name} | " + " | ".join(columns[kind][name] for kind in columns) + " |" for name in columns["cpu"]]
    counts = []
    for kind in columns:
        lock = (ROOT / "requirements" / f"{kind}.lock").read_text()
        counts.append(f"{len(re.findall(r'^[a-z0-9._-]+==', lock, re.MULTILINE))} packages for {kind}")
    tensorflow = columns["gpu"]["TensorFlow"].split()[1]
    cuda, cudnn = COMPILED[".".join(tensorflow.split(".")[:2])]
    tpu = columns["tpu"]["TensorFlow"].split()[1]
    return PAGE.format(
        table="\n".join(rows), counts=", ".join(counts), tensorflow=tensorflow, cuda=cuda, cudnn=cudnn, tpu=tpu
    )


if __name__ == "__main__":
    print(page(), end="")
