"""Two containers of the cpu image train one model together, on a network of their own."""

import json
import re

import pytest

from tests.images.containers import docker

pytestmark = pytest.mark.engine


@pytest.fixture
def network(engine, tmp_path):
    """A network that reaches nothing but itself; its name. What still runs on it is removed at the end."""
    name = f"images-test-{tmp_path.parent.name}-{tmp_path.name}".lower().replace("_", "-")[:60]
    docker("network", "create", "--internal", name)
    yield name
    for container in docker("ps", "--all", "--quiet", f"--filter=network={name}").stdout.split():
        docker("rm", "--force", container, check=False)
    docker("network", "rm", name, check=False)


def test_two_containers_train_with_multi_worker_mirrored(images, network, tmp_path):
    output = tmp_path / "output"
    output.mkdir()
    output.chmod(0o777)  # the trainer is user 10001
    cluster = {"chief": ["chief-0:2222"], "worker": ["worker-0:2222"]}

    def arguments(role):
        place = json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}})
        folders = {"MODEL": "model", "CHECKPOINT": "checkpoints", "TENSORBOARD_LOG": "logs"}
        named = [f"--env=AIP_{name}_DIR=/output/{folder}/" for name, folder in folders.items()]
        return [
            f"--network={network}", f"--network-alias={role}-0", f"--env=TF_CONFIG={place}", *named,
            "--read-only", "--tmpfs=/tmp", "--cap-drop=ALL", f"--volume={output}:/output",
            images("cpu"), "--epochs=2", "--strategy=multi_worker", "--batch_size=64",
        ]  # fmt: skip

    worker = docker("run", "--detach", *arguments("worker")).stdout.strip().splitlines()[-1]
    chief = docker("run", *arguments("chief"), check=False)
    worker_code = docker("wait", worker).stdout.strip()
    worker_said = docker("logs", worker).stdout
    assert chief.returncode == 0, f"{chief.stdout[-3000:]}\nthe worker:\n{worker_said[-3000:]}"
    assert worker_code == "0", worker_said[-3000:]
    assert "global batch 64 = 2 workers x 1 replicas x 32" in chief.stdout
    assert re.search(r"reached .*\w \d+\.\d+", chief.stdout)
    assert (output / "model/saved_model.pb").is_file()
    assert json.loads((output / "result.json").read_text())["steps"] == 38
