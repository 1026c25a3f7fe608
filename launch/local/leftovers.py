"""Find and end what a job left running, by the mark that each of its processes carries in its environment.

A process group misses a child that made a session of its own; the mark does not. Where there is no /proc
(macOS) the process groups alone must do.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "TRAINYARD_RUN"


def marked(run: str) -> list[int]:
    """The ids of the processes, this one excepted, that carry the mark of `run`."""
    found = []
    wanted = f"{MARK}={run}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        # A process that ends while we look, or is somebody else's, is none of ours.
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def end(run: str, grace_s: float = 0.0) -> int:
    """SIGTERM (where `grace_s` gives time for it), then SIGKILL, until none of `run` is left; how many there were."""
    seen: set[int] = set()
    deadline = time.monotonic() + grace_s
    gentle = grace_s > 0
    while left := marked(run):
        if time.monotonic() > deadline + 10:
            break  # one that even SIGKILL doesn't end waits for the kernel (a dead disk, say)
        hard = not gentle or time.monotonic() > deadline
        for pid in left:
            if hard or pid not in seen:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if hard else signal.SIGTERM)
            seen.add(pid)
        time.sleep(0.05)
    return len(seen)
