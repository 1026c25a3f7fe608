"""What was built, packaged, rehearsed and submitted last from here: a JSON file of each in .cache/."""

import json
import os
import pathlib
import sys
from collections.abc import Mapping

from launch.errors import LaunchError

CACHE = pathlib.Path(__file__).resolve().parents[1] / ".cache"


def write(name: str, data: dict) -> None:
    """Write `.cache/NAME`, whole or not at all; where that can't be, say so and go on: what it tells of is done."""
    half = CACHE / f".{name}.{os.getpid()}"
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        half.write_text(json.dumps(data, indent=2) + "\n")
        half.replace(CACHE / name)
    except OSError as error:
        print(f"{CACHE / name} can't be written ({error.strerror}): later commands need it named", file=sys.stderr)


def read(name: str) -> dict:
    """What `.cache/NAME` holds; {} where there is no such file. Raises LaunchError where it can't be read."""
    file = CACHE / name
    try:
        data = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise LaunchError(f"{file}: can't be read ({error}). Fix: remove it and build or package again") from error
    return data if isinstance(data, dict) else {}


def last_image() -> dict[str, str]:
    """What `make build-*` made last: {"architecture", "image", "digest" (after push, else None)}; {} if nothing."""
    return read("image.json")


def image_reference(built: Mapping[str, str | None]) -> str:
    """The image by digest where it has been pushed, else by tag."""
    image = built.get("image") or ""
    digest = built.get("digest")
    if not digest:
        return image
    repository = image.rsplit(":", 1)[0] if ":" in image.rpartition("/")[2] else image
    return f"{repository}@{digest}"


def last_job() -> str:
    """The full name of the job submitted last from here; empty if none was."""
    return str(read("job.json").get("name") or "")
