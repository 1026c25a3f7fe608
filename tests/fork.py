"""A fork of this repository in a folder: everything as it is, the two files replaced."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = ROOT / "tests" / "examples"


def make_fork(folder: pathlib.Path, example: str | None = None) -> pathlib.Path:
    """A copy of trainer/ and links to the rest in `folder`, with the model.py and data.py of an example."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in ROOT.iterdir():
        if path.name not in ("trainer", "jobs", ".git", ".cache", "build", "dist"):
            (folder / path.name).symlink_to(path)
    shutil.copytree(ROOT / "trainer", folder / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (EXAMPLES / example).glob("*.py") if example else ():
        shutil.copy(path, folder / "trainer" / path.name)
    if example == "tabular":
        write_breast_cancer(folder / "tabular")
    return folder


def write_breast_cancer(folder: pathlib.Path) -> None:
    """scikit-learn's breast cancer data as train.csv (450 lines) and validation.csv (119)."""
    from sklearn.datasets import load_breast_cancer

    features, labels = load_breast_cancer(return_X_y=True)
    rows = [",".join(f"{n:.6g}" for n in x) + f",{y}" for x, y in zip(features, labels, strict=True)]
    header = ",".join(f"x{i}" for i in range(30)) + ",label"
    folder.mkdir()
    for name, part in (("train", rows[:450]), ("validation", rows[450:])):
        (folder / f"{name}.csv").write_text("\n".join([header, *part]) + "\n")


def train(fork: pathlib.Path, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the fork's trainer to its end."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("TF_CONFIG", "AIP_", "CLOUD_ML"))
    }
    return subprocess.run(
        [sys.executable, "-m", "trainer.task", *flags],
        cwd=fork,
        env=clean | environ,
        capture_output=True,
        text=True,
        timeout=900,
    )
