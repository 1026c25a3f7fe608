"""The TensorFlow that is installed: read from its files, never imported."""

import dataclasses
import importlib.metadata
import importlib.util
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

# Every name under which a wheel brings the folder tensorflow/; two of them overwrite each other.
NAMES = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu", "tf-nightly", "tf-nightly-cpu", "tf-nightly-tpu")


@dataclasses.dataclass(frozen=True)
class TensorFlow:
    """A TensorFlow wheel: its name and version, its folder, and what it was built for and asks for."""

    name: str
    version: str
    folder: Path
    others: tuple[str, ...]  # further TensorFlow wheels in the same environment
    build: dict[str, Any]  # what tf.sysconfig.get_build_info() returns
    requires: tuple[str, ...]  # its Requires-Dist lines, extras included
    tags: tuple[str, ...]  # its wheel tags, such as cp312-cp312-manylinux_2_27_x86_64

    @classmethod
    def find(cls) -> "TensorFlow | None":
        """The TensorFlow that `import tensorflow` would take, None where there is none."""
        present = [name for name in NAMES if version_of(name)]
        if not present:
            return None
        # Of two, the one installed last has its files in the folder; the specific name says more.
        name = max(present, key=len)
        wheel = importlib.metadata.distribution(name)
        folder = Path(str(wheel.locate_file("tensorflow")))
        return cls(
            name=name,
            version=wheel.version,
            folder=folder,
            others=tuple(other for other in present if other != name),
            build=_build_info(folder / "python/platform/build_info.py"),
            requires=tuple(wheel.requires or ()),
            tags=tuple(re.findall(r"^Tag: (.+)$", wheel.read_text("WHEEL") or "", re.MULTILINE)),
        )

    def wants(self, package: str) -> str:
        """The version range that TensorFlow's own metadata names for a package, "" where it names none."""
        for line in self.requires:
            found = re.match(rf"{re.escape(package)}\s*(?:\[[^]]*\])?\s*\(?([^;)]*)", line, re.IGNORECASE)
            if found and re.match(r"[<>=~! ]|$", found[1]):
                return ",".join(sorted(found[1].replace(" ", "").split(","), reverse=True))
        return ""


def version_of(package: str) -> str:
    """The installed version of a package, "" where it is not installed."""
    try:
        metadata = importlib.metadata.distribution(package).read_text("METADATA") or ""
    except importlib.metadata.PackageNotFoundError:
        return ""
    # One line of it: importlib.metadata.version parses the README that comes with it too, 4 ms a package.
    found = re.search(r"^Version: *(\S+)", metadata, re.MULTILINE)
    return found[1] if found else ""


def within(version: str, wanted: str) -> bool:
    """Whether a version lies in a range such as ">=9.3,<10"; TensorFlow itself depends on packaging."""
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(wanted).contains(version, prereleases=True)


def nvidia_folders(tensorflow: TensorFlow) -> list[Path]:
    """The nvidia/ folders that wheels may have been unpacked into, TensorFlow's own neighbour first."""
    places = [tensorflow.folder.parent, *map(Path, sysconfig.get_paths().values()), *map(Path, sys.path)]
    return [place for place in dict.fromkeys(path / "nvidia" for path in places) if place.is_dir()]


def _build_info(module: Path) -> dict[str, Any]:
    """What TensorFlow's build wrote down, from the one file that get_build_info() reads; {} if it is gone."""
    if not module.is_file():
        return {}
    spec = importlib.util.spec_from_file_location("tensorflow_build_info", module)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return dict(getattr(loaded, "build_info", {}))
