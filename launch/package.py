"""`launch package`: the trainer as an sdist on Cloud Storage, for configs/python_package.yaml.

Its address holds a hash of its content, so the same code is never sent twice and no job's code ever changes
under it. setuptools builds it in a copy: the working tree gets nothing but dist/.
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

from launch import project, remembered
from launch.errors import LaunchError

# What the sdist is made of; README.md is named in no metadata and left out.
SOURCES = ("pyproject.toml", "LICENSE", "trainer")
_BUILD = "import sys, setuptools.build_meta as build; print(build.build_sdist(sys.argv[1]))"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `package`."""
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="BUCKET, PROJECT or NAME")
    parser.add_argument("--build_only", action="store_true", help="make dist/*.tar.gz and send nothing")


def run(options: argparse.Namespace) -> int:
    """Build and upload; the address is remembered for ${PACKAGE}."""
    values = project.variables("package", project.overrides(options.set), ask_gcloud=not options.build_only)
    sdist = build(project.ROOT, project.ROOT / "dist")
    print(f"built {os.path.relpath(sdist)} ({sdist.stat().st_size / 1024:.0f} KiB)")
    if options.build_only:
        return 0
    lacking = [name for name in ("BUCKET", "PROJECT") if not values.get(name)]
    if lacking:
        raise LaunchError(f"the package can't be sent: {project.missing(lacking)}")
    name = f"packages/{values.get('NAME', 'trainyard')}/{content_hash(sdist)[:16]}/{sdist.name}"
    uri, new = upload(sdist, values["BUCKET"], name, values["PROJECT"])
    remembered.write("package.json", {"uri": uri})
    print(f"{'sent' if new else 'there already:'} {uri}")
    print("  run it   make submit CONFIG=python_package")
    return 0


def build(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """The sdist of the project in `source`, in folder `target`. Raises LaunchError with what setuptools said."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for name in SOURCES:
            there = source / name
            if there.is_dir():
                shutil.copytree(there, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            elif there.exists():
                shutil.copy2(there, copy / name)
        (copy / "dist").mkdir()
        command = [sys.executable, "-c", _BUILD, "dist"]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no word"])[-1]
            raise LaunchError(f"setuptools could not build the sdist: {last}", exit_code=1)
        built = copy / "dist" / done.stdout.strip().splitlines()[-1]
        target.mkdir(exist_ok=True)
        return pathlib.Path(shutil.copy2(built, target / built.name))


def content_hash(sdist: pathlib.Path) -> str:
    """SHA-256 over the names and the bytes of its files; times and owners in the archive don't count."""
    total = hashlib.sha256()
    with tarfile.open(sdist) as archive:
        for member in sorted(archive.getmembers(), key=lambda one: one.name):
            if member.isfile():
                data = archive.extractfile(member).read()
                total.update(f"{member.name}\0{len(data)}\0".encode() + data)
    return total.hexdigest()


def upload(file: pathlib.Path, bucket: str, name: str, project_id: str) -> tuple[str, bool]:
    """(gs:// address, whether it had to be sent). Raises LaunchError where the bucket or the right is missing."""
    from google.api_core import exceptions

    uri = f"gs://{bucket}/{name}"
    try:
        blob = _client(project_id).bucket(bucket).blob(name)
        if blob.exists():
            return uri, False
        with contextlib.suppress(exceptions.PreconditionFailed):  # somebody else sent the same in between
            blob.upload_from_filename(str(file), if_generation_match=0, content_type="application/gzip")
        return uri, True
    except exceptions.NotFound as error:
        fix = "`make bootstrap` makes it, or correct BUCKET in project.env"
        raise LaunchError(f"there is no bucket gs://{bucket}. Fix: {fix}", exit_code=1) from error
    except exceptions.Forbidden as error:
        need = "roles/storage.objectUser on the bucket"
        raise LaunchError(f"gs://{bucket} refuses the upload; it takes {need}: {error.message}", exit_code=1) from error
    except (exceptions.GoogleAPIError, OSError) as error:
        raise LaunchError(f"the upload to {uri} failed: {error}", exit_code=1) from error


def _client(project_id: str):
    """A storage client: application default credentials, else gcloud's own account."""
    import google.auth.exceptions
    from google.cloud import storage

    try:
        return storage.Client(project=project_id)
    except google.auth.exceptions.DefaultCredentialsError as error:
        token = _gcloud_token()
        if not token:
            fix = "gcloud auth application-default login"
            raise LaunchError(f"no Google credentials were found here. Fix: {fix}", exit_code=1) from error
        import google.oauth2.credentials

        return storage.Client(project=project_id, credentials=google.oauth2.credentials.Credentials(token))


def _gcloud_token() -> str:
    program = shutil.which("gcloud")
    if not program:
        return ""
    command = [program, "auth", "print-access-token", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.stdout.strip() if done.returncode == 0 else ""
