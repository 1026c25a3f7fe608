"""Starts trainer processes without importing TensorFlow for each: one process imports it, and forks.

A forked process is a job's process like any other: it has its own process group, environment, signals and output.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]


class Job:
    """One process of a job."""

    def __init__(self, server: "ForkServer", pid: int, output: pathlib.Path):
        self.server, self.pid, self.output = server, pid, output

    @property
    def text(self) -> str:
        """What it has said so far."""
        return self.output.read_text(errors="replace") if self.output.exists() else ""

    def poll(self) -> int | None:
        """Its exit code, minus the signal that ended it, or None while it runs."""
        return self.server.ask({"poll": self.pid})["code"]

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        while (code := self.poll()) is None:
            time.sleep(0.05)
        return code

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal, where it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)


class ForkServer:
    """Use as a context manager; `start` gives a Job. `environ` is what its processes have, by default this one's."""

    def __init__(self, environ: dict[str, str] | None = None):
        self._environ = environ

    def __enter__(self) -> "ForkServer":
        environ = {
            **(os.environ if self._environ is None else self._environ),
            "TF_CPP_MIN_LOG_LEVEL": "2",
            "KERAS_BACKEND": "tensorflow",
            "CUDA_VISIBLE_DEVICES": "-1",
        }
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environ
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait()

    def ask(self, request: dict) -> dict:
        """One request to the server, and its answer."""
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def start(self, arguments: list[str], output: pathlib.Path, environ: dict[str, str] | None = None, setup="") -> Job:
        """`python -m trainer.task ARGUMENTS`; `setup` is Python that runs before it (to put in a model of a test)."""
        request = {"arguments": arguments, "output": str(output), "environ": environ or {}, "setup": setup}
        return Job(self, self.ask(request)["pid"], output)


def _serve() -> None:
    sys.path.insert(0, str(ROOT))
    import trainer.run  # noqa: F401  what is slow to import

    codes: dict[int, int] = {}
    children: set[int] = set()
    for line in sys.stdin:
        request = json.loads(line)
        if "poll" in request:
            pid = request["poll"]
            if pid not in codes:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    codes[pid] = os.waitstatus_to_exitcode(status)
                    children.discard(pid)
            print(json.dumps({"code": codes.get(pid)}), flush=True)
            continue
        pid = os.fork()
        if not pid:
            _run(request)
        children.add(pid)
        print(json.dumps({"pid": pid}), flush=True)
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _run(request: dict) -> None:
    from trainer import task

    os.setsid()
    opened = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(opened, 1)
    os.dup2(opened, 2)
    os.environ.update(request["environ"])
    code = 70
    try:
        exec(request["setup"], {"__name__": "setup"})
        code = task.main(request["arguments"])
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
