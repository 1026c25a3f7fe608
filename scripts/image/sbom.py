"""A software bill of materials, CycloneDX 1.6: every Python package in the image, with the lock's hashes.

python sbom.py LOCK OUT      run by each Dockerfile once the packages are in
"""

import importlib.metadata
import json
import pathlib
import re
import sys

PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", re.MULTILINE)


def locked_hashes(lock: str) -> dict[tuple[str, str], list[str]]:
    """(name, version) -> the SHA-256 digests that the lock allows for it, one for each wheel and sdist."""
    starts = [*PINNED.finditer(lock)]
    ends = [entry.start() for entry in starts[1:]] + [len(lock)]
    return {
        (entry[1], entry[2]): re.findall(r"--hash=sha256:([0-9a-f]{64})", lock[entry.start() : end])
        for entry, end in zip(starts, ends, strict=True)
    }


def component(name: str, version: str, digests: list[str]) -> dict:
    """One package as CycloneDX has it. Its one hash, where the lock allows just one; several stand as properties."""
    purl = f"pkg:pypi/{name}@{version}"
    entry = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if len(digests) == 1:
        entry["hashes"] = [{"alg": "SHA-256", "content": digests[0]}]
    elif digests:
        entry["properties"] = [{"name": "trainyard:allowed-sha256", "value": digest} for digest in digests]
    return entry


def bill(lock: str) -> dict:
    """The document: what is installed here, whether it came from the lock or with the base image."""
    hashes = locked_hashes(lock)
    installed = set()
    for package in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
        installed.add((name, package.version))
    components = [component(name, version, hashes.get((name, version), [])) for name, version in sorted(installed)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": "trainyard", "bom-ref": "trainyard"}},
        "components": components,
        "dependencies": [{"ref": "trainyard", "dependsOn": [entry["bom-ref"] for entry in components]}],
    }


def main(lock: str, out: str) -> None:
    """Write the bill of this environment to the file `out`."""
    path = pathlib.Path(out)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(bill(pathlib.Path(lock).read_text()), indent=1) + "\n")
    path.chmod(0o644)


if __name__ == "__main__":
    main(*sys.argv[1:])
