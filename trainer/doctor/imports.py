"""Does TensorFlow import and compute? Tried in a process of its own, because a wrong library aborts it."""

import os
import signal
import subprocess
import sys

from trainer.doctor import tpu
from trainer.doctor.result import Check

HANG_S = 300  # an import takes 2 to 10 s; a TPU build off a TPU can wait for ever
PROBE = """
import tensorflow as tf
total = float(tf.reduce_sum(tf.matmul(tf.ones([8, 8]), tf.ones([8, 8]))))
devices = ", ".join(f"{len(tf.config.list_physical_devices(k))} {k}" for k in ("CPU", "GPU"))
print("trainyard", total, devices, sep="|")
"""


def check(kind: str) -> Check:
    """Import TensorFlow, multiply two matrices and count the devices."""
    environment = os.environ | {"CUDA_CACHE_DISABLE": "1"}
    if kind == "tpu" and not tpu.devices():
        environment["TPU_SKIP_MDS_QUERY"] = "1"  # no metadata server answers off a TPU
    try:
        ran = subprocess.run(
            [sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Check("import", "failure", f"import tensorflow hung for {HANG_S} s", "imports", "see the checks above")
    answer = [line for line in ran.stdout.splitlines() if line.startswith("trainyard|")]
    if ran.returncode == 0 and answer and answer[0].split("|")[1] == "512.0":
        return Check("import", "ok", answer[0].split("|")[2], "imports and computes")
    return Check("import", "failure", _how_it_ended(ran), "imports and computes", "see the checks above, then the lock")


def _how_it_ended(ran: subprocess.CompletedProcess[str]) -> str:
    """The signal or exit code, and the line of the output that says most."""
    code = ran.returncode
    ended = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    lines = [line.strip() for line in ran.stderr.splitlines() if line.strip()]
    telling = [line for line in lines if "not available" in line or "rror" in line or line.startswith(("F0", "E0"))]
    return f"{ended}: {(telling or lines or ['no output'])[-1][:200]}"
