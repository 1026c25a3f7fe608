"""The docker command, and what it says about an image."""

import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Sequence

from launch.errors import LaunchError

PLATFORM = "linux/amd64"  # what Vertex AI runs, and what TensorFlow's GPU and TPU wheels are for


def docker(*arguments: str, cwd: pathlib.Path | None = None) -> None:
    """Run docker with its output on the terminal. Raises LaunchError with what to do where it fails."""
    command = [_program(), *arguments]
    code = subprocess.run(command, cwd=cwd, env=os.environ | {"DOCKER_BUILDKIT": "1"}, check=False).returncode
    if code:
        raise LaunchError(f"docker {arguments[0]} failed with exit code {code}; what it said stands above", 1)


def ask(*arguments: str) -> str | None:
    """What docker prints, None where it fails."""
    ran = subprocess.run([_program(), *arguments], capture_output=True, text=True, check=False)
    if ran.returncode and "Cannot connect to the Docker daemon" in ran.stderr:
        raise LaunchError(f"no container engine answers: {ran.stderr.strip()} Fix: start Docker, or set DOCKER_HOST", 1)
    return ran.stdout if ran.returncode == 0 else None


def inspect(image: str) -> dict | None:
    """docker's description of a local image, None where there is no such image."""
    told = ask("image", "inspect", image)
    return json.loads(told)[0] if told else None


def program_and(arguments: Sequence[str]) -> list[str]:
    """The command line that runs docker with these arguments, for a process that replaces this one."""
    return [_program(), *arguments]


def gpu_arguments() -> list[str]:
    """`--gpus all` where this machine has an NVIDIA driver and its engine a runtime for it."""
    has_driver = pathlib.Path("/proc/driver/nvidia/version").exists()
    return ["--gpus", "all"] if has_driver and "nvidia" in (ask("info") or "") else []


def _program() -> str:
    program = shutil.which("docker")
    if program is None:
        raise LaunchError(
            "no docker on this machine. Install Docker (docs.docker.com/engine/install), or build in the cloud: "
            "`gcloud builds submit`",
            1,
        )
    return program
