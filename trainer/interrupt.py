"""Being told to stop, and being reminded to save, while the main thread is inside a long TensorFlow call.

Python runs a signal handler only between two of its own instructions, so a signal would wait for the end of a
call that makes hundreds of steps. The operating system writes it to a socket at once, and a thread that reads there
sets a variable which the step on the device looks at.
"""

import os
import signal
import socket
import threading
import time

import tensorflow as tf

from trainer.update import PAUSE, STOP


class Interrupt:
    """Sets `request` (float32 scalar variable) on SIGTERM and SIGINT, and every `every_s` seconds.

    Use as a context manager. A second SIGINT ends the process at once.
    """

    def __init__(self, request: tf.Variable, every_s: float | None = None):
        self.request, self.every_s = request, every_s
        self.signal: int | None = None
        self._due = time.monotonic() + every_s if every_s else float("inf")
        self._closed = threading.Event()

    def __enter__(self) -> "Interrupt":
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        self._before = {number: signal.signal(number, self._noted) for number in (signal.SIGTERM, signal.SIGINT)}
        self._fd = signal.set_wakeup_fd(self._write.fileno())
        self._thread = threading.Thread(target=self._watch, name="interrupt", daemon=True)
        self._thread.start()
        return self

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

    def saved(self) -> None:
        """A checkpoint has been made: the next one is due `every_s` from now."""
        if not self.asked_to_stop:
            self.request.assign(0.0)
        if self.every_s:
            self._due = time.monotonic() + self.every_s

    def _noted(self, *_: object) -> None:
        """The thread does the work; without a Python handler the signal would end the process."""

    def _watch(self) -> None:
        while not self._closed.is_set():
            self._read.settimeout(max(0.05, min(self._due - time.monotonic(), 3600)))
            try:
                number = self._read.recv(1)[0]
            except TimeoutError:
                if not self.asked_to_stop and time.monotonic() >= self._due:
                    self._due = float("inf")
                    self.request.assign(PAUSE)
                continue
            if number == signal.SIGINT and self.signal == signal.SIGINT:
                os._exit(130)
            if number:
                self.signal = number
                self.request.assign(STOP)
