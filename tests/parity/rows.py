"""The table: which runs are compared, and what must hold. One seed, one global batch of 64, float32."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
FLAGS = ("--batch_size=64", "--seed=1", "--warmup_steps=10", "--decay=none", "--shuffle_buffer=2000")
HANG_S = 1800  # only against a hang: the machine may be busy


@dataclass(frozen=True)
class Run:
    """One training to be compared: `devices` of one process, or `workers` (and `servers`) that are processes."""

    strategy: str
    kind: str = "full"  # with BatchNorm and Dropout; plain: without
    steps: int = 100
    devices: int = 1
    workers: int = 0
    servers: int = 0
    flags: tuple[str, ...] = ("--steps_per_call=1",)


@dataclass(frozen=True)
class Row:
    """Two runs and what must hold of them; `holds` gives (whether, what was measured)."""

    name: str
    first: Run
    second: Run
    holds: Callable[[dict, dict], tuple[bool, str]] = field(repr=False)
    slow: bool = True


def _addresses(count: int) -> list[str]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [f"127.0.0.1:{one.getsockname()[1]}" for one in held]
    for one in held:
        one.close()
    return found


def _tasks(run: Run) -> list[dict[str, str]]:
    """The environment of every process, the chief's first."""
    stand_in = {"TRAINYARD_STAND_IN": f"gpu:{run.devices}"} if run.devices > 1 else {}
    if not run.workers:
        return [stand_in]
    counts = {"chief": 1, "worker": run.workers if run.servers else run.workers - 1, "ps": run.servers}
    hosts = _addresses(sum(counts.values()))
    cluster = {role: [hosts.pop() for _ in range(count)] for role, count in counts.items() if count}
    return [
        {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}
        for role in cluster
        for index in range(len(cluster[role]))
    ]


@cache
def result(run: Run) -> dict[str, np.ndarray]:
    """What a run saw; each run is made once in a process."""
    with tempfile.TemporaryDirectory() as folder:
        output = f"{folder}/out.npz"
        command = [sys.executable, "-m", "tests.parity.probe", output, run.kind, str(run.steps)]
        command += [*FLAGS, f"--strategy={run.strategy}", *run.flags]
        base = {k: v for k, v in os.environ.items() if k not in ("TF_CONFIG", "TRAINYARD_STAND_IN")}
        tasks = _tasks(run)
        logs = [open(f"{folder}/{index}.log", "w+") for index in range(len(tasks))]  # noqa: SIM115
        started = [
            subprocess.Popen(command, cwd=ROOT, env={**base, **task}, stdout=log, stderr=subprocess.STDOUT)
            for task, log in zip(tasks, logs, strict=True)
        ]
        try:
            code = started[0].wait(HANG_S)
        finally:
            for process in started:
                process.kill()
                process.wait()
            for log in logs:
                log.seek(0)
            said = logs[0].read()
            for log in logs:
                log.close()
        if code or not Path(output).exists():
            raise AssertionError(f"{run} ended with {code}:\n{said[-3000:]}")
        with np.load(output) as arrays:
            return dict(arrays)


def same_bits(a: dict, b: dict) -> tuple[bool, str]:
    """Losses, weights and metrics equal to the last bit."""
    differ = [name for name in a if not np.array_equal(a[name], b[name])]
    return not differ, "equal to the last bit" if not differ else f"{', '.join(differ[:3])} differ"


def close(a: dict, b: dict) -> tuple[bool, str]:
    """Losses of every step within 1e-6."""
    apart = float(np.max(np.abs(a["losses"] - b["losses"])))
    return apart <= 1e-6, f"losses {apart:.1e} apart"


def same_evaluation(a: dict, b: dict) -> tuple[bool, str]:
    """Metrics of the same (first) weights: accuracy exactly, loss within 1e-6."""
    apart = abs(float(a["fixed_loss"] - b["fixed_loss"]))
    same = bool(a["fixed_accuracy"] == b["fixed_accuracy"])
    return same and apart <= 1e-6, f"accuracy {'equal' if same else 'differs'}, loss {apart:.1e} apart"


def counted(_: dict, b: dict) -> tuple[bool, str]:
    """Exactly the steps asked for, and an accuracy of at least 0.97."""
    steps, accuracy = int(b["steps"]), float(b["trained_accuracy"])
    return steps == ASYNCHRONOUS.steps and accuracy >= 0.97, f"{steps} steps counted, accuracy {accuracy:.4f}"


def _multi(workers: int, kind: str = "full") -> Run:
    return Run("multi_worker", kind, workers=workers)


def _mirrored(devices: int, kind: str = "full") -> Run:
    return Run("mirrored", kind, devices=devices)


ONE, PLAIN = Run("one_device"), Run("one_device", "plain")
CENTRAL = Run("central_storage", devices=2)
SERVER = Run("parameter_server", workers=1, servers=1)
ASYNCHRONOUS = Run("parameter_server", steps=600, workers=3, servers=2, flags=("--steps_per_call=100",))

ROWS = [
    Row("Mirrored 2 = MultiWorkerMirrored 2", _mirrored(2), _multi(2), same_bits),
    Row("Mirrored 4 = MultiWorkerMirrored 4", _mirrored(4), _multi(4), same_bits),
    Row("CentralStorage 2 = Mirrored 2", _mirrored(2), CENTRAL, same_bits, slow=False),
    Row("OneDevice ~ Mirrored 2, clipped", PLAIN, _mirrored(2, "plain"), close),
    Row("OneDevice ~ Mirrored 4, clipped", PLAIN, _mirrored(4, "plain"), close),
    Row("OneDevice ~ ParameterServer, 1 worker", ONE, SERVER, close),
    Row("ParameterServer, 3 workers, 2 servers", ONE, ASYNCHRONOUS, counted),
    *(
        Row(f"same evaluation: OneDevice, {name}", ONE, run, same_evaluation)
        for name, run in (
            ("Mirrored 4", _mirrored(4)),
            ("MultiWorkerMirrored 4", _multi(4)),
            ("CentralStorage 2", CENTRAL),
            ("ParameterServer", SERVER),
        )
    ),
]
