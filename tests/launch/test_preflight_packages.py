"""Preflight of packages: the image, its platform, its accelerator and its TensorFlow, asked of the registry."""

import pytest

from launch import project
from launch.preflight import packages
from launch.preflight.job import Job
from tests import google_world
from tests.google_world import VARIABLES
from tests.launch.preflight_world import bad, look


def test_an_image_that_is_not_there(google):
    check = look(google, "gpu", packages, IMAGE=google_world.IMAGE[:-1] + "2")["image in registry"]
    assert (check.status, check.command) == ("failure", "make build-gpu push")


def test_nothing_built_yet_is_told_without_asking(google):
    file = str(project.ROOT / "configs" / "tpu.yaml")
    variables = {name: value for name, value in VARIABLES.items() if name != "IMAGE"}
    job = Job.read(file, variables)
    (check,) = packages.names(job)
    assert (check.status, check.command) == ("failure", "make build-tpu push")


def test_a_tag_may_move(google):
    google.platforms = ["amd64"]
    check = look(google, "gpu", packages, IMAGE="us-central1-docker.pkg.dev/yard/trainyard/digits:latest")["image"]
    assert check.status == "warning"


def test_an_arm_image(google):
    google.platforms = ["arm64"]
    assert look(google, "gpu", packages)["image platform"].status == "failure"


@pytest.mark.parametrize(
    ("config", "label", "status"), [("gpu", "cpu", "failure"), ("cpu", "gpu", "warning"), ("tpu", "gpu", "failure")]
)
def test_an_image_for_another_accelerator(google, config, label, status):
    google.labels["org.trainyard.accelerator"] = label
    assert look(google, config, packages)["image accelerator"].status == status


def test_another_tensorflow_than_the_lock(google):
    google.labels["org.trainyard.tensorflow"] = "2.19.0"
    check = look(google, "gpu", packages)["image TensorFlow"]
    assert check.status == "failure"
    assert packages.locked_tensorflow("gpu") in check.found


def test_somebody_elses_image_has_no_labels(google):
    google.labels = {}
    found = look(google, "gpu", packages)
    assert (found["image accelerator"].status, found["image TensorFlow"].status) == ("unknown", "unknown")


def test_a_reducers_image_is_googles_own(google):
    assert bad(look(google, "reduction_server", packages)) == {}
