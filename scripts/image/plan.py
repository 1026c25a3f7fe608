"""What goes into which layer of an image: run by each Dockerfile with the Python of its base.

    python plan.py LOCK OUT      writes OUT/tensorflow.txt and OUT/without.txt

tensorflow.txt holds TensorFlow, its accelerator's libraries and all that they need, out of the lock and
with its hashes: the layer that is made of it survives any change to the rest of the lock.
without.txt names what is left out: what training never imports, and what the base brings itself, since a
TensorFlow of the version that the lock asks for stays.
"""

import importlib.metadata
import pathlib
import re
import subprocess
import sys

UV = "/tools/bin/uv"
TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-tpu")
# Asked for by the metadata of TensorFlow (libclang, 62 MB) and TensorBoard (its web server's reader, 20 MB), and
# imported by neither when training.
UNUSED = ("libclang", "tensorboard-data-server")
FIRST_LAYER = re.compile(r"^((?:tensorflow|libtpu|nvidia-)[a-z0-9-]*)==([^ ;\\]+)([^\\]*)", re.MULTILINE)


def first_layer(lock: str) -> dict[str, str]:
    """Name -> requirement of TensorFlow and of what its accelerator brings, as the lock pins them."""
    return {name: f"{name}=={version}{marker.rstrip()}" for name, version, marker in FIRST_LAYER.findall(lock)}


def in_base(wanted: set[str]) -> list[str]:
    """The names of TensorFlow that the lock asks for and this base brings under any of its names.

    Raises SystemExit where the base's version is another one: two would overwrite each other's files.
    """
    for name in TENSORFLOW:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if {found} != wanted:
            raise SystemExit(
                f"BASE_IMAGE brings {name} {found}, the lock asks for TensorFlow {' or '.join(sorted(wanted))}. "
                "Take a base with that version or with none, or change it in pyproject.toml and run `make lock`."
            )
        print(f"BASE_IMAGE brings {name} {found}; it stays, and the doctor checks it")
        return list(TENSORFLOW)
    return []


def main(lock_path: str, out: str) -> None:
    """Write the two files into the folder `out`."""
    folder = pathlib.Path(out)
    layer = first_layer(pathlib.Path(lock_path).read_text())
    versions = {requirement.split("==")[1].split()[0] for name, requirement in layer.items() if name in TENSORFLOW}
    without = in_base(versions)
    (folder / "without.txt").write_text("".join(f"{name}\n" for name in (*without, *UNUSED)))
    asked = [requirement for name, requirement in layer.items() if name not in without]
    (folder / "asked.txt").write_text("\n".join(asked) + "\n")
    # fmt: off
    subprocess.run(
        [UV, "pip", "compile", "--quiet", "--generate-hashes", "--no-annotate", "--no-header", "--no-emit-index-url",
         "--python", sys.executable, "--constraints", lock_path, "--excludes", str(folder / "without.txt"),
         "--output-file", str(folder / "tensorflow.txt"), str(folder / "asked.txt")],
        check=True,
    )
    # fmt: on


if __name__ == "__main__":
    main(*sys.argv[1:])
