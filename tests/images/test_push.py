"""Pushing to a registry and pulling back by digest, and what is refused."""

import json

import pytest

from tests.images.containers import docker

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("kind", ["cpu", "gpu", "tpu"])
def test_an_image_is_pushed_recorded_and_pulled_by_its_digest(images, launch, registry, tree, kind):
    images(kind)
    ran = launch("image", "push", kind)
    assert ran.returncode == 0, ran.stdout[-3000:]
    record = json.loads((tree / ".cache/image.json").read_text())
    assert set(record) == {"architecture", "image", "digest"}
    assert record["architecture"] == kind
    assert record["image"].startswith(f"{registry}/images-test-{kind}:")
    repository = record["image"].rpartition(":")[0]
    docker("pull", "--quiet", f"{repository}@{record['digest']}")
    command = ["run", "--rm", "--network=none", "--entrypoint=python", f"{repository}@{record['digest']}"]
    assert "fit for" in docker(*command, "-m", "trainer.doctor", "--quick").stdout


def test_an_image_for_arm64_is_refused_before_anything_is_sent(engine, launch, registry, tmp_path, tree):
    tag = launch_tag(launch, tree)
    (tmp_path / "Dockerfile").write_text("FROM scratch\nLABEL org.trainyard.accelerator=cpu\nCOPY Dockerfile /\n")
    image = f"{registry}/images-test-arm-cpu:{tag}"
    docker("build", "--platform=linux/arm64", "--tag", image, str(tmp_path))
    (tree / ".cache").mkdir(exist_ok=True)
    record = tree / ".cache/image.json"
    before = record.read_text() if record.exists() else None
    wrong = json.dumps({"architecture": "cpu", "image": image, "digest": None})
    try:
        record.write_text(wrong)
        ran = launch("image", "push")
        assert ran.returncode == 1
        assert "linux/arm64" in ran.stdout
        assert "exec format error" in ran.stdout
        assert record.read_text() == wrong
        assert docker("pull", image, check=False).returncode != 0
    finally:
        docker("rmi", "--force", image, check=False)
        record.unlink() if before is None else record.write_text(before)


def launch_tag(launch, tree):
    """A tag that no other run uses."""
    return tree.parent.name.replace("_", "-").lower()


def test_a_push_that_the_registry_refuses_says_what_to_do(images, launch):
    images("cpu")
    built = launch("image", "build", "cpu", REGISTRY="localhost:1")  # under that name: the layers are there
    assert built.returncode == 0, built.stdout
    ran = launch("image", "push", "cpu", REGISTRY="localhost:1")
    assert ran.returncode == 1
    assert "docker login localhost:1" in ran.stdout
    assert "Traceback" not in ran.stdout
