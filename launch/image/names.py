"""What an image is called: where it is pushed to, what it is of, and which commit it was built from."""

import os
import pathlib
import re
import subprocess
from collections.abc import Mapping

from launch.errors import LaunchError

KINDS = ("cpu", "gpu", "tpu")
UNVERSIONED = "unversioned"  # the tag where there is no git: a downloaded archive


def registry(values: Mapping[str, str]) -> str:
    """Where images are pushed: REGISTRY, else the project's Artifact Registry repository, "" if neither is known."""
    if os.environ.get("REGISTRY"):
        return os.environ["REGISTRY"].rstrip("/")
    named = [values.get(name) for name in ("REGION", "PROJECT", "REPOSITORY")]
    if not all(named):
        return ""
    region, project, repository = named
    # A project of an old domain is written example.com:name, and stands as example.com/name in a path.
    return f"{region}-docker.pkg.dev/{project.replace(':', '/')}/{repository}"


def image_name(kind: str, values: Mapping[str, str], tag: str) -> str:
    """`REGISTRY/NAME-gpu:1a2b3c4d5e6f`, without the registry where none is known yet."""
    name = values.get("NAME") or "trainyard"
    if not re.fullmatch(r"[a-z0-9]+(?:[._-][a-z0-9]+)*", name):
        raise LaunchError(
            f"NAME={name} came from project.env. Expected, for the name of an image: lower-case letters and digits, "
            "with single . _ - between them. Fix: change NAME"
        )
    return "/".join(part for part in (registry(values), f"{name}-{kind}:{tag}") if part)


def base_name(kind: str, values: Mapping[str, str], version: str, cuda: str = "") -> str:
    """`REGISTRY/tensorflow:tf2.21-cuda12`: the TensorFlow base of a kind, by what it holds."""
    number = ".".join(version.split(".")[:2])
    suffix = f"cuda{cuda}" if kind == "gpu" else kind
    return "/".join(part for part in (registry(values), f"tensorflow:tf{number}-{suffix}") if part)


def commit(root: pathlib.Path) -> tuple[str, str]:
    """The tag (12 digits of the commit, `-dirty` where files differ from it) and the commit in full."""
    head = _git(root, "rev-parse", "HEAD")
    if not head:
        return UNVERSIONED, UNVERSIONED
    dirty = "-dirty" if _git(root, "status", "--porcelain") else ""
    return f"{head[:12]}{dirty}", f"{head}{dirty}"


def _git(root: pathlib.Path, *command: str) -> str:
    try:
        ran = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""
