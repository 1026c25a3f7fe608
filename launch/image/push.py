"""Push an image that fits, and write down the digest that the registry gave it."""

import re

from launch import gcloud, project, remembered
from launch.errors import LaunchError
from launch.image import build, engine, names


def push(kind: str | None) -> int:
    """Push the image built last, or this commit's image of `kind`; submit then runs it by digest."""
    kind, built = build.image_of(kind)
    image = destination(built)
    check(kind, built)
    if image != built:
        engine.docker("tag", built, image)
    digest = upload(image)
    remembered.write("image.json", {"architecture": kind, "image": image, "digest": digest})
    print(f"pushed {image}@{digest}")
    return 0


def push_base(kind: str) -> int:
    """Build the stage `tensorflow` of Dockerfile.KIND and push it as REGISTRY/tensorflow:tf2.21-cuda12."""
    lock = (project.ROOT / "requirements" / f"{kind}.lock").read_text()
    found = re.search(r"^tensorflow(?:-cpu|-tpu)?==([0-9.]+)", lock, re.MULTILINE)
    cuda = re.search(r"^nvidia-cuda-runtime-cu(\d+)==", lock, re.MULTILINE)
    if not found:
        raise LaunchError(f"requirements/{kind}.lock names no TensorFlow. Fix: make lock")
    values = require_registry()
    image = names.base_name(kind, values, found[1], cuda[1] if cuda else "")
    engine.docker(
        *build.arguments(kind, image, names.commit(project.ROOT)[1], target="tensorflow"), ".", cwd=project.ROOT
    )
    check(kind, image)
    print(f"pushed {image}@{upload(image)}\nbuild on it with: FROM {image}")
    return 0


def destination(built: str) -> str:
    """The name to push a local image under: as built, with the registry that is known now."""
    registry = names.registry(require_registry())
    return f"{registry}/{built.rpartition('/')[2]}"


def require_registry() -> dict[str, str]:
    """The settings, gcloud's own included. Raises LaunchError naming the ones that a push needs and lack."""
    values = project.settings()
    if not names.registry(values):
        values = {**gcloud.settings(), **values}
    if not names.registry(values):
        lacking = [name for name in ("PROJECT", "REGION", "REPOSITORY") if not values.get(name)]
        raise LaunchError(f"can't push: {project.missing(lacking)} Or set REGISTRY, such as REGISTRY=localhost:5000")
    return values


def check(kind: str, image: str) -> None:
    """Raises LaunchError where the local image is missing, of another machine or of another architecture."""
    told = engine.inspect(image)
    if told is None:
        raise LaunchError(f"there is no image {image} here. Fix: make build-{kind}")
    platform = f"{told.get('Os')}/{told.get('Architecture')}"
    if platform != engine.PLATFORM:
        raise LaunchError(
            f"{image} is for {platform}, and Vertex AI's machines are {engine.PLATFORM}: the job would end with "
            f"`exec format error`. Not pushed. Fix: make build-{kind}, on any machine",
            1,
        )
    label = (told.get("Config", {}).get("Labels") or {}).get("org.trainyard.accelerator")
    if label != kind:
        raise LaunchError(f"{image} is labelled for {label or 'nothing'}, not for {kind}. Fix: make build-{kind}", 1)


def upload(image: str) -> str:
    """Push, and return the digest (sha256:...) under which the registry now holds the image."""
    try:
        engine.docker("push", image)
    except LaunchError as error:
        host = image.partition("/")[0]
        known = f"gcloud auth configure-docker {host}" if host.endswith("pkg.dev") else f"docker login {host}"
        raise LaunchError(
            f"{error}. Where access was denied: {known}; where the repository is missing: make bootstrap", 1
        ) from error
    repository = image.rpartition(":")[0]
    digests = (engine.inspect(image) or {}).get("RepoDigests") or []
    for digest in digests:
        if digest.startswith(f"{repository}@"):
            return digest.partition("@")[2]
    raise LaunchError(f"{image} was pushed, but docker tells no digest for it. Fix: push again", 1)
