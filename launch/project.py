"""The project's settings and the variables that job files may use.

Where a value comes from, first found wins: `--set NAME=VALUE`; then project.env and the environment. Run by
make, the environment comes first (make has read project.env already and lets its command line win); run by
hand, project.env does, because names such as NAME and REGION stand in many shells for other things. What is
missing then is asked of gcloud's own configuration (PROJECT and REGION), by the verbs that need gcloud at all.
"""

import dataclasses
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping

from launch.errors import LaunchError

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENV_FILE = ROOT / "project.env"
CACHE = ROOT / ".cache"  # what was built, packaged and submitted last


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


def settings(root: pathlib.Path | None = None) -> dict[str, str]:
    """The settings that have a value, from project.env and the environment; see above for which wins."""
    written = read_env(ENV_FILE if root is None or root == ROOT else root / "project.env")
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
        values = {**gcloud_settings(), **values}
    for name, known in KNOWN.items():
        if known.optional:
            values.setdefault(name, "")
    if values.get("NAME"):
        values.setdefault("JOB", job_name(values["NAME"], file))
    if "IMAGE" not in values and (built := last_image()):
        values["IMAGE"] = image_reference(built)
    if "PACKAGE" not in values and (package := _cache("package.json")):
        values["PACKAGE"] = package.get("uri", "")
    return {name: value for name, value in values.items() if value or (name in KNOWN and KNOWN[name].optional)}


def job_name(name: str, file: str) -> str:
    """`digits-gpu-20261121-024530`: valid as a display name, a label and a folder."""
    stem = pathlib.Path(file).stem if file != "-" else "job"
    when = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d-%H%M%S")
    clean = re.sub(r"[^a-z0-9-]+", "-", f"{name}-{stem}".lower()).strip("-")
    return f"{clean[:47]}-{when}"


def last_image(root: pathlib.Path | None = None) -> dict[str, str]:
    """What `make build-*` made last: {"architecture", "image", "digest" (after push, else None)}; {} if nothing."""
    return _cache("image.json", root)


def image_reference(built: Mapping[str, str | None]) -> str:
    """The image by digest where it has been pushed, else by tag."""
    image = built.get("image") or ""
    digest = built.get("digest")
    if not digest:
        return image
    repository = image.rsplit(":", 1)[0] if ":" in image.rpartition("/")[2] else image
    return f"{repository}@{digest}"


def _folder(root: pathlib.Path | None) -> pathlib.Path:
    return CACHE if root is None or root == ROOT else root / ".cache"


def _cache(name: str, root: pathlib.Path | None = None) -> dict:
    file = _folder(root) / name
    try:
        data = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise LaunchError(f"{file}: can't be read ({error}). Fix: remove it and build or package again") from error
    return data if isinstance(data, dict) else {}


def gcloud_settings() -> dict[str, str]:
    """PROJECT and REGION as gcloud's own configuration has them; {} without gcloud."""
    gcloud = shutil.which("gcloud")
    if not gcloud:
        return {}
    command = [gcloud, "config", "list", "--format=json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    try:
        config = json.loads(done.stdout or "{}")
    except ValueError:
        return {}
    region = (config.get("ai") or {}).get("region") or (config.get("compute") or {}).get("region")
    found = {"PROJECT": (config.get("core") or {}).get("project"), "REGION": region}
    return {name: value for name, value in found.items() if value}


def missing(names: Iterable[str]) -> str:
    """The one sentence that names what has no value and how to give it one."""
    names = sorted(set(names))
    parts = [f"{name} ({KNOWN[name].meaning}; {KNOWN[name].how})" for name in names]
    return f"no value for {', '.join(parts)}."


def remember(name: str, data: dict, root: pathlib.Path | None = None) -> None:
    """Write `.cache/NAME` of this project (or of the one in `root`), whole or not at all."""
    folder = _folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    half = folder / f".{name}.{os.getpid()}"
    half.write_text(json.dumps(data, indent=2) + "\n")
    half.replace(folder / name)


def last_job() -> str:
    """The full name of the job submitted last from here; empty if none was."""
    return str(_cache("job.json").get("name") or "")
