"""Write requirements/*.lock from pyproject.toml's extras (and benchmark.in), and say what changed.

python scripts/lock.py UV [--upgrade]     what `make lock` and `make lock UPGRADE=1` run
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

import versions

ROOT = pathlib.Path(__file__).resolve().parents[1]
SOURCES = {extra: [f"--extra={extra}", "pyproject.toml"] for extra in ("cpu", "gpu", "tpu", "launch", "dev")}
# The rivals of make benchmark: their dependencies are ours already.
SOURCES["benchmark"] = ["--no-deps", "requirements/benchmark.in"]
# Universal: one lock for every Python from 3.11 on and for Linux and macOS. No index is named: whoever installs
# has their own, and the hashes hold what comes from it.
OPTIONS = (
    "--quiet", "--universal", "--python-version=3.11", "--generate-hashes", "--no-emit-index-url",
    "--no-annotate", "--no-header",
)  # fmt: skip


def pins(lock: str) -> dict[str, str]:
    """Package -> version, or `1.0 | 2.0` where it differs by Python or platform."""
    found: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9][a-z0-9._-]*)==([^ ;\\]+)", lock, re.MULTILINE):
        found.setdefault(name, []).append(version)
    return {name: " | ".join(sorted(set(several))) for name, several in found.items()}


def changes(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """A line for each package that came, went or changed."""
    lines = []
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old is None:
            lines.append(f"+ {name} {new}")
        elif new is None:
            lines.append(f"- {name} {old}")
        elif old != new:
            lines.append(f"  {name} {old} -> {new}")
    return lines


def compile_lock(uv: str, name: str, current: pathlib.Path, upgrade: bool) -> str:
    """The new text of a lock; the old pins are kept unless `upgrade`. Nothing is written over what is there."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / current.name
        if current.exists():
            out.write_text(current.read_text())
        command = [uv, "pip", "compile", *OPTIONS, *(["--upgrade"] if upgrade else []), *SOURCES[name]]
        ran = subprocess.run([*command, "-o", str(out)], cwd=ROOT, check=False)
        if ran.returncode:
            raise SystemExit(
                f"make lock: uv found no set of versions for {name}.lock (above); the locks are as they were"
            )
        return out.read_text()


def main() -> int:
    """Make all of them, then write all of them, then docs/versions.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("uv", help="the uv to run")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    options = parser.parse_args()
    files = {name: ROOT / "requirements" / f"{name}.lock" for name in SOURCES}
    made = {name: compile_lock(options.uv, name, file, options.upgrade) for name, file in files.items()}
    for name, file in files.items():
        before = pins(file.read_text()) if file.exists() else {}
        file.write_text(made[name])
        told = changes(before, pins(made[name]))
        print(f"requirements/{name}.lock: {len(told)} changed" if told else f"requirements/{name}.lock: as it was")
        print("".join(f"  {line}\n" for line in told), end="")
    versions.TABLE.write_text(versions.page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
