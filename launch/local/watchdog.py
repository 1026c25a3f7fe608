"""Outlives a launcher that is killed, and cleans up after it.

Started as `python watchdog.py RUN [--containers]` with a pipe as its standard input that only the launcher
holds: when the launcher ends, however it ends, the pipe closes and whatever of RUN is left is stopped.
"""

import os
import subprocess
import sys
from pathlib import Path

GRACE_S = 5.0


def start(run: str, containers: bool = False) -> subprocess.Popen:
    """The watchdog of this process for `run`; hand it to `dismiss` when all is done."""
    command = [sys.executable, *([] if containers else ["-S"]), __file__, run, *(["--containers"] * containers)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True)


def dismiss(watchdog: subprocess.Popen) -> None:
    """End a watchdog whose job is over and cleaned up."""
    watchdog.kill()
    watchdog.stdin.close()
    watchdog.wait()


def main(argv: list[str]) -> None:
    """Wait for the launcher's end, then clean up."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    while os.read(0, 1024):
        pass
    if "--containers" in argv:
        from launch.local import containers

        containers.remove(argv[0])
    from launch.local import leftovers

    leftovers.end(argv[0], GRACE_S)


if __name__ == "__main__":
    main(sys.argv[1:])
