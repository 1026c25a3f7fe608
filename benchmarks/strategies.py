"""What a strategy costs: two workers against one, Mirrored with one replica, and tf_keras' `fit` on two workers.

Every process has one core and one thread. Batches are as large per worker in all of them, so two workers make twice
the examples of one in each step.
"""

import contextlib
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from benchmarks.rows import Row, interleaved, ratio

STEPS = {"resnet": 12, "digits": 300}
REPEATS = {"resnet": 5, "digits": 15}
RIVALS = os.path.join(sys.prefix, "rivals")  # tf_keras lies beside the environment, not in it


class Group:
    """The processes of one contender, ready to make steps together."""

    def __init__(self, kind: str, subject: str, workers: int, log: str):
        environ = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), RIVALS]))
        self.workers, self.log = workers, log
        self.processes = []
        for index, config in enumerate(_clusters(workers)):
            with open(f"{log}-{index}", "w") as errors:
                process = subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.member", kind, subject],
                    env={**environ, **config},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                )
            self.processes.append(process)

    def answers(self, word: str) -> list[str]:
        """What each says after `word`; ends the benchmark with the log's last line where one has ended."""
        found = []
        for index, process in enumerate(self.processes):
            for line in process.stdout:
                if line.startswith(word):
                    found.append(line.removeprefix(word).strip())
                    break
            else:
                with open(f"{self.log}-{index}") as log:
                    raise SystemExit(f"a contender ended: {' '.join(process.args)}\n{log.read()[-2000:]}")
        return found

    def rate(self, steps: int) -> float:
        """Steps a second, all workers together making each."""
        for process in self.processes:
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        return steps / max(map(float, self.answers("seconds")))

    def close(self) -> None:
        """End them."""
        for process in self.processes:
            process.kill()
            process.wait()


def _clusters(workers: int) -> list[dict[str, str]]:
    """TF_CONFIG of each worker; none for one alone."""
    if workers == 1:
        return [{"TF_CONFIG": "{}"}]
    with contextlib.ExitStack() as held:
        ports = [held.enter_context(socket.socket()) for _ in range(workers)]
        for port in ports:
            port.bind(("localhost", 0))
        addresses = [f"localhost:{port.getsockname()[1]}" for port in ports]
    tasks = [{"cluster": {"worker": addresses}, "task": {"type": "worker", "index": n}} for n in range(workers)]
    return [{"TF_CONFIG": json.dumps(task)} for task in tasks]


@contextlib.contextmanager
def _groups(subject: str, kinds: dict[str, int]) -> Iterator[dict[str, Group]]:
    groups: dict[str, Group] = {}
    with tempfile.TemporaryDirectory() as folder:
        try:
            for kind, workers in kinds.items():
                groups[kind] = Group(kind, subject, workers, os.path.join(folder, kind))
                groups[kind].answers("ready")
            yield groups
        finally:
            for group in groups.values():
                group.close()


def measure() -> list[Row]:
    """The four rows."""
    rows = []
    for subject, kinds in (
        ("resnet", {"one_device": 1, "mirrored": 1, "multi_worker": 2, "tf_keras": 2}),
        ("digits", {"one_device": 1, "mirrored": 1}),
    ):
        with _groups(subject, kinds) as groups:
            steps = STEPS[subject]
            contenders = {kind: functools.partial(group.rate, steps) for kind, group in groups.items()}
            interleaved(contenders, 1)
            rates = interleaved(contenders, REPEATS[subject])
        rows.append(_row(f"{subject}: Mirrored with 1 replica / OneDevice", rates, "mirrored", "one_device", 0.95))
        if "multi_worker" in rates:
            doubled = {**rates, "two": [2 * rate for rate in rates["multi_worker"]]}
            rows.append(_row(f"{subject}: 2 workers / 1, examples/s", doubled, "two", "one_device", 1.6))
            rows.append(_row(f"{subject}: 2 workers / tf_keras fit on 2", rates, "multi_worker", "tf_keras", 1.0))
    return rows


def _row(name: str, rates: dict[str, list[float]], ours: str, other: str, wanted: float) -> Row:
    middle = len(rates[ours]) // 2
    detail = f"{sorted(rates[ours])[middle]:.2f} against {sorted(rates[other])[middle]:.2f} steps/s"
    return Row(name, ratio(rates[ours], rates[other]), wanted, True, detail)
