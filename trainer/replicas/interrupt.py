"""Being told to stop, and being reminded to save, while the main thread is inside a long TensorFlow call.

Python runs a signal handler only between two of its own instructions, so a signal would wait for the end of a
call that makes hundreds of steps. The operating system writes it to a socket at once, and a thread that reads there
sets a variable which the step on the device looks at. Before and after training the thread ends the process itself:
the first process of a container gets no default handling of SIGTERM from the kernel.
"""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

STOP, PAUSE = 1000.0, 1.0  # a request; their sum over the replicas tells whether any asked to stop
STOPPED, KILLED = 143, 130


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


class Interrupt:
    """Turns SIGTERM and SIGINT into a request to stop, and time into one to save. Use as a context manager.

    Between `attach` and `detach` the request goes to training, which saves; outside of that a signal ends the
    process with exit code 143, after `idle_message` was said. A second SIGINT ends it at once with 130.
    """

    def __init__(self, say: Callable[[str], None] = _say):
        self.say = say
        self.idle_message = "told to stop before training began; the same command starts again"
        self.signal: int | None = None
        self._request: Any = None  # float32 scalar tf.Variable
        self._every_s: float | None = None
        self._due = float("inf")
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def __enter__(self) -> "Interrupt":
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        self._before = self.listen()
        self._fd = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._watch, name="interrupt", daemon=True)
        self._thread.start()
        return self

    def listen(self) -> dict[int, Any]:
        """Handle the signals from now on; what handled them before.

        To be called again once TensorFlow has joined a cluster: it puts a handler of its own on SIGTERM then.
        """
        return {number: signal.signal(number, self._noted) for number in (signal.SIGTERM, signal.SIGINT)}

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        signal.set_wakeup_fd(self._fd)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._write.send(b"\0")
        self._thread.join()
        self._read.close()
        self._write.close()

    @property
    def asked_to_stop(self) -> bool:
        """Whether this process got a signal."""
        return self.signal is not None

    def attach(self, request: Any, every_s: float | None = None) -> None:
        """Training begins: set `request` (float32 scalar variable) from now on; to save, every `every_s` seconds."""
        with self._lock:
            self._request, self._every_s = request, every_s
        self.saved()

    def detach(self, idle_message: str) -> None:
        """Training is over and all is written: a signal ends the process."""
        with self._lock:
            self._request, self._due, self.idle_message = None, float("inf"), idle_message
            pending = self.signal
        if pending:
            self._end()

    def saved(self, write_s: float = 0.0) -> None:
        """A checkpoint has been made: the next one is due so that it is written, too, in `every_s` from now.

        Args:
            write_s: how long writing one takes.
        """
        if not self.asked_to_stop and self._request is not None:
            self._request.assign(0.0)
        if self._every_s:
            self._due = time.monotonic() + max(self._every_s - write_s, self._every_s / 2)
            self._write.send(b"\0")  # the thread looks at the new time

    def _noted(self, *_: object) -> None:
        """The thread does the work; without a Python handler the signal would end the process."""

    def _end(self) -> None:
        self.say(self.idle_message)
        sys.stdout.flush()
        os._exit(STOPPED)

    def _watch(self) -> None:
        while not self._closed.is_set():
            self._read.settimeout(max(0.05, min(self._due - time.monotonic(), 3600)))
            try:
                number = self._read.recv(1)[0]
            except TimeoutError:
                self._remind()
                continue
            if number == signal.SIGINT and self.signal == signal.SIGINT:
                self.say("stopped at once; what was saved before stays, and the same command goes on from there")
                os._exit(KILLED)
            if number in (signal.SIGTERM, signal.SIGINT):  # the socket gets every signal that Python handles
                self._pass_on(number)

    def _remind(self) -> None:
        with self._lock:
            if self._request is not None and not self.asked_to_stop and time.monotonic() >= self._due:
                self._due = float("inf")
                self._request.assign(PAUSE)

    def _pass_on(self, number: int) -> None:
        with self._lock:
            self.signal = number
            if self._request is None:
                self._end()
            self._request.assign(STOP)
