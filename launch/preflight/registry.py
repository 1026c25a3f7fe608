"""Read an image's manifest and configuration from its registry (OCI distribution specification, version 1.1)."""

import dataclasses
import json
import os
import re

from launch.preflight.cloud import Cloud
from launch.preflight.request import Trouble, explained, fetch

MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
# An address that answers for *.pkg.dev: a Private Service Connect endpoint, say, or a stand-in.
ENDPOINT = "TRAINYARD_REGISTRY_ENDPOINT"


@dataclasses.dataclass(frozen=True)
class Reference:
    """An image's name, in its parts; `tag` or `digest` or both may be empty."""

    text: str
    host: str
    path: str
    tag: str
    digest: str

    @property
    def artifact_registry(self) -> tuple[str, str, str] | None:
        """(project, location, repository) of an Artifact Registry image, None for any other."""
        parts = self.path.split("/")
        if self.host.endswith("-docker.pkg.dev") and len(parts) >= 3:
            return parts[0], self.host.removesuffix("-docker.pkg.dev"), parts[1]
        return None


@dataclasses.dataclass(frozen=True)
class Image:
    """What the registry says of a name."""

    digest: str
    platforms: tuple[str, ...]
    labels: dict[str, str]


def parsed(text: str) -> Reference:
    """The parts of an image's name, by Docker's rules: a first part with a dot, a colon or `localhost` is a host."""
    name, _, digest = text.partition("@")
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        path, tag = name, ""
    first, slash, rest = path.partition("/")
    if slash and re.search(r"[.:]|^localhost$", first):
        return Reference(text, first, rest, tag, digest)
    return Reference(text, "docker.io", path, tag, digest)


def read(reference: Reference, cloud: Cloud) -> Image:
    """The image's digest, platforms and labels (those of linux/amd64 in an index). Raises Trouble."""
    wanted = reference.digest or reference.tag or "latest"
    headers, manifest = _json(reference, cloud, f"manifests/{wanted}", MANIFESTS)
    digest = reference.digest or headers.get("docker-content-digest", "")
    if "manifests" not in manifest:
        config = _config(reference, cloud, manifest)
        return Image(digest, (_platform(config),), _labels(config))
    entries = [m for m in manifest["manifests"] if m.get("platform", {}).get("os") != "unknown"]
    platforms = tuple(_platform(m.get("platform", {})) for m in entries)
    if "linux/amd64" not in platforms:
        return Image(digest, platforms, {})
    chosen = entries[platforms.index("linux/amd64")]["digest"]
    _, inner = _json(reference, cloud, f"manifests/{chosen}", MANIFESTS)
    return Image(digest, platforms, _labels(_config(reference, cloud, inner)))


def _config(reference: Reference, cloud: Cloud, manifest: dict) -> dict:
    return _json(reference, cloud, f"blobs/{manifest['config']['digest']}", "*/*")[1]


def _platform(about: dict) -> str:
    return f"{about.get('os', '?')}/{about.get('architecture', '?')}"


def _labels(config: dict) -> dict[str, str]:
    return (config.get("config") or {}).get("Labels") or {}


def _json(reference: Reference, cloud: Cloud, what: str, accept: str) -> tuple[dict[str, str], dict]:
    url = f"{_address(reference.host)}/v2/{reference.path}/{what}"
    headers = {"Accept": accept}
    if reference.host.endswith((".pkg.dev", "gcr.io")):
        headers["Authorization"] = f"Bearer {cloud.account.token}"
    status, answered, raw = fetch(url, "GET", None, headers, cloud.remaining_s())
    asked = f"artifactregistry {reference.text}"
    if status >= 400:
        raise _refused(status, raw, asked)
    try:
        return {k.lower(): v for k, v in answered.items()}, json.loads(raw)
    except ValueError:
        raise Trouble("other", f"{url} answered with something else than JSON", asked) from None


def _refused(status: int, raw: bytes, asked: str) -> Trouble:
    """Registries have an error shape of their own: {"errors": [{"code": ..., "message": ...}]}."""
    try:
        first = json.loads(raw)["errors"][0]
        message = str(first.get("message") or first.get("code"))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return explained(status, raw, asked)
    return explained(status, json.dumps({"error": {"message": message}}).encode(), asked)


def _address(host: str) -> str:
    """Plain HTTP for a registry on this machine, as docker has it; HTTPS for every other."""
    given = os.environ.get(ENDPOINT)
    if given and host.endswith(".pkg.dev"):
        return given.rstrip("/")
    bare = host.partition(":")[0]
    return f"{'http' if bare == 'localhost' or bare.startswith('127.') else 'https'}://{host}"
