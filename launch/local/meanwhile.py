"""`launch validate` beside a job that runs already: a field that the API doesn't know does nothing here either."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from launch.local.supervisor import LAUNCHER

SHOWN = 3


@contextlib.contextmanager
def checked(file: str, show: Callable[[str, str], None]) -> Iterator[None]:
    """Show what validate finds in `file` when it has it; whoever leaves earlier doesn't wait for it.

    It runs in a process of its own and gives way to the job (nice), which is why it isn't asked first.
    """
    command = [sys.executable, "-c", "import os; os.nice(10); from launch.__main__ import main; main()"]
    process = subprocess.Popen(
        [*command, "validate", "--json", str(Path(file).resolve())],
        cwd=Path(__file__).resolve().parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    reader = threading.Thread(target=_tell, args=(process, file, show), daemon=True)
    reader.start()
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reader.join(timeout=1)


def _tell(process: subprocess.Popen, file: str, show: Callable[[str, str], None]) -> None:
    try:
        found = json.loads(process.stdout.read())["findings"]
    except (ValueError, KeyError):
        return  # the job ended first
    for one in found[:SHOWN]:
        text = f"{file}:{one['line']}:{one['column']}: {one['came']}; expected {one['expected']}"
        show(LAUNCHER, text.replace("\n", " "))
    if len(found) > SHOWN:
        show(LAUNCHER, f"and {len(found) - SHOWN} findings more: `launch validate {file}` has them all")
