"""The doctor in images broken on purpose: a thin layer over the real one, and the build of it would have failed."""

import json

import pytest

from tests.images.containers import docker

pytestmark = pytest.mark.engine


def told(image, kind):
    """(exit code, checks by name) of the doctor inside an image."""
    command = ["python", "-m", "trainer.doctor", f"--for={kind}", "--json"]
    arguments = ["--rm", "--network=none", "--read-only", "--tmpfs=/tmp", f"--entrypoint={command[0]}"]
    ran = docker("run", *arguments, image, *command[1:], check=False)
    checks = json.loads(ran.stdout[ran.stdout.index("{\n") : ran.stdout.rindex("}") + 1])["checks"]
    return ran.returncode, {check["name"]: check for check in checks}


@pytest.mark.parametrize("kind", ["cpu", "gpu", "tpu"])
def test_a_whole_image_is_fit(images, kind):
    code, checks = told(images(kind), kind)
    assert code == 0
    assert {check["status"] for check in checks.values()} <= {"ok", "unknown"}


def test_the_gpu_image_opens_every_library_and_tells_each_version(images):
    checks = told(images("gpu"), "gpu")[1]
    assert checks["CUDA"]["found"].startswith("12.")
    assert checks["cuDNN"]["found"].startswith("9.")
    assert {"libcublas.so.12", "libnvJitLink.so.12", "libnvrtc.so.12", "libcusolver.so.11"} <= set(checks)


def test_cudnn_8_instead_of_9_is_told_by_both_versions(layered, tree):
    """cuDNN 8's wheel, as the official GPU images carry it, over TensorFlow's cuDNN 9."""
    image = layered("gpu", "pip install --no-cache-dir --no-deps --quiet nvidia-cudnn-cu12==8.9.7.29 && ldconfig")
    code, checks = told(image, "gpu")
    assert code == 1
    assert checks["cuDNN"]["status"] == "failure"
    assert checks["cuDNN"]["found"].startswith("8.9.7")
    assert checks["cuDNN"]["wanted"].startswith(">=9.3")
    assert "nvidia-cudnn-cu12>=9.3" in checks["cuDNN"]["fix"]


@pytest.mark.parametrize(
    ("library", "package"),
    [("libcusparse.so.12", "nvidia-cusparse-cu12"), ("libnvrtc.so.12", "nvidia-cuda-nvrtc-cu12")],
)
def test_a_library_taken_away_is_named_with_its_package(layered, library, package):
    code, checks = told(layered("gpu", f"find / -xdev -name '{library}' -delete && ldconfig"), "gpu")
    assert code == 1
    assert checks[library]["status"] == "failure"
    assert package in checks[library]["fix"]


def test_tensorflow_cpu_in_the_gpu_image_is_told(layered):
    command = (
        "pip uninstall --yes --quiet tensorflow && pip install --no-cache-dir --no-deps --quiet tensorflow-cpu==2.21.0"
    )
    code, checks = told(layered("gpu", command), "gpu")
    assert code == 1
    assert checks["TensorFlow"]["found"] == "tensorflow-cpu 2.21.0, built for the CPU only"
    assert "requirements/gpu.lock" in checks["TensorFlow"]["fix"]


def test_a_libtpu_too_new_is_told_and_so_is_the_abort_it_causes(layered):
    code, checks = told(layered("tpu", "pip install --no-cache-dir --no-deps --quiet libtpu==0.0.32"), "tpu")
    assert code == 1
    assert (checks["libtpu"]["found"], checks["libtpu"]["status"]) == ("0.0.32", "failure")
    assert "<0.0.32" in checks["libtpu"]["fix"]
    assert "SIGABRT" in checks["import"]["found"]


def test_a_mismatch_fails_a_build_with_the_fix(layered, tmp_path):
    """The line that ends the layers of every Dockerfile, over an image whose Keras is too old."""
    image = layered("cpu", "pip install --no-cache-dir --no-deps --quiet keras==3.5.0")
    line = "RUN python -m trainer.doctor --for=cpu"
    folder = tmp_path / "next"
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"FROM {image}\n{line}\n")
    ran = docker("build", "--progress=plain", str(folder), check=False)
    assert ran.returncode != 0
    assert "pip install 'keras>=3.12.0'" in ran.stdout
