"""One run at a time in a folder: two would write over each other's checkpoints."""

import fcntl
from pathlib import Path
from typing import TextIO

from launch.errors import LaunchError

NAME = ".lock"


def hold(folder: Path) -> TextIO:
    """Make the folder and take it; closing the result, or ending, lets it go. Raises LaunchError where it is taken."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / NAME).open("a")
    except OSError as error:
        raise LaunchError(f"{folder} can't be written ({error.strerror}); --output=... takes another folder") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise LaunchError(f"{folder} is in use by another run; wait for it, or give --output=...") from None
    return lock
