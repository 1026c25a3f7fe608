"""Which job files were rehearsed, on which commit: `launch local` writes it down, preflight reads it.

.cache/rehearsed.json: {"gpu.yaml": {"commit": "<sha>", "dirty": false, "at": "2026-11-21T02:00:00+00:00"}}
"""

import datetime
import json
import pathlib
import subprocess

from launch import project, remembered

NAME = "rehearsed.json"


def state(root: pathlib.Path = project.ROOT) -> tuple[str, bool]:
    """(commit, whether tracked files differ from it); ("", False) outside of git."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=30)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        # project.env is filled in by everybody and is no code
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!project.env")
        return git("rev-parse", "HEAD"), bool(changed)
    except (OSError, subprocess.TimeoutExpired):
        return "", False


def remember(file: str, commit: str, dirty: bool) -> None:
    """Note that a rehearsal of `file`, begun at this state, has succeeded."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    remembered.write(NAME, {**records(), pathlib.Path(file).name: {"commit": commit, "dirty": dirty, "at": now}})


def records(root: pathlib.Path | None = None) -> dict[str, dict]:
    """File name -> its last rehearsal; {} where there is none, or no readable note of it."""
    folder = root / ".cache" if root else remembered.CACHE
    try:
        found = json.loads((folder / NAME).read_text())
    except (OSError, ValueError):
        return {}
    return {name: one for name, one in found.items() if isinstance(one, dict)} if isinstance(found, dict) else {}
