"""Runs a command and says what it took: `python tests/launch/cost.py COMMAND...` prints JSON.

A process of its own and a small one: Linux counts as a child's peak what its parent held when it was forked, and a test
run holds TensorFlow (getrusage(2): ru_maxrss survives execve).
"""

import json
import resource
import subprocess
import sys
import time


def main(command: list[str]) -> None:
    """{"code", "said", "wall_s", "cpu_s", "peak_mb"} of the command, its own and its children's."""
    begun = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    wall_s = time.perf_counter() - begun
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    measured = {"code": done.returncode, "said": done.stdout, "wall_s": wall_s, "cpu_s": used.ru_utime + used.ru_stime}
    print(json.dumps({**measured, "peak_mb": used.ru_maxrss / unit}))


if __name__ == "__main__":
    main(sys.argv[1:])
