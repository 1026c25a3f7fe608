"""The root cause comes first, wherever it stands among what follows from it and what wraps it."""

import io
import json
from pathlib import Path

import pytest

from launch.diagnose import rank, report

WORDINGS = Path(__file__).parent / "data" / "wordings.jsonl"
START = """Epoch 1/10
2026-11-21 10:00:00.000000: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is optimized
step 10/400  loss 0.1234  accuracy 0.9712  5120 examples/s
"""
OTHER_REPLICA = """workerpool1-1 UnavailableError: Collective ops is aborted by: Connection reset by peer
workerpool1-0 Traceback (most recent call last):
workerpool1-0   File "/app/trainer/loop.py", line 10, in step
workerpool1-0     strategy.run(step)
workerpool1-0 tensorflow.python.framework.errors_impl.AbortedError: Collective ops is aborted by: Socket closed
"""
WRAPPER = """The replica workerpool1-0 exited with a non-zero status of 1. Termination reason: Error.
The replica workerpool0-0 exited with a non-zero status of 1. To find out more about why your job exited check the logs
"""
TRACEBACK = 'Traceback (most recent call last):\n  File "/app/trainer/task.py", line 3, in <module>\n    main()\n'
AROUND = {
    "before what follows from it": (START, OTHER_REPLICA + WRAPPER),
    "after what follows from it": (START + OTHER_REPLICA, WRAPPER),
    "last of all": (WRAPPER + OTHER_REPLICA + START + TRACEBACK, ""),
}


def findings(log: str) -> list[rank.Finding]:
    """What a log shows, most likely first."""
    return report.read(io.BytesIO(log.encode())).findings


@pytest.mark.parametrize("place", AROUND)
def test_the_root_comes_first(place):
    before, after = AROUND[place]
    wrong, tried = {}, 0
    for line in WORDINGS.read_text(encoding="utf-8").splitlines():
        sample = json.loads(line)
        alone = findings(sample["text"])
        if not alone or alone[0].tier > rank.HINT:  # what means nothing, or itself follows from something else
            continue
        tried += 1
        first = findings(f"{before}{sample['text']}\n{after}")[0].cause.id
        if first != sample["cause"]:
            wrong[sample["text"]] = first
    assert not wrong and tried > 200
