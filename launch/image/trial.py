"""Run an image here: as a job would run, or with a shell."""

import os
import sys
from collections.abc import Sequence

from launch.errors import LaunchError
from launch.image import build, engine, push

# Tighter than Vertex AI runs a container: whatever passes here needs no right that a job may lack.
CONFINED = (
    "--read-only", "--tmpfs=/tmp", "--network=none", "--cap-drop=ALL", "--security-opt=no-new-privileges",
)  # fmt: skip
# What a job with a baseOutputDirectory finds in its environment; /tmp is all that it may write here.
OUTPUT = {
    "AIP_MODEL_DIR": "/tmp/output/model/",
    "AIP_CHECKPOINT_DIR": "/tmp/output/checkpoints/",
    "AIP_TENSORBOARD_LOG_DIR": "/tmp/output/logs/",
}
STEPS = ("--epochs=1", "--steps_per_epoch=5", "--warmup_steps=0")


def test(kind: str | None, trainer_args: Sequence[str]) -> int:
    """A few steps on the bundled data, from the image's own entry point; the exit code is the trainer's."""
    kind, image = build.image_of(kind)
    push.check(kind, image)
    engine.docker(*test_arguments(kind, image), *STEPS, *trainer_args)
    print(f"{image} trains read-only, without root, network or capabilities")
    return 0


def test_arguments(kind: str, image: str) -> list[str]:
    """docker's arguments up to the image's name."""
    variables = dict(OUTPUT)
    if kind == "tpu":
        variables["TPU_SKIP_MDS_QUERY"] = "1"  # off a TPU no metadata server answers, and libtpu would wait for it
    named = [f"--env={name}={value}" for name, value in variables.items()]
    gpus = engine.gpu_arguments() if kind == "gpu" else []
    return ["run", "--rm", *CONFINED, *named, *gpus, image]


def shell(kind: str | None) -> int:
    """A shell in the image, in this process's place; nothing of it is kept."""
    kind, image = build.image_of(kind)
    push.check(kind, image)
    terminal = ["--interactive", "--tty"] if sys.stdin.isatty() else ["--interactive"]
    gpus = engine.gpu_arguments() if kind == "gpu" else []
    command = engine.program_and(["run", "--rm", *terminal, *gpus, "--entrypoint=bash", image])
    print(f"a shell in {image}; exit leaves it", flush=True)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise LaunchError(f"{command[0]} can't be started: {error}", 1) from error
