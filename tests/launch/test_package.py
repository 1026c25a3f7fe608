"""package: a real sdist of the trainer, sent with google-cloud-storage to the GCS emulator."""

import http.client
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import time

import pytest

from launch import __main__ as cli
from launch import package, project, remembered

HANG_S = 60


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> pathlib.Path:
    return package.build(project.ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture
def emulator(tmp_path, monkeypatch):
    """The GCS emulator in a process of its own; the client finds it by STORAGE_EMULATOR_HOST."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = "import sys; from gcp_storage_emulator.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "start", "--host=127.0.0.1", f"--port={port}", "--in-memory"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path)
    try:
        until = time.monotonic() + HANG_S
        while not _answers(port) and time.monotonic() < until and process.poll() is None:
            time.sleep(0.1)
        for name in [*project.KNOWN, "MAKELEVEL"]:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        monkeypatch.setattr(remembered, "CACHE", tmp_path / "cache")
        yield port
    finally:
        process.terminate()
        process.wait(HANG_S)


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/storage/v1/b?project=p")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def make_bucket(name: str) -> None:
    from google.cloud import storage

    storage.Client(project="p").create_bucket(name)


def test_the_sdist_holds_every_module_and_installs_without_dependencies(sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    modules = {str(path.relative_to(project.ROOT)) for path in (project.ROOT / "trainer").rglob("*.py")}
    assert modules <= held
    assert not [name for name in held if name.startswith(("launch", "tests", "data"))]
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation"]
    subprocess.run([*pip, "--no-deps", f"--target={target}", str(sdist)], check=True)
    command = [sys.executable, "-m", "trainer.settings", "--schema"]
    done = subprocess.run(command, cwd=target, capture_output=True, text=True)
    assert done.returncode == 0 and "--batch_size" in done.stdout


def test_the_hash_is_the_contents_own(sdist, tmp_path):
    source = tmp_path / "project"
    shutil.copytree(project.ROOT / "trainer", source / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "LICENSE"):
        (source / name).write_bytes((project.ROOT / name).read_bytes())  # with other times than the first
    again = package.build(source, tmp_path / "again")
    assert package.content_hash(again) == package.content_hash(sdist)
    with (source / "trainer/model.py").open("a") as stream:
        stream.write("# changed\n")
    changed = package.build(source, tmp_path / "changed")
    assert package.content_hash(changed) != package.content_hash(sdist)


def test_it_is_sent_once_and_submit_knows_its_address(emulator, capsys):
    given = ["--set=PROJECT=p", "--set=BUCKET=jobs", "--set=NAME=digits"]
    assert cli.main(["package", *given]) == 1
    assert "there is no bucket gs://jobs" in capsys.readouterr().err
    make_bucket("jobs")
    assert cli.main(["package", *given]) == 0
    told = capsys.readouterr().out
    uri = project.variables("job")["PACKAGE"]
    assert f"sent {uri}" in told and uri.startswith("gs://jobs/packages/digits/") and uri.endswith(".tar.gz")
    assert cli.main(["package", *given]) == 0
    assert f"there already: {uri}" in capsys.readouterr().out

    from google.cloud import storage

    (blob,) = storage.Client(project="p").list_blobs("jobs")
    assert uri == f"gs://jobs/{blob.name}" and blob.generation


def test_without_a_bucket_it_says_where_to_set_it(emulator, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(project, "ENV_FILE", tmp_path / "project.env")
    assert cli.main(["package", "--set=PROJECT=p", "--set=REGION=us-central1"]) == 2
    assert "no value for BUCKET" in capsys.readouterr().err


def test_without_credentials_it_says_how_to_get_them(tmp_path, monkeypatch, capsys):
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "STORAGE_EMULATOR_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")  # this machine may be one of Google's
    assert cli.main(["package", "--set=PROJECT=p", "--set=BUCKET=jobs"]) == 1
    assert "Fix: gcloud auth application-default login" in capsys.readouterr().err


def test_a_tree_that_cannot_be_built_is_a_sentence(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[build-system]\nrequires = []\n[project]\nname = 3\n")
    with pytest.raises(package.LaunchError, match="setuptools could not build"):
        package.build(tmp_path, tmp_path / "dist")
