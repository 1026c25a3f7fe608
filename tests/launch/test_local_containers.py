"""The docker runner on a real engine: its own network, Vertex AI's host names, nothing left."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
import yaml

from launch import __main__ as command_line

IMAGE = os.environ.get("BASE_IMAGE", "")
pytestmark = pytest.mark.engine

SERVER = """
import socket
server = socket.create_server(("", 2222))
server.accept()[0].send(b"from the worker")
server.accept()
"""
SLEEPER = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
print("up")
time.sleep(3600)
"""
CLIENT = """
import json, os, pathlib, socket, time
host, port = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"][0].split(":")
while True:
    try:
        print(socket.create_connection((host, int(port))).recv(100).decode())
        break
    except OSError:
        time.sleep(0.1)
pathlib.Path(os.environ["AIP_MODEL_DIR"]).mkdir()
print("host", host)
"""


@pytest.fixture
def client():
    docker = pytest.importorskip("docker")
    try:
        engine = docker.from_env()
        engine.images.get(IMAGE)
    except (docker.errors.DockerException, ValueError):
        pytest.skip("no container engine answers, or it lacks BASE_IMAGE")
    yield engine
    engine.close()


def job(tmp_path, *programs):
    pools = [
        {"replicaCount": 1, "containerSpec": {"imageUri": IMAGE, "command": ["python3", "-uc"], "args": [program]}}
        for program in programs
    ]
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump({"workerPoolSpecs": pools, "baseOutputDirectory": {"outputUriPrefix": "gs://b"}}))
    return str(file)


def left(engine, folder):
    """Containers that have the job's folder mounted."""
    return [
        one.name
        for one in engine.containers.list(all=True, ignore_removed=True)
        if any(mount.get("Source") == str(folder) for mount in one.attrs.get("Mounts", []))
    ]


def test_replicas_meet_on_a_network_of_their_own(client, tmp_path, capsys):
    file = job(tmp_path, CLIENT, SERVER)
    assert command_line.main(["local", file, "--runner=docker", f"--output={tmp_path / 'out'}"]) == 0
    out = capsys.readouterr().out
    assert "chief    | from the worker" in out
    assert "host cmle-training-workerpool1-" in out
    assert (tmp_path / "out/model").stat().st_uid == os.getuid()
    assert left(client, tmp_path / "out") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_container_is_left_however_the_launcher_ends(number, client, tmp_path):
    command = [sys.executable, "-u", "-m", "launch", "local", job(tmp_path, SLEEPER), "--runner=docker"]
    command.append(f"--output={tmp_path / 'out'}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while (line := process.stdout.readline()) and "| up" not in line:
            pass
        assert left(client, tmp_path / "out")
        process.send_signal(number)
        process.wait()
    for _ in range(600):
        if not left(client, tmp_path / "out"):
            break
        time.sleep(0.1)
    assert left(client, tmp_path / "out") == []


TRIAL = """
import json, os, pathlib, sys
value = sys.argv[1].partition("=")[2]
file = pathlib.Path(os.environ["CLOUD_ML_HP_METRIC_FILE"])
file.write_text(json.dumps({"global_step": "1", "trial": os.environ["CLOUD_ML_TRIAL_ID"], "score": value}) + "\\n")
"""


def test_a_study_runs_its_trials_in_containers(client, tmp_path, capsys):
    spec = yaml.safe_load(pathlib.Path(job(tmp_path, TRIAL)).read_text())
    study = {
        "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
        "parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 0.0, "maxValue": 1.0}}],
    }
    file = tmp_path / "study.yaml"
    counts = {"displayName": "test", "maxTrialCount": 2, "parallelTrialCount": 2}
    file.write_text(yaml.safe_dump({**counts, "studySpec": study, "trialJobSpec": spec}))
    folder = tmp_path / "out"
    assert command_line.main(["tune", str(file), "--runner=docker", f"--output={folder}"]) == 0
    assert "Best of 2 trials" in capsys.readouterr().out
    assert [left(client, folder / number) for number in "12"] == [[], []]


def test_an_image_that_is_not_there_is_told(client, tmp_path, capsys):
    file = job(tmp_path, "pass")
    assert command_line.main(["local", file, "--runner=docker", "--image=no-such-image-here"]) == 2
    assert "build" in capsys.readouterr().err


def test_no_engine_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert command_line.main(["local", job(tmp_path, "pass"), "--runner=docker", f"--output={tmp_path}"]) == 2
    assert "--runner=docker" in capsys.readouterr().err


class Between:
    """A socket in front of the engine's, whose connections can be cut as a restart of the engine cuts them."""

    def __init__(self, path, upstream):
        self.path, self.upstream, self.open, self.up = path, upstream, [], True
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(path))
        self.server.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                here, _ = self.server.accept()
            except OSError:
                return
            if not self.up:
                here.close()
                continue
            there = socket.socket(socket.AF_UNIX)
            there.connect(self.upstream)
            self.open += [here, there]
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)

    def cut(self):
        for one in self.open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("comes_back", [True, False])
def test_an_engine_that_lets_go_is_told_and_waited_for_by_nobody(client, tmp_path, comes_back):
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        pytest.skip("the engine is not behind a local socket")
    between = Between(tmp_path / "engine.sock", host.removeprefix("unix://"))
    folder = tmp_path / "out"
    command = [sys.executable, "-u", "-m", "launch", "local", job(tmp_path, SLEEPER), "--runner=docker"]
    command += [f"--output={folder}", "--restarts=0"]
    environ = {**os.environ, "DOCKER_HOST": f"unix://{between.path}"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ) as process:
        while (line := process.stdout.readline()) and "| up" not in line:
            pass
        between.up = comes_back
        between.cut()
        told = process.stdout.read()
    between.server.close()
    assert process.returncode == (1 if comes_back else 2), told
    assert "the container engine has let go of this container" in told
    assert "Traceback" not in told
    if comes_back:
        assert left(client, folder) == []
    else:
        assert "docker rm -f" in told
        for name in left(client, folder):
            client.containers.get(name).remove(force=True)
        client.networks.get(told.rpartition("docker network rm ")[2].split()[0]).remove()
