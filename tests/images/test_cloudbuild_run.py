"""cloudbuild.yaml run from its first step to its last, on the local engine and registry.

The builder images are stood in for by this machine's own make, docker and gcloud, in a folder that holds what
`gcloud builds submit` would send; Vertex AI by the stand-in API; Dockerfile.gpu and Dockerfile.tpu by Dockerfile.cpu,
because the other tests here build and run those and a push compresses their 8 GB for many minutes. Edge: Cloud
Build, its builder images and its machine.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid

import pytest

from tests import cloudbuild
from tests.standin import StandIn

ROOT = pathlib.Path(__file__).resolve().parents[2]
KINDS = ("cpu", "gpu", "tpu")
HANG_S = 3600  # a guard, not a limit
# What each builder image runs where a step names no entrypoint.
BUILDERS = {
    "gcr.io/cloud-builders/docker": "docker",
    "python": "python3",
    "gcr.io/google.com/cloudsdktool/google-cloud-cli": "gcloud",
}


def answers() -> bool:
    """Whether there is an engine, and a registry to push to."""
    if not (shutil.which("docker") and os.environ.get("REGISTRY")):
        return False
    return subprocess.run(["docker", "info"], capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(not answers(), reason="no container engine, or no registry in REGISTRY"),
    pytest.mark.skipif(not shutil.which("gcloud"), reason="gcloud is not installed"),
]


class Machine:
    """One build's folder and environment, and what its steps printed."""

    def __init__(self, folder: pathlib.Path, environment: dict[str, str], left_out: tuple[str, ...] = ()):
        self.folder = folder
        self.printed: dict[str, str] = {}
        self._environment = environment
        self._left_out = left_out

    def execute(self, step) -> None:
        """A step as Cloud Build would run it; StepError with the end of its output where it fails."""
        if step.id in self._left_out:
            return
        builder = step.name.rpartition(":")[0]
        command = [step.entrypoint or BUILDERS[builder], *step.args]
        environment = self._environment | dict(pair.split("=", 1) for pair in step.env)
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=HANG_S,
        )
        self.printed[step.id] = done.stdout
        if done.returncode != 0:
            raise cloudbuild.StepError(f"{step.id} ended with {done.returncode}:\n{done.stdout[-4000:]}")


def source(folder: pathlib.Path) -> pathlib.Path:
    """A copy of what git has, with one Dockerfile three times; .gcloudignore sends no more (test_cloud_build.py)."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for kind in ("gpu", "tpu"):
        shutil.copy2(folder / "Dockerfile.cpu", folder / f"Dockerfile.{kind}")
    return folder


def digest(image: str) -> str | None:
    """The digest that the registry has for REPOSITORY:TAG, None where it has none."""
    host, _, rest = image.partition("/")
    name, _, tag = rest.rpartition(":")
    accept = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"
    asked = urllib.request.Request(f"http://{host}/v2/{name}/manifests/{tag}", headers={"Accept": accept})
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.headers["Docker-Content-Digest"]
    except urllib.error.HTTPError as error:
        assert error.code == 404
        return None


@pytest.fixture
def build():
    """The file filled in for the local registry, under a tag of this run; its images are removed at the end."""
    tag = f"t{uuid.uuid4().hex[:12]}"
    substitutions = {
        "_TAG": tag,
        "_REGISTRY": f"{os.environ['REGISTRY']}/cloudbuild-test",
        "_BASE_IMAGE": os.environ.get("BASE_IMAGE", "python:3.12-slim"),
        "_BUCKET": "my-bucket",
        "_TEST_ARGS": "tests/test_standin.py -n 0",
        "_SMOKE": "true",
    }

    def filled(**built_in: str):
        here = {"PROJECT_ID": "my-project", "BUILD_ID": "b-1", **built_in}
        return cloudbuild.substituted(cloudbuild.read(ROOT / "cloudbuild.yaml"), substitutions, here)

    yield filled
    for kind in KINDS:
        for name in (tag, "cache"):
            image = f"{substitutions['_REGISTRY']}/digits-{kind}:{name}"
            subprocess.run(["docker", "rmi", "--force", image], capture_output=True)


@pytest.fixture
def empty_engine():
    """DOCKER_HOST of a second engine that has never built anything: Cloud Build's next machine."""
    if not shutil.which("dockerd") or os.geteuid() != 0:
        pytest.skip("a second engine takes dockerd on the PATH, and root")
    home = pathlib.Path(tempfile.mkdtemp(prefix="engine-"))  # a short path: a socket's has 108 characters at most
    host = f"unix://{home}/sock"
    flags = [f"--data-root={home}/data", f"--exec-root={home}/exec", f"--pidfile={home}/pid", f"--host={host}"]
    # docker0 is the first engine's: it makes a bridge for this one too.
    bridge = f"ty{uuid.uuid4().hex[:8]}"
    option = f"--opt=com.docker.network.bridge.name={bridge}"
    subprocess.run(["docker", "network", "create", option, bridge], check=True, capture_output=True)
    with (home / "log").open("w") as log:
        command = ["dockerd", *flags, f"--bridge={bridge}", "--iptables=false", "--ip6tables=false"]
        engine = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        began = time.monotonic()
        while subprocess.run(["docker", "--host", host, "info"], capture_output=True).returncode:
            if engine.poll() is not None or time.monotonic() - began > HANG_S:
                pytest.skip(f"a second engine does not start here: {(home / 'log').read_text()[-500:]}")
            time.sleep(0.3)
        yield host
    finally:
        engine.terminate()
        engine.wait()
        subprocess.run(["docker", "network", "rm", bridge], capture_output=True)
        shutil.rmtree(home, ignore_errors=True)


def cached(printed: str, line: str) -> bool:
    """Whether BuildKit took the Dockerfile's instruction that holds `line` from a cache."""
    numbers = re.findall(rf"^#(\d+) \[.*\].*{re.escape(line)}", printed, re.MULTILINE)
    assert numbers, f"{line!r} is not among the steps:\n{printed[-4000:]}"
    return all(re.search(rf"^#{number} CACHED$", printed, re.MULTILINE) for number in numbers)


def test_a_machine_that_never_built_takes_all_but_the_changed_code_from_the_pushed_cache(build, empty_engine, tmp_path):
    filled = build(BRANCH_NAME="main")
    folder = source(tmp_path / "workspace")
    step = {step.id: step for step in filled.steps}
    first = Machine(folder, dict(os.environ))
    for name in ("build-cpu", "push-cpu"):
        first.execute(step[name])
    with (folder / "trainer" / "task.py").open("a") as code:
        code.write(f"# {uuid.uuid4().hex}\n")
    second = Machine(folder, os.environ | {"DOCKER_HOST": empty_engine})
    second.execute(step["build-cpu"])
    assert cached(second.printed["build-cpu"], "--requirements /plan/tensorflow.txt")
    assert cached(second.printed["build-cpu"], "--requirements /plan/cpu.lock")
    assert not cached(second.printed["build-cpu"], "COPY trainer trainer")


def submitted(api: StandIn) -> list:
    """The stand-in's Vertex AI takes custom jobs; the ones it got."""
    jobs = []

    def create(call):
        jobs.append(call.body)
        return {"name": "projects/1/locations/us-central1/customJobs/2", "state": "JOB_STATE_PENDING", **call.body}

    api.route("POST", "/v1/projects/my-project/locations/us-central1/customJobs", create)
    return jobs


def test_on_main_all_of_it_runs_and_the_smoke_job_trains_from_the_pushed_digest(build, tmp_path):
    filled = build(BRANCH_NAME="main")
    with StandIn() as api:
        jobs = submitted(api)
        machine = Machine(source(tmp_path / "workspace"), api.environment(tmp_path / "gcloud", "my-project"))
        ended = cloudbuild.run(filled, machine.execute)
        assert api.unexpected == []
    assert ended[0] == "test"
    assert ended[-2:] == ["smoke-file", "smoke"]
    for kind, image in zip(KINDS, filled.images, strict=True):
        pushed = digest(image)
        assert pushed
        reference = (machine.folder / ".cache" / f"{kind}.image").read_text().strip()
        assert reference == f"{image.rpartition(':')[0]}@{pushed}"
        assert digest(f"{image.rpartition(':')[0]}:cache") == pushed
        inspected = subprocess.run(["docker", "inspect", image], capture_output=True, text=True, check=True)
        labels = json.loads(inspected.stdout)[0]["Config"]["Labels"]
        assert labels["org.opencontainers.image.revision"] == image.rpartition(":")[2]
    [job] = jobs
    pool = job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]
    assert pool["imageUri"] == (machine.folder / ".cache" / "cpu.image").read_text().strip()
    assert pool["args"][-2:] == ["--epochs=1", "--warmup_steps=0"]
    assert job["jobSpec"]["serviceAccount"] == "digits-train@my-project.iam.gserviceaccount.com"


def test_off_main_there_is_no_smoke_job(build, tmp_path):
    filled = build(BRANCH_NAME="feature")
    before = tuple(step.id for step in filled.steps if not step.id.startswith("smoke"))
    with StandIn() as api:
        machine = Machine(tmp_path, api.environment(tmp_path / "gcloud", "my-project"), left_out=before)
        assert len(cloudbuild.run(filled, machine.execute)) == len(filled.steps)
    assert api.calls == []
    assert "No smoke job: branch 'feature'" in machine.printed["smoke-file"]


def test_where_one_image_fails_its_trial_none_is_pushed(build, tmp_path):
    filled = build(BRANCH_NAME="main")
    folder = source(tmp_path / "workspace")
    (folder / "trainer" / "task.py").write_text('raise SystemExit("broken on purpose")\n')
    # the other two are well: they are not built for this, which saves minutes
    well = ("test", "build-gpu", "build-tpu", "try-gpu", "try-tpu")
    with StandIn() as api:
        machine = Machine(folder, api.environment(tmp_path / "gcloud", "my-project"), left_out=well)
        with pytest.raises(cloudbuild.StepError, match="try-cpu ended with 1:\nbroken on purpose"):
            cloudbuild.run(filled, machine.execute)
    assert api.calls == []
    assert not {"push-cpu", "push-gpu", "push-tpu"} & set(machine.printed)
    assert [digest(image) for image in filled.images] == [None, None, None]
