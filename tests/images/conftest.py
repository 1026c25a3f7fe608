"""A copy of the tree, the three images built from it, and helpers; what needs an engine says so and is skipped."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.images.containers import HANG_S, docker

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "scripts/image"))


@pytest.fixture(scope="session")
def engine():
    """Skips where no container engine answers."""
    if not shutil.which("docker"):
        pytest.skip("no docker command")
    if docker("version", check=False).returncode:
        pytest.skip("no container engine answers")


@pytest.fixture(scope="session")
def base():
    """The build argument for the base image, where the machine names one of its own."""
    return [f"--build-arg=BASE_IMAGE={os.environ['BASE_IMAGE']}"] if os.environ.get("BASE_IMAGE") else []


@pytest.fixture(scope="session")
def registry(engine):
    """The registry to push to; skips where the machine has none."""
    if not os.environ.get("REGISTRY"):
        pytest.skip("REGISTRY names no registry")
    return os.environ["REGISTRY"]


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """A copy of the files that git knows or would take, under git, so that commands can write beside them."""
    folder = tmp_path_factory.mktemp("tree")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / "project.env").write_text("NAME=images-test\n")
    (folder / ".gitignore").write_text((ROOT / ".gitignore").read_text() + "project.env\n")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "tree"]):
        subprocess.run(["git", *command], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def launch(tree):
    """A function that runs `python -m launch` in the tree and returns what it printed."""

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "launch", *arguments],
            cwd=tree,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=HANG_S,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def images(engine, launch):
    """A function: architecture -> its image, built once in the session by `launch image build`; untagged at the end."""
    built = {}

    def image(kind):
        if kind not in built:
            ran = launch("image", "build", kind)
            assert ran.returncode == 0, ran.stdout[-6000:]
            built[kind] = ran.stdout.rpartition("built ")[2].partition(",")[0]
        return built[kind]

    yield image
    for name in built.values():  # what was built stays in the build cache
        docker("rmi", "--force", name, check=False)


@pytest.fixture
def layered(images, tmp_path):
    """A function: an image with a thin layer on top, made by one RUN as root; its name, removed afterwards."""
    names = []

    def build(kind, command):
        name = f"images-test-broken-{kind}:{tmp_path.name.lower().replace('_', '-')[:60]}-{len(names)}"
        (tmp_path / "Dockerfile").write_text(f"FROM {images(kind)}\nUSER root\nRUN {command}\nUSER 10001\n")
        docker("build", "--tag", name, str(tmp_path))
        names.append(name)
        return name

    yield build
    for name in names:
        docker("rmi", "--force", name, check=False)
