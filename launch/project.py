"""The project's settings and the variables that job files may use.

Where a value comes from, first found wins: `--set NAME=VALUE`; then project.env and the environment. Run by
make, the environment comes first (make has read project.env already and lets its command line win); run by
hand, project.env does, because names such as NAME and REGION stand in many shells for other things. What is
missing then is asked of gcloud's own configuration (PROJECT and REGION), by the verbs that need gcloud at all.
"""

import dataclasses
import datetime
import os
import pathlib
import re
from collections.abc import Iterable, Mapping

from launch import gcloud, remembered
from launch.errors import LaunchError

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENV_FILE = ROOT / "project.env"


@dataclasses.dataclass(frozen=True)
class Variable:
    """One ${NAME}: what it means, what stands in for it where nothing needs the real one, where to set it."""

    meaning: str
    placeholder: str
    optional: bool = False
    how: str = "set it in project.env"


KNOWN = {
    "PROJECT": Variable(
        "the Google Cloud project's id",
        "my-project",
        how="set it in project.env, or run `gcloud config set project ID`",
    ),
    "REGION": Variable(
        "the region that jobs run in",
        "us-central1",
        how="set it in project.env, or run `gcloud config set ai/region us-central1`",
    ),
    "REPOSITORY": Variable("the Artifact Registry repository for images", "trainyard"),
    "BUCKET": Variable("the Cloud Storage bucket for what jobs write, without gs://", "my-bucket"),
    "NAME": Variable("the name of what is trained: of its images, jobs and folders", "digits"),
    "SERVICE_ACCOUNT": Variable("the account that jobs run as; empty: Vertex AI's own", "", optional=True),
    "TENSORBOARD": Variable("a managed TensorBoard, projects/N/locations/R/tensorboards/ID", "", optional=True),
    "RESERVATION": Variable(
        "a reservation's full path, projects/P/zones/Z/reservations/R",
        "projects/my-project/zones/us-central1-a/reservations/my-reservation",
    ),
    "IMAGE": Variable(
        "the image that `make build-cpu push` (or gpu, tpu) made",
        "us-central1-docker.pkg.dev/my-project/trainyard/digits:latest-build",
        how="run `make build-gpu push` (or cpu, tpu), or pass --set IMAGE=...",
    ),
    "PACKAGE": Variable(
        "the trainer's sdist on Cloud Storage",
        "gs://my-bucket/packages/trainyard-0.1.0.tar.gz",
        how="run `make package`, or pass --set PACKAGE=gs://...",
    ),
    "JOB": Variable(
        "the job's own name, which is also its folder's; made of NAME, the file and the time", "digits-job"
    ),
}
SETTINGS = ("PROJECT", "REGION", "REPOSITORY", "BUCKET", "NAME", "SERVICE_ACCOUNT", "TENSORBOARD", "RESERVATION")
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*[:?]?=\s*(.*)")


def read_env(file: pathlib.Path) -> dict[str, str]:
    """The NAME=VALUE lines of project.env; `#` begins a comment line. A missing file is an empty one."""
    if not file.exists():
        return {}
    values = {}
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            raise LaunchError(f"{file.name}:{number}: {line!r} came. Expected: NAME=VALUE or a line that begins with #")
        if match[2][:1] in ("'", '"'):
            raise LaunchError(
                f"{file.name}:{number}: {line!r} came. Expected: the value without quotes (make would keep them)"
            )
        values[match[1]] = match[2]
    return values


def settings() -> dict[str, str]:
    """The settings that have a value, from project.env and the environment; see above for which wins."""
    written = read_env(ENV_FILE)
    environment = {name: os.environ[name] for name in KNOWN if name in os.environ}
    by_make = "MAKELEVEL" in os.environ
    merged = {**written, **environment} if by_make else {**environment, **written}
    # By hand, an empty line in project.env doesn't hide what the environment says.
    for name, value in environment.items():
        merged[name] = merged.get(name) or value
    return {name: value for name, value in merged.items() if value}


def overrides(pairs: Iterable[str]) -> dict[str, str]:
    """`--set NAME=VALUE ...` as a dict; names that no file can use are refused."""
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or name not in KNOWN:
            raise LaunchError(f"--set {pair} came. Expected: NAME=VALUE with NAME one of {', '.join(KNOWN)}")
        values[name] = value
    return values


def variables(file: str, given: Mapping[str, str] | None = None, *, ask_gcloud: bool = False) -> dict[str, str]:
    """The values of the variables that job file `file` may use; one without a value is left out.

    Optional ones are there as the empty text. `ask_gcloud` lets gcloud say PROJECT and REGION (about 1 s).
    """
    values = {**settings(), **(given or {})}
    if ask_gcloud and not (values.get("PROJECT") and values.get("REGION")):
        values = {**gcloud.settings(), **values}
    for name, known in KNOWN.items():
        if known.optional:
            values.setdefault(name, "")
    if values.get("NAME"):
        values.setdefault("JOB", job_name(values["NAME"], file))
    if "IMAGE" not in values and (built := remembered.last_image()):
        values["IMAGE"] = remembered.image_reference(built)
    if "PACKAGE" not in values and (package := remembered.read("package.json")):
        values["PACKAGE"] = package.get("uri", "")
    return {name: value for name, value in values.items() if value or (name in KNOWN and KNOWN[name].optional)}


def job_name(name: str, file: str) -> str:
    """`digits-gpu-20261121-024530`: valid as a display name, a label and a folder."""
    stem = pathlib.Path(file).stem if file != "-" else "job"
    when = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    clean = re.sub(r"[^a-z0-9-]+", "-", f"{name}-{stem}".lower()).strip("-")
    return f"{clean[:47]}-{when}"


def missing(names: Iterable[str]) -> str:
    """The one sentence that names what has no value and how to give it one."""
    names = sorted(set(names))
    parts = [f"{name} ({KNOWN[name].meaning}; {KNOWN[name].how})" for name in names]
    return f"no value for {', '.join(parts)}."
