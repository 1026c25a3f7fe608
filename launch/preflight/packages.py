"""Packages: does the image exist, by digest, for linux/amd64, for this accelerator, with the lock's TensorFlow?"""

import re
from collections.abc import Iterator
from pathlib import Path

from launch.checks import Check
from launch.preflight.cloud import Cloud
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.preflight.registry import Image, Reference, parsed, read
from launch.preflight.request import Trouble
from launch.project import KNOWN, ROOT
from launch.spec import Pool

ACCELERATOR = "org.trainyard.accelerator"
TENSORFLOW = "org.trainyard.tensorflow"
LOCKS = ROOT / "requirements"


def ours(job: Job) -> list[Pool]:
    """The pools that run an image of this project: a reducer's is Google's own."""
    return [pool for pool in job.pools if pool.image and pool.role != "reducer"]


def unbuilt(job: Job, image: str) -> bool:
    """Whether only a placeholder stands there."""
    return "${" in image or (job.lacks("IMAGE") and image == KNOWN["IMAGE"].placeholder)


def names(job: Job) -> Iterator[Check]:
    """Offline: is every image named in a way that a job can pull, and that names one image for good?"""
    for image, pools in _by_image(job).items():
        where = parsed(image)
        build = f"make build-{pools[0].architecture} push"
        if unbuilt(job, image):
            yield Check("image", "failure", "no image was built and pushed yet", "build it and push it", build)
        elif re.match(r"localhost|127\.", where.host):
            found = f"{image} is in a registry on this machine, which Google doesn't reach"
            yield Check("image", "failure", found, "push it to Artifact Registry", build)
        elif not where.digest:
            found = f"{image} is named by its tag, which may mean another image by the time the job starts"
            yield Check("image", "warning", found, "name it by digest, as push records it", build)


def pulled(job: Job, cloud: Cloud) -> Iterator[Check]:
    """With credentials: what the registry says of every image."""
    for image, pools in _by_image(job).items():
        if unbuilt(job, image):
            continue
        where = parsed(image)
        try:
            found = read(where, cloud)
        except Trouble as trouble:
            if trouble.kind != "missing":
                raise
            said = f"{image} is not in its registry: {trouble.detail}"
            fix = "build it and push it, or correct its name"
            yield Check("image in registry", "failure", said, fix, f"make build-{pools[0].architecture} push")
            continue
        yield _named(where, found)
        yield from (check for pool in pools[:1] for check in _fits(pool, found, image))


def _by_image(job: Job) -> dict[str, list[Pool]]:
    images: dict[str, list[Pool]] = {}
    for pool in ours(job):
        images.setdefault(pool.image, []).append(pool)
    return images


def _named(where: Reference, image: Image) -> Check:
    if where.artifact_registry is None:
        found = f"{where.text} is in {where.host}, not in Artifact Registry"
        fix = "push it to Artifact Registry: close to the job, and readable by its service agent"
        return Check("image in registry", "warning", found, fix, f"docker push $REGION-docker.pkg.dev/{where.path}")
    return Check("image in registry", "ok", f"{where.path} {image.digest[:19]}")


def _fits(pool: Pool, image: Image, text: str) -> Iterator[Check]:
    build = f"make build-{pool.architecture} push"
    if "linux/amd64" in image.platforms:
        yield Check("image platform", "ok", "linux/amd64")
    else:
        found = f"{text} is for {', '.join(image.platforms) or 'nothing'}; Vertex AI's machines are linux/amd64"
        yield Check("image platform", "failure", found, "build it for linux/amd64", build)
        return
    yield _accelerator(pool, image.labels.get(ACCELERATOR, ""), build)
    yield _tensorflow(pool, image.labels.get(TENSORFLOW, ""), build)


def _accelerator(pool: Pool, built_for: str, build: str) -> Check:
    asked = f"{pool.machine_type} {pool.accelerator}".strip()
    if not built_for:
        found = f"the image has no label {ACCELERATOR}, so what it was built for can't be told"
        fix = "build it with this project's Dockerfiles, or add the label to your own"
        return Check("image accelerator", "unknown", found, fix, build)
    if built_for == pool.architecture:
        return Check("image accelerator", "ok", f"built for {built_for}, as {asked} asks")
    found = f"the image is built for {built_for}, the job asks for {asked} ({pool.architecture})"
    if built_for == "gpu" and pool.architecture == "cpu":
        fix = "it will run, and pull gigabytes of CUDA that nothing uses"
        return Check("image accelerator", "warning", found, fix, build)
    return Check("image accelerator", "failure", found, f"build and push the {pool.architecture} image", build)


def locked_tensorflow(kind: str, folder: Path = LOCKS) -> str:
    """The TensorFlow that a kind's lock pins, "" where there is no such lock."""
    lock = folder / f"{kind}.lock"
    pins = re.findall(r"^tensorflow(?:-cpu|-tpu)?==([^\s;\\]+)", lock.read_text() if lock.is_file() else "", re.M)
    return pins[0] if pins else ""


def _tensorflow(pool: Pool, built_with: str, build: str) -> Check:
    locked = locked_tensorflow(pool.architecture)
    if not built_with or not locked:
        lock = f"requirements/{pool.architecture}.lock"
        missing = f"the image has no label {TENSORFLOW}" if locked else f"{lock} pins none"
        return Check("image TensorFlow", "unknown", missing, "build it with this project's Dockerfiles", build)
    if built_with == locked:
        return Check("image TensorFlow", "ok", f"{built_with}, as in requirements/{pool.architecture}.lock")
    found = f"the image has TensorFlow {built_with}, requirements/{pool.architecture}.lock {locked}"
    return Check("image TensorFlow", "failure", found, "the image is from another lock: build it again", build)


PROBES = (
    Probe("packages", "image", names),
    Probe("packages", "image in registry", pulled, online=True),
)
