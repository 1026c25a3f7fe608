"""The three images: built, labelled, run with no rights at all, rebuilt after a change of code, and built on."""

import json
import re
import subprocess
import sys

import pytest

from tests.images.containers import docker

KINDS = ("cpu", "gpu", "tpu")
NO_RIGHTS = ["--rm", "--read-only", "--tmpfs=/tmp", "--network=none", "--cap-drop=ALL"]
pytestmark = pytest.mark.engine


def inside(image, *command, arguments=()):
    return docker("run", *NO_RIGHTS, *arguments, f"--entrypoint={command[0]}", image, *command[1:], check=False)


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_trains_without_root_network_capabilities_or_a_writable_disk(images, kind):
    wait = ["--env=TPU_SKIP_MDS_QUERY=1"] if kind == "tpu" else []
    told = docker("run", *NO_RIGHTS, *wait, images(kind), "--epochs=1").stdout
    assert re.search(r"reached .*\w \d+\.\d+", told), told[-3000:]


@pytest.mark.parametrize("kind", KINDS)
def test_image_test_runs_it_with_a_jobs_outputs(images, launch, kind):
    images(kind)
    ran = launch("image", "test", kind)
    assert ran.returncode == 0, ran.stdout[-3000:]
    assert "/tmp/output/model" in ran.stdout
    assert "trains read-only" in ran.stdout


def test_a_stopped_container_saves_and_asks_for_a_restart(images):
    """SIGTERM reaches Python, because the entry point is no shell's child."""
    flags = ["--epochs=100000", "--log_every_steps=1"]
    name = docker("run", "--detach", *NO_RIGHTS[1:], images("cpu"), *flags).stdout.strip()
    try:
        with subprocess.Popen(["docker", "logs", "--follow", name], stdout=subprocess.PIPE, text=True) as log:
            assert any("step " in line for line in log.stdout)
            log.kill()
        docker("stop", "--time=300", name)
        assert docker("inspect", "--format={{.State.ExitCode}}", name).stdout.strip() == "143"
        assert "saved" in docker("logs", name).stdout
    finally:
        docker("rm", "--force", name, check=False)


def test_a_shell_in_the_image_has_its_python_and_leaves_nothing(images, tree):
    images("cpu")
    command = [sys.executable, "-m", "launch", "image", "shell", "cpu"]
    asked = "python -c 'import trainer, tensorflow as tf; print(tf.__version__)'; id -u; hostname\n"
    ran = subprocess.run(command, cwd=tree, input=asked, capture_output=True, text=True, check=False)
    told = ran.stdout.splitlines()
    assert told[0].startswith("a shell in ") and told[1:3] == ["2.21.0", "10001"], ran.stderr
    assert told[3] not in docker("ps", "--all", "--format={{.ID}}").stdout


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_says_what_it_is(images, tree, kind):
    told = json.loads(docker("image", "inspect", images(kind)).stdout)[0]
    labels, lock = told["Config"]["Labels"], (tree / f"requirements/{kind}.lock").read_text()
    assert labels["org.trainyard.accelerator"] == kind
    assert f"=={labels['org.trainyard.tensorflow']}" in re.search(r"^tensorflow(-cpu|-tpu)?==\S+", lock, re.M)[0]
    assert len(labels["org.opencontainers.image.revision"].removesuffix("-dirty")) == 40
    assert f"{told['Os']}/{told['Architecture']}" == "linux/amd64"
    assert told["Config"]["Entrypoint"] == ["python", "-m", "trainer.task"]
    assert told["Config"]["User"] not in ("", "root", "0")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_of_the_build(images, kind):
    script = (
        "for tool in uv gcc cc make git; do command -v $tool; done;"
        "ls -d /tools /plan /check /root/.cache /tmp/* /app/.git /app/tests /app/project.env 2>/dev/null;"
        "find / -xdev -name '*.whl' -not -path '*/ensurepip/*' 2>/dev/null; true"
    )
    assert inside(images(kind), "sh", "-c", script).stdout.strip() == ""
    assert not re.search(
        r"(?i)token|password|secret|https?://[^ ]*@", docker("history", "--no-trunc", images(kind)).stdout
    )


def test_the_bill_of_materials_lists_what_is_installed_and_follows_the_schema(images, tmp_path):
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = inside(images("cpu"), "cat", "/usr/share/sbom/trainyard-cpu.cdx.json").stdout
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    listed = {(entry["name"], entry["version"]) for entry in json.loads(text)["components"]}
    names = "import importlib.metadata as m; print(*{d.metadata['Name'].lower() for d in m.distributions()})"
    assert len(inside(images("cpu"), "python", "-c", names).stdout.split()) == len(listed)
    assert "tensorflow-cpu" in {name for name, _ in listed}


def test_a_change_of_code_rebuilds_the_last_layers_only(images, tree, base):
    images("cpu")
    model = tree / "trainer/model.py"
    before = model.read_text()
    try:
        model.write_text(before + "\n# changed\n")
        told = docker(
            "build", "--progress=plain", "--file=Dockerfile.cpu", *base, "--tag=images-test-cpu:x", ".", cwd=tree
        )
    finally:
        model.write_text(before)
        docker("rmi", "images-test-cpu:x", check=False)
    steps = re.findall(r"^#(\d+) \[(?:trainer|tensorflow|plan) .*\] (.+)$", told.stdout, re.M)
    cached = set(re.findall(r"^#(\d+) CACHED$", told.stdout, re.M))
    redone = {what for number, what in steps if number not in cached and not what.startswith("FROM")}
    assert redone == {"COPY trainer trainer"}


def test_a_base_that_brings_its_tensorflow_keeps_it(images, tree, base):
    """The stage `tensorflow` stands in for tensorflow/tensorflow:2.21.0: Python and TensorFlow, nothing of ours."""
    images("cpu")
    docker("build", "--file=Dockerfile.cpu", *base, "--target=tensorflow", "--tag=images-test-base:cpu", ".", cwd=tree)
    arguments = ["--build-arg=BASE_IMAGE=images-test-base:cpu", "--tag=images-test-own:cpu", "--progress=plain"]
    try:
        told = docker("build", "--file=Dockerfile.cpu", *arguments, ".", cwd=tree).stdout
        assert "BASE_IMAGE brings tensorflow-cpu 2.21.0; it stays" in told or "CACHED" in told
        assert "+ tensorflow-cpu" not in told
        assert "reached" in docker("run", *NO_RIGHTS, "images-test-own:cpu", "--epochs=1").stdout
    finally:
        docker("rmi", "--force", "images-test-own:cpu", "images-test-base:cpu", check=False)


def test_a_base_with_another_tensorflow_is_refused_with_both_versions(engine, tree, base, tmp_path):
    """Refused while planning, before anything is downloaded; the base is one whose metadata says so."""
    start = base[0].partition("BASE_IMAGE=")[2] if base else "python:3.12-slim"
    (tmp_path / "Dockerfile").write_text(
        f'FROM {start}\nRUN python -c "import sysconfig, pathlib; folder = pathlib.Path('
        "sysconfig.get_path('purelib'), 'tensorflow-2.19.1.dist-info'); folder.mkdir(); "
        "(folder / 'METADATA').write_text('Metadata-Version: 2.1\\\\nName: tensorflow\\\\nVersion: 2.19.1\\\\n')\"\n"
    )
    docker("build", "--tag=images-test-old:cpu", str(tmp_path))
    arguments = ["--build-arg=BASE_IMAGE=images-test-old:cpu", "--progress=plain"]
    try:
        ran = docker("build", "--file=Dockerfile.cpu", *arguments, ".", cwd=tree, check=False)
    finally:
        docker("rmi", "--force", "images-test-old:cpu", check=False)
    assert ran.returncode != 0
    assert "BASE_IMAGE brings tensorflow 2.19.1, the lock asks for TensorFlow 2.21.0" in ran.stdout
