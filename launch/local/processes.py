"""Replicas as processes of this machine, in the project's own environment."""

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from launch.local import leftovers, watchdog
from launch.local.environment import inherited
from launch.local.plan import PlanError, Replica

PORTS = range(15_000, 32_000)  # under the range from which the kernel takes ports for outgoing connections


class Processes:
    """A runner: one process group a replica, in `folder`, each with a port of its own on the loopback address."""

    def __init__(self, run: str, folder: Path):
        self._run, self._folder = run, folder
        self._environment = {
            **inherited(os.environ),
            "PATH": os.pathsep.join([str(python_folder(folder)), os.environ.get("PATH", os.defpath)]),
            "PYTHONUNBUFFERED": "1",
            leftovers.MARK: run,
        }
        self._watchdog: subprocess.Popen | None = None

    def open(self, replicas: Sequence[Replica]) -> dict[str, str]:
        """A free port for each replica."""
        self._watchdog = watchdog.start(self._run)
        ports = free_ports(len(replicas))
        return {replica.name: f"127.0.0.1:{port}" for replica, port in zip(replicas, ports, strict=True)}

    def start(
        self,
        replica: Replica,
        environment: Mapping[str, str],
        on_line: Callable[[str], None],
        on_exit: Callable[[int], None],
    ) -> "Process":
        """Start the replica's program. Raises PlanError where there is no such program."""
        environment = {**self._environment, **environment}
        program = shutil.which(replica.program[0], path=environment["PATH"])
        if program is None:
            raise PlanError(
                f"{replica.name} starts {replica.program[0]!r}, which is not on this machine; "
                "--runner=docker runs it in its image"
            )
        process = subprocess.Popen(
            [program, *replica.program[1:]],
            env=environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        return Process(process, on_line, on_exit)

    def close(self) -> None:
        """End what is left, and the watchdog."""
        leftovers.end(self._run)
        if self._watchdog:
            watchdog.dismiss(self._watchdog)
            self._watchdog = None


class Process:
    """A running replica and the process group that it leads."""

    def __init__(self, process: subprocess.Popen, on_line: Callable[[str], None], on_exit: Callable[[int], None]):
        self._process = process
        self._reaping = threading.Lock()
        reader = threading.Thread(target=self._read, args=(on_line,), daemon=True)
        reader.start()
        threading.Thread(target=self._wait, args=(reader, on_exit), daemon=True).start()

    def terminate(self) -> None:
        """SIGTERM to the leader alone, as a container's PID 1 gets it."""
        self._signal(os.kill, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the whole group."""
        self._signal(os.killpg, signal.SIGKILL)

    def _signal(self, send: Callable[[int, int], None], number: int) -> None:
        """Unless it was reaped: its id may be another's then. Popen.send_signal would reap it, under _wait's feet."""
        with self._reaping, contextlib.suppress(ProcessLookupError, PermissionError):
            if self._process.returncode is None:
                send(self._process.pid, number)

    def _read(self, on_line: Callable[[str], None]) -> None:
        for line in self._process.stdout:
            on_line(line.rstrip("\n"))

    def _wait(self, reader: threading.Thread, on_exit: Callable[[int], None]) -> None:
        """A container ends with its PID 1, so a group ends with its leader."""
        if hasattr(os, "waitid"):  # wait without reaping: until then the group's id can't become another's
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        reader.join(timeout=2)  # a child that left the group may hold the pipe open
        with self._reaping:
            code = self._process.wait()
        on_exit(code if code >= 0 else 128 - code)


def python_folder(folder: Path) -> Path:
    """The bin/ of the project's environment, or of the Python that runs this where there is none."""
    project = folder / ".venv" / "bin"
    return project if (project / "python").exists() else Path(sys.executable).parent


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nothing uses now, taken at random so that two jobs seldom meet."""
    found: list[int] = []
    dice = random.SystemRandom()  # not the seeded one: two jobs that seed alike must not meet
    for _ in range(100 * count):
        if len(found) == count:
            break
        port = dice.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in found:
            found.append(port)
    if len(found) < count:
        raise PlanError(f"{count} free ports were needed on 127.0.0.1, {len(found)} were found")
    return found
