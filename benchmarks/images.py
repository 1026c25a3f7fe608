"""How big the images are, how soon a change of code is in one, and what a container costs until the first step.

    python benchmarks/images.py [cpu|gpu|tpu ...] [--runs=3]      what `make benchmark-images` runs

Needs a container engine. Builds each image first (not timed), from a copy of the tree. Wanted: a change of code
rebuilt in under 3 s; cpu at most 1.5 GB; gpu at most 50 MB over TensorFlow and its CUDA wheels; the first step in a
container at most 1.2 times as late as outside.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from launch.image import build, engine  # noqa: E402  the path comes first
from launch.image.names import KINDS  # noqa: E402

TRAIN = ("--epochs=1", "--steps_per_epoch=1", "--warmup_steps=0", "--log_every_steps=1")
# The unpacked size of the wheels in the image's first layer, by their own records, headers and all: what
# `pip install` of the same TensorFlow would take, without bytecode.
WHEELS = """
import importlib.metadata as m, re
names = {re.split(r"[= ;]", line)[0] for line in open("/plan.txt") if re.match("[a-z0-9]", line)}
sizes = [int(line.rpartition(",")[2] or 0) for d in m.distributions()
         if d.metadata["Name"].lower().replace("_", "-") in names for line in d.read_text("RECORD").splitlines()]
print(sum(sizes))
"""


def copy_of_tree(folder: pathlib.Path) -> None:
    """The files that a build would send, so that the benchmark can change one."""
    for name in ("trainer", "data", "requirements", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in (".dockerignore", *(f"Dockerfile.{kind}" for kind in KINDS)):
        shutil.copy2(ROOT / name, folder / name)


def quietly(*arguments: str, folder: pathlib.Path) -> float:
    """Seconds that docker took."""
    start = time.perf_counter()
    environment = os.environ | {"DOCKER_BUILDKIT": "1"}
    ran = subprocess.run(
        ["docker", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise SystemExit(f"docker {arguments[0]} failed:\n{ran.stderr[-3000:]}")
    return time.perf_counter() - start


def rebuild_s(kind: str, image: str, folder: pathlib.Path, runs: int) -> list[float]:
    """Seconds from a changed line in trainer/model.py to the image with it."""
    model = folder / "trainer/model.py"
    text = model.read_text()
    taken = []
    for run in range(runs):
        model.write_text(f"{text}\n# change {run} {time.time()}\n")
        taken.append(quietly(*build.arguments(kind, image, f"change{run}"), ".", folder=folder))
    model.write_text(text)
    return taken


def sizes_mb(kind: str, image: str, folder: pathlib.Path) -> dict[str, float]:
    """The image, its trainer's layers, and what it is over its base and TensorFlow's wheels."""
    target = f"{image}-base"
    quietly(*build.arguments(kind, target, "none", target="tensorflow"), ".", folder=folder)
    whole, base = (engine.inspect(name)["Size"] / 1e6 for name in (image, target))
    start = engine.inspect(os.environ.get("BASE_IMAGE", "python:3.12-slim"))
    start_mb = start["Size"] / 1e6 if start else 0.0  # BuildKit may keep a pulled base to itself
    wheels = wheels_mb(kind, image, folder)
    subprocess.run(["docker", "rmi", target], capture_output=True, check=False)
    return {"image": whole, "trainer's layers": whole - base, "over base and wheels": whole - start_mb - wheels}


def wheels_mb(kind: str, image: str, folder: pathlib.Path) -> float:
    """The wheels of TensorFlow and its accelerator, unpacked."""
    plan = f"{image}-plan"
    quietly(*build.arguments(kind, plan, "none", target="plan"), ".", folder=folder)
    text = engine.ask("run", "--rm", "--entrypoint=cat", plan, "/plan/tensorflow.txt") or ""
    (folder / "plan.txt").write_text(text)
    os.chmod(folder, 0o755)
    mount = f"--volume={folder / 'plan.txt'}:/plan.txt:ro"
    summed = engine.ask("run", "--rm", mount, "--entrypoint=python", image, "-c", WHEELS)
    subprocess.run(["docker", "rmi", plan], capture_output=True, check=False)
    return int(summed or 0) / 1e6


def first_step_s(command: list[str]) -> float:
    """Seconds from starting a command to its line of step 1."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if re.search(r"\bstep 1/1\b", line):
            taken = time.perf_counter() - start
            process.stdout.read()
            process.wait()
            return taken
    raise SystemExit(f"{' '.join(command[:4])}... reached no step:\n{''.join(lines[-20:])}")


def starts(image: str, runs: int) -> tuple[list[float], list[float]]:
    """(outside, in a container) seconds to the first step, in turns so that a busy machine is busy for both."""
    outside, inside = [], []
    with tempfile.TemporaryDirectory() as folder:
        here = [sys.executable, "-m", "trainer.task", *TRAIN]
        there = ["docker", "run", "--rm", "--read-only", "--tmpfs=/tmp", "--network=none", image, *TRAIN]
        for run in range(runs):
            outside.append(first_step_s([*here, f"--job_dir={folder}/{run}"]))
            inside.append(first_step_s(there))
    return outside, inside


def spread(values: list[float]) -> str:
    """Median, and the least and most."""
    return f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"


def main() -> int:
    """Measure, print, and write .cache/benchmark-images.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []])  # [] is what argparse checks where none is named
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        copy_of_tree(folder)
        for kind in options.kinds or KINDS:
            image = f"trainyard-benchmark-{kind}:latest"
            quietly(*build.arguments(kind, image, "none"), ".", folder=folder)
            sizes = sizes_mb(kind, image, folder)
            rebuilt = rebuild_s(kind, image, folder, options.runs)
            figures[kind] = {"sizes_mb": sizes, "rebuild_s": rebuilt}
            print(f"{kind}: " + ", ".join(f"{what} {size:,.0f} MB" for what, size in sizes.items()))
            print(f"{kind}: code change to image {spread(rebuilt)}", flush=True)
            if kind == "cpu":
                outside, inside = starts(image, options.runs)
                ratio = statistics.median(inside) / statistics.median(outside)
                figures["first_step_s"] = {"outside": outside, "container": inside, "ratio": ratio}
                print(
                    f"first step: outside {spread(outside)}, in a container {spread(inside)}, {ratio:.2f} x", flush=True
                )
            subprocess.run(["docker", "rmi", "--force", image], capture_output=True, check=False)
    out = ROOT / ".cache/benchmark-images.json"
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
