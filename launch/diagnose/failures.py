"""The seven failures as `launch demo` provokes them: how each is prevented, and what brings it about here."""

import dataclasses
import subprocess
import sys
import tempfile
from collections.abc import Callable

from launch.diagnose import google_says

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
class Failure:
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


FAILURES = {
    1: Failure(
        "Each image is built from a lock that pins TensorFlow with its CUDA, and its Dockerfile runs the doctor: what "
        "doesn't fit fails the build, not the job. Here the doctor looks at this environment, which was made for a "
        "CPU, as if it were the GPU image.",
        "packages",
        _ran("-m", "trainer.doctor", "--for=gpu"),
    ),
    2: Failure(
        "--strategy=auto takes the strategy that the job's shape calls for, and `make local` rehearses the shape.",
        "strategy",
        _trained("--strategy=parameter_server", "--epochs=1"),
        ("--strategy=parameter_server",),
    ),
    3: Failure(
        "`make bootstrap` gives the job's account its rights on the bucket, and preflight asks for each.",
        "permissions",
        google_says.no_access,
    ),
    4: Failure(
        "Images hold all they need, so a job asks nothing outside its perimeter; preflight compares the perimeter of "
        "project, bucket and registry.",
        "security",
        google_says.perimeter,
    ),
    5: Failure(
        "Preflight estimates the memory of a batch, --accumulate and --batch_size_fit=accumulate split one that is too "
        "large, with the same result. Here the trainer gets a model that blows up each image a hundred thousand times "
        "in width and height: no machine has the memory for its activations.",
        "memory",
        _too_large,
        ("--batch_size=1000000000", "--steps_per_epoch=1", "--warmup_steps=0"),
    ),
    6: Failure(
        "Warm-up and clipping are on by default, and a step whose gradient isn't finite changes no weight.",
        "numerics",
        _trained("--learning_rate=1e30", "--warmup_steps=0", "--clip_norm=0", "--steps_per_epoch=20", "--epochs=1"),
        ("--learning_rate=1e30", "--warmup_steps=0", "--clip_norm=0"),
    ),
    7: Failure(
        "Preflight reads quota and reservations and names regions that have room; `submit --retry` waits and goes "
        "elsewhere.",
        "capacity",
        google_says.quota,
    ),
}
