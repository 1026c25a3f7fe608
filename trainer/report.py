"""What people and services are told: the terminal or Cloud Logging, TensorBoard, the tuning service, result.json."""

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

import tensorflow as tf


class Reporter:
    """One job's reports. Only the chief writes files; every replica may log.

    Args:
        log_dir: TensorBoard's folder; "" for a replica that writes none.
        as_json: one JSON object a line, as Cloud Logging reads it, instead of plain lines.
    """

    def __init__(self, log_dir: str = "", *, as_json: bool = False, label: str = ""):
        self.as_json, self.label, self.log_dir = as_json, label, log_dir
        self._writers: dict[str, Any] = {}

    def line(self, message: str, severity: str = "INFO") -> None:
        """A line of the log. Severity: INFO, WARNING or ERROR, as Cloud Logging names them."""
        if self.as_json:
            print(json.dumps({"severity": severity, "message": message}), flush=True)
            return
        prefix = "" if severity == "INFO" else f"{severity}: "
        print(f"{prefix}{message}", file=sys.stdout if severity == "INFO" else sys.stderr, flush=True)

    def warn(self, message: str) -> None:
        """A line that a person should act on."""
        self.line(message, "WARNING")

    def scalars(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """TensorBoard scalars; `kind` is the curve's name, train or validation."""
        if not self.log_dir:
            return
        if kind not in self._writers:
            self._writers[kind] = tf.summary.create_file_writer(f"{self.log_dir}/{kind}")
        with self._writers[kind].as_default(step):
            for name, value in values.items():
                tf.summary.scalar(name, value)

    def close(self) -> None:
        """Write what is buffered."""
        for writer in self._writers.values():
            writer.close()


class Clock:
    """Examples a second between two looks."""

    def __init__(self, batch_size: int):
        self.batch_size, self.start, self.step = batch_size, time.monotonic(), 0

    def rate(self, step: int) -> float:
        """Examples a second since the last look."""
        now = time.monotonic()
        rate = (step - self.step) * self.batch_size / max(now - self.start, 1e-9)
        self.start, self.step = now, step
        return rate


def write_json(path: str, value: Mapping[str, Any]) -> None:
    """A JSON file, whole or not at all; local or gs://."""
    folder = os.path.dirname(path)
    if folder:
        tf.io.gfile.makedirs(folder)
    partial = f"{path}.partial"
    with tf.io.gfile.GFile(partial, "w") as file:
        file.write(json.dumps(value, indent=1, sort_keys=True) + "\n")
    tf.io.gfile.rename(partial, path, overwrite=True)
