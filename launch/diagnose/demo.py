"""`launch demo N`: provokes one of the seven failures on this machine, and shows what this repository says about it.

Each has three parts: how it is prevented, what preflight says of a job file that would run into it, and the failure
itself, with the real trainer or Google's own client, and what diagnose makes of its log. Nothing leaves the machine:
where Google's APIs would answer, a server on loopback gives the answer that they give.
"""

import argparse
import contextlib
import dataclasses
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from launch import console
from launch.diagnose import google_says
from launch.diagnose.causes import SEVEN
from launch.errors import LaunchError

SHOWN = 14  # lines of a log
TOO_LARGE = """
import runpy
import keras
from trainer import model

plain = model.build_model

class Large(keras.layers.Layer):
    def call(self, x, training=False):
        return keras.ops.tile(x, [1, 100_000, 100_000, 1])[:, :8, :8] if training else x

def build_model(hyperparameters, optimizer):
    made = plain(hyperparameters, optimizer)
    stack = keras.Sequential([keras.Input((8, 8, 1)), Large(), *made.layers])
    stack.compile(optimizer=optimizer, loss=made.loss)
    return stack

model.build_model = build_model
runpy.run_module("trainer.task", run_name="__main__")
"""


@dataclasses.dataclass(frozen=True)
class Demo:
    """`subject` is preflight's; `args` go into the job file that it looks at; `provoke` gives (command, log)."""

    prevented: str
    subject: str
    provoke: Callable[[], tuple[str, str]]
    args: tuple[str, ...] = ()
    config: str = "gpu"


def _ran(*arguments: str) -> Callable[[], tuple[str, str]]:
    def provoke() -> tuple[str, str]:
        done = subprocess.run([sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return f"python {' '.join(arguments)}", done.stdout.decode("utf-8", "replace")

    return provoke


def _trained(*flags: str) -> Callable[[], tuple[str, str]]:
    def provoke() -> tuple[str, str]:
        with tempfile.TemporaryDirectory() as folder:
            return _ran("-m", "trainer.task", *flags, f"--job_dir={folder}")()

    return provoke


def _too_large() -> tuple[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        flags = ["--batch_size=64", "--steps_per_epoch=1", "--epochs=1", "--warmup_steps=0"]
        _, log = _ran("-c", TOO_LARGE, *flags, f"--job_dir={folder}")()
        return f"python -m trainer.task {' '.join(flags)}, with that model", log


DEMOS = {
    1: Demo(
        "Each image is built from a lock that pins TensorFlow with its CUDA, and its Dockerfile runs the doctor: what "
        "doesn't fit fails the build, not the job. Here the doctor looks at this environment, which was made for a "
        "CPU, as if it were the GPU image.",
        "packages",
        _ran("-m", "trainer.doctor", "--for=gpu"),
    ),
    2: Demo(
        "--strategy=auto takes the strategy that the job's shape calls for, and `make local` rehearses the shape.",
        "strategy",
        _trained("--strategy=parameter_server", "--epochs=1"),
        ("--strategy=parameter_server",),
    ),
    3: Demo(
        "`make bootstrap` gives the job's account its rights on the bucket, and preflight asks for each.",
        "permissions",
        google_says.no_access,
    ),
    4: Demo(
        "Images hold all they need, so a job asks nothing outside its perimeter; preflight compares the perimeter of "
        "project, bucket and registry.",
        "security",
        google_says.perimeter,
    ),
    5: Demo(
        "Preflight estimates the memory of a batch, --accumulate and --batch_size_fit=accumulate split one that is too "
        "large, with the same result. Here the trainer gets a model that blows up each image a hundred thousand times "
        "in width and height: no machine has the memory for its activations.",
        "memory",
        _too_large,
        ("--batch_size=1000000000", "--steps_per_epoch=1", "--warmup_steps=0"),
    ),
    6: Demo(
        "Warm-up and clipping are on by default, and a step whose gradient isn't finite changes no weight.",
        "numerics",
        _trained("--learning_rate=1e30", "--warmup_steps=0", "--clip_norm=0", "--steps_per_epoch=20", "--epochs=1"),
        ("--learning_rate=1e30", "--warmup_steps=0", "--clip_norm=0"),
    ),
    7: Demo(
        "Preflight reads quota and reservations and names regions that have room; `submit --retry` waits and goes "
        "elsewhere.",
        "capacity",
        google_says.quota,
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The verb's arguments."""
    parser.add_argument("number", type=int, metavar="N", help="which of the seven, 1 to 7")


def run(options: argparse.Namespace) -> int:
    """Show one failure from end to end; 0 where diagnose says that it is this one, else 1."""
    from launch.diagnose import entry, report, show

    number = options.number
    if number not in DEMOS:
        which = ", ".join(f"{key} {name}" for key, name in SEVEN.items())
        raise LaunchError(f"demo {number} came. Expected one of the seven: {which}")
    demo, out = DEMOS[number], console.console()
    out.print(f"[bold]Failure {number}: {SEVEN[number]}[/bold]\n\n[bold]Prevented[/bold]")
    out.print(demo.prevented, markup=False)
    out.print("\n[bold]Preflight[/bold]")
    _preflight(demo)
    out.print("\n[bold]Provoked[/bold]")
    command, log = demo.provoke()
    out.print(f"$ {command}", style="dim", markup=False)
    for line in log.splitlines()[-SHOWN:]:
        out.print(f"  {entry.plain(line.encode())}", markup=False)
    out.print("\n[bold]Diagnosed[/bold]")
    made = report.read(io.BytesIO(log.encode()))
    show.show(made, "this log", {})
    return 0 if made.findings and made.findings[0].cause.seven == number else 1


def _preflight(demo: Demo) -> None:
    """What preflight says about its subject, of a job file with the flags of the demonstration."""
    import yaml

    from launch.__main__ import main

    spec = yaml.safe_load(Path("configs", f"{demo.config}.yaml").read_text(encoding="utf-8"))
    for key in ("serviceAccount", "tensorboard"):  # the demonstration has none
        spec.pop(key, None)
    container = spec["workerPoolSpecs"][0]["containerSpec"]
    container["args"] = [*container.get("args", []), *demo.args]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"{demo.config}.yaml")
        file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            main(["preflight", "--json", "--offline", "--timeout_s=30", str(file)])
    checks = [check for check in json.loads(said.getvalue())["checks"] if check["subject"] == demo.subject]
    out = console.console()
    for check in checks:
        out.print(f"  {check['status']}: {check['found']}", markup=False)
        if check["status"] != "ok" and check["fix"]:
            out.print(f"    {check['fix']}", markup=False)
    if not checks:
        out.print(f"  It asks Google about {demo.subject}, so it needs your project: make preflight CONFIG=gpu")
