"""Lines for a person, or JSON lines for Cloud Logging; in a terminal, a bar that moves while steps run."""

import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TextIO

import keras


def format_values(values: Mapping[str, float]) -> str:
    """loss 0.1234  accuracy 0.9712"""
    return "  ".join(
        f"{name} {value:.4g}" if abs(value) < 1e-3 else f"{name} {value:.4f}" for name, value in values.items()
    )


class Console:
    """Where one process of a job says things.

    Args:
        as_json: one JSON object a line with severity and message, which Cloud Logging reads
            (https://cloud.google.com/logging/docs/structured-logging).
        only_trouble: leave out what is no warning or error: the chief says the rest.
        label: who speaks, such as worker:1; "" for the chief.
    """

    def __init__(
        self, *, as_json: bool = False, label: str = "", only_trouble: bool = False, out: TextIO | None = None
    ):
        self.only_trouble = only_trouble
        self.as_json, self.label, self.out = as_json, label, out
        self._bar: keras.utils.Progbar | None = None
        self._lock = threading.Lock()

    @property
    def live(self) -> bool:
        """Whether somebody watches: then a bar shows each epoch's progress."""
        return not self.as_json and not self.label and (self.out or sys.stdout).isatty()

    def line(self, message: str, severity: str = "INFO") -> None:
        """A line of the log; severity is INFO, WARNING or ERROR."""
        if self.only_trouble and severity == "INFO":
            return
        out = self.out or (sys.stdout if self.as_json or severity == "INFO" else sys.stderr)
        if self.as_json:
            fields = {"severity": severity, "message": message} | ({"replica": self.label} if self.label else {})
            print(json.dumps(fields), file=out, flush=True)
            return
        prefix = (f"[{self.label}] " if self.label else "") + (f"{severity}: " if severity != "INFO" else "")
        with self._lock:
            if self._bar is not None:
                print(file=out)
            print(prefix + message, file=out, flush=True)

    def warn(self, message: str) -> None:
        """Something that a person should act on."""
        self.line(message, "WARNING")

    @contextlib.contextmanager
    def bar(self, steps: int, done: Callable[[], int], values: Callable[[], Mapping[str, float]]) -> Iterator[None]:
        """A progress bar of `steps` while the block runs; nothing where nobody watches.

        Args:
            done: steps made so far, read from a thread.
            values: what to show beside it.
        """
        if not self.live:
            yield
            return
        self._bar = keras.utils.Progbar(steps, stateful_metrics=list(values()), interval=0.2)
        closed = threading.Event()
        thread = threading.Thread(target=self._follow, args=(closed, steps, done, values), daemon=True)
        thread.start()
        try:
            yield
        finally:
            closed.set()
            thread.join()
            with self._lock:
                self._bar = None
                print(file=self.out or sys.stdout, flush=True)

    def _follow(self, closed: threading.Event, steps: int, done: Callable, values: Callable) -> None:
        while not closed.wait(0.25):
            with self._lock:
                shown: Any = list(values().items())
                self._bar.stateful_metrics.update(name for name, _ in shown)
                self._bar.update(min(done(), steps), shown, finalize=False)


class Rate:
    """Examples a second between two looks."""

    def __init__(self, batch_size: int, step: int):
        self.batch_size, self.step, self.start = batch_size, step, time.monotonic()
        self.first_step, self.first_start = step, self.start
        self.step_s = 0.0

    def look(self, step: int) -> float:
        """Examples a second since the last look; `step_s` is then the mean time of a step."""
        now = time.monotonic()
        self.step_s = (now - self.start) / max(1, step - self.step)
        self.start, self.step = now, step
        return self.batch_size / max(self.step_s, 1e-9)

    def overall(self, step: int) -> float:
        """Examples a second since the beginning, evaluation and checkpoints included."""
        return (step - self.first_step) * self.batch_size / max(time.monotonic() - self.first_start, 1e-9)
