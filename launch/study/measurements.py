"""What a trial reports: the lines that cloudml-hypertune keeps in its file.

Each call rewrites the file with the last 100 records, one JSON object a line, numbers as text:
{"global_step": "12", "timestamp": 1600000000.0, "trial": "1", "val_accuracy": "0.91", "checkpoint_path": ""}
(source: report_hyperparameter_tuning_metric of cloudml-hypertune 0.1.0.dev6).
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_OWN = {"global_step", "timestamp", "trial", "checkpoint_path"}


@dataclass(frozen=True, order=True)
class Measurement:
    """One value of the study's metric; `elapsed_s` is counted from the trial's first start."""

    step: int
    elapsed_s: float
    value: float


class Reader:
    """Reads one trial's file again and again, and keeps what has been in it."""

    def __init__(self, file: Path, metric: str, begun: float, known: Sequence[Measurement] = ()):
        """`begun` is the trial's start in seconds since the epoch; what is `known` was reported before it."""
        self._file, self._metric, self._begun = file, metric, begun
        self._found = {one.step: one for one in known}
        self._stamp: tuple[int, int] | None = None
        self.others: set[str] = set()  # metrics of other names that were reported

    def poll(self) -> list[Measurement]:
        """Every measurement so far, by step; the last one of a step counts."""
        try:
            status = self._file.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp != self._stamp:
                for line in self._file.read_text(encoding="utf-8", errors="replace").splitlines():
                    self._take(line)
                self._stamp = stamp
        except FileNotFoundError:
            pass  # nothing reported yet
        return [self._found[step] for step in sorted(self._found)]

    def _take(self, line: str) -> None:
        try:
            record = json.loads(line)
            step = int(float(record.get("global_step") or 0))
            timestamp = float(record.get("timestamp") or self._begun)
            self.others |= {str(key) for key in record} - _OWN - {self._metric}
            if self._metric not in record:
                return
            value = float(record[self._metric])
        except (ValueError, TypeError, AttributeError):
            return  # half a line: it is being written, and will be whole at the next look
        if math.isfinite(value):
            self._found[step] = Measurement(step, max(0.0, timestamp - self._begun), value)


def final(measurements: Sequence[Measurement], selection: str, maximize: bool) -> Measurement | None:
    """The measurement that counts, by measurementSelectionType; None where there is none."""
    if not measurements:
        return None
    if selection == "BEST_MEASUREMENT":
        pick = max if maximize else min
        return pick(measurements, key=lambda one: one.value)
    return max(measurements)
