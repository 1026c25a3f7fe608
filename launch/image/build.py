"""Build an image, always for linux/amd64, and write down what was built."""

import os

from launch import project, remembered
from launch.errors import LaunchError
from launch.image import engine, names


def build(kind: str) -> int:
    """Build Dockerfile.KIND; the record's digest is empty until it is pushed."""
    values = project.settings()
    tag, revision = names.commit(project.ROOT)
    image = names.image_name(kind, values, tag)
    engine.docker(*arguments(kind, image, revision), ".", cwd=project.ROOT)
    remembered.write("image.json", {"architecture": kind, "image": image, "digest": None})
    size = (engine.inspect(image) or {}).get("Size", 0)
    print(f"built {image}, {size / 1e9:.2f} GB")
    return 0


def arguments(kind: str, image: str, revision: str, target: str = "") -> list[str]:
    """docker's arguments for a build, but for the folder; BASE_IMAGE in the environment names another base."""
    result = ["build", f"--platform={engine.PLATFORM}", f"--file=Dockerfile.{kind}", f"--tag={image}"]
    # One manifest, whose digest is the image's own: a job is submitted by it.
    result += ["--load", "--provenance=false", f"--build-arg=REVISION={revision}"]
    if os.environ.get("BASE_IMAGE"):
        result.append(f"--build-arg=BASE_IMAGE={os.environ['BASE_IMAGE']}")
    if target:
        result.append(f"--target={target}")
    return result


def kind_or_last(kind: str | None) -> str:
    """The architecture that was named, else that of the last build."""
    if kind:
        return kind
    last = remembered.last_image().get("architecture")
    if last not in names.KINDS:
        raise LaunchError("nothing was built here yet. Fix: make build-cpu (or build-gpu, build-tpu)")
    return last


def image_of(kind: str | None) -> tuple[str, str]:
    """(architecture, image) of the last build, or of this commit's image of the named architecture."""
    kind = kind_or_last(kind)
    last = remembered.last_image()
    if last.get("architecture") == kind and last.get("image"):
        return kind, last["image"]
    return kind, names.image_name(kind, project.settings(), names.commit(project.ROOT)[0])
