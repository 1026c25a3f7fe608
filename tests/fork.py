"""A fork of this repository in a folder: everything as it is, the two files replaced.

`make test-forks` runs the shipped tests, unedited, in a fork for each folder of tests/examples/.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parents[1]
EXAMPLES = ROOT / "tests" / "examples"


def make_fork(folder: pathlib.Path, example: str | None = None) -> pathlib.Path:
    """A copy of trainer/ and links to the rest in `folder`, with the model.py and data.py of an example."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in ROOT.iterdir():
        if path.name not in ("trainer", "jobs", ".git", ".cache", "build", "dist", "tabular"):
            (folder / path.name).symlink_to(path)
    shutil.copytree(ROOT / "trainer", folder / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    if example:
        replace(folder, example)
    return folder


def clone(folder: pathlib.Path, example: str) -> pathlib.Path:
    """What `git clone` gives of the files here, with the two files of an example, and this environment."""
    command = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard", "-z"]
    for name in filter(None, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    (folder / ".venv").symlink_to(ROOT / ".venv")
    replace(folder, example)
    return folder


def replace(folder: pathlib.Path, example: str) -> None:
    """Put an example's model.py and data.py, and the data that they read, where a fork puts its own."""
    for path in (EXAMPLES / example).glob("*.py"):
        shutil.copy(path, folder / "trainer" / path.name)
    if example == "tabular":
        write_breast_cancer(folder / "tabular")


def write_breast_cancer(folder: pathlib.Path) -> None:
    """scikit-learn's breast cancer data as train.csv (450 lines) and validation.csv (119)."""
    from sklearn.datasets import load_breast_cancer

    features, labels = load_breast_cancer(return_X_y=True)
    rows = [",".join(f"{n:.6g}" for n in x) + f",{y}" for x, y in zip(features, labels, strict=True)]
    header = ",".join(f"x{i}" for i in range(30)) + ",label"
    folder.mkdir()
    for name, part in (("train", rows[:450]), ("validation", rows[450:])):
        (folder / f"{name}.csv").write_text("\n".join([header, *part]) + "\n")


def clean_environment() -> dict[str, str]:
    """This process's environment without what describes a job or the model of the tests."""
    left_out = ("TF_CONFIG", "AIP_", "CLOUD_ML", "TRAINYARD_EXAMPLE")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def shipped_tests(fork: pathlib.Path, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Run the tests that lie in a clone."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, cwd=fork, env=clean_environment(), text=True, check=False, **options)


def train(fork: pathlib.Path, *flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the fork's trainer to its end."""
    return subprocess.run(
        [sys.executable, "-m", "trainer.task", *flags],
        cwd=fork,
        env=clean_environment() | environ,
        capture_output=True,
        text=True,
        timeout=900,
    )


def main() -> int:
    """All tests in a fork for each example; 1 where one fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.fork", description=__doc__)
    parser.add_argument("--examples", nargs="*", default=[path.name for path in sorted(EXAMPLES.iterdir())])
    parser.add_argument("arguments", nargs="*", help="what pytest gets, after --")
    options = parser.parse_args()
    failed = []
    for example in options.examples:
        with tempfile.TemporaryDirectory() as folder:
            print(f"== {example} ==", flush=True)
            if shipped_tests(clone(pathlib.Path(folder), example), *(options.arguments or ["-n", "2"])).returncode:
                failed.append(example)
    print(f"failed in: {', '.join(failed)}" if failed else f"all passed in {len(options.examples)} forks")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
