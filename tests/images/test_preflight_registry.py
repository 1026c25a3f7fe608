"""What preflight reads of an image, from a real registry: an image of a few bytes, pushed there first."""

import re
import time
import uuid

import pytest

from launch.preflight import registry as registries
from launch.preflight.account import Account
from launch.preflight.cloud import Cloud
from launch.preflight.request import Trouble
from tests.images.containers import docker

pytestmark = pytest.mark.engine


def test_an_images_platform_labels_and_digest(registry, tmp_path):
    name = f"{registry}/preflight/{uuid.uuid4().hex[:12]}"
    (tmp_path / "Dockerfile").write_text(
        "FROM scratch\nLABEL org.trainyard.accelerator=gpu org.trainyard.tensorflow=2.21.0\nCOPY Dockerfile /\n"
    )
    docker("build", "--platform=linux/amd64", "-q", "-t", f"{name}:one", str(tmp_path))
    pushed = docker("push", f"{name}:one").stdout
    digest = re.search(r"digest: (sha256:[0-9a-f]{64})", pushed)[1]
    cloud = Cloud(Account("token", "", "", "", {}), time.monotonic() + 600)
    for reference in (f"{name}:one", f"{name}@{digest}"):
        image = registries.read(registries.parsed(reference), cloud)
        assert (image.digest, "linux/amd64" in image.platforms) == (digest, True)
        assert image.labels == {"org.trainyard.accelerator": "gpu", "org.trainyard.tensorflow": "2.21.0"}
    with pytest.raises(Trouble) as raised:
        registries.read(registries.parsed(f"{name}:two"), cloud)
    assert raised.value.kind == "missing"
