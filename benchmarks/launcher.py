"""What the launcher costs and what its search is worth; adds its rows to benchmarks/latest.json.

python benchmarks/launcher.py            # all rows, about three minutes and a half on two cores
python benchmarks/launcher.py overhead   # one of start, overhead, parallel, search, diagnose
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
LATEST = ROOT / "benchmarks" / "latest.json"
REPEATS = 5
CHIEF = "import time; time.sleep(1)"
WORKER = "import time; time.sleep(3600)"


def start() -> list[dict]:
    """Seconds of the verbs that one waits for at the desk: the help, one file validated, all files validated."""
    every = sorted(str(path) for path in (ROOT / "configs").glob("*.yaml"))
    measured = [
        ("launch --help, s", ["--help"], 0.3),
        ("launch validate, one file, s", ["validate", "configs/multi_worker.yaml"], 1.0),
        (f"launch validate, all {len(every)} files, s", ["validate", *every], 2.0),
    ]
    rows = []
    for name, arguments, wanted in measured:
        command = [sys.executable, "-m", "launch", *arguments]
        _seconds(command)
        found = statistics.median(_seconds(command) for _ in range(REPEATS))
        rows.append(_row(name, found, wanted, found < wanted))
    return rows


def overhead() -> list[dict]:
    """Seconds that `launch local` takes more than a script that starts the same three processes and ends them."""
    programs = [CHIEF, WORKER, WORKER]
    pools = [
        {"replicaCount": 1, "containerSpec": {"imageUri": "x", "command": ["python", "-c"], "args": [program]}}
        for program in programs[:2]
    ]
    pools[1]["replicaCount"] = 2
    by_hand = (
        "import subprocess, sys\n"
        f"replicas = [subprocess.Popen([sys.executable, '-c', program]) for program in {programs!r}]\n"
        "replicas[0].wait()\n"
        "for one in replicas: one.terminate()\n"
        "for one in replicas: one.wait()\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.yaml"
        file.write_text(yaml.safe_dump({"workerPoolSpecs": pools}))
        ours = [sys.executable, "-m", "launch", "local", str(file), f"--output={folder}/out"]
        _seconds(ours)
        more = [_seconds(ours) - _seconds([sys.executable, "-c", by_hand]) for _ in range(REPEATS)]
    found = statistics.median(more)
    return [_row("launch local: seconds over starting the same processes by hand", found, 0.5, found <= 0.5)]


def parallel(trials: int = 4, repeats: int = 3) -> list[dict]:
    """Trials per minute of `launch tune` with two at a time, over those with one, on the real trainer."""
    ratios = []
    for _ in range(repeats):
        seconds = {}
        for at_a_time in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                launcher = ["tune", "configs/tune.yaml", f"--trials={trials}", f"--parallel={at_a_time}"]
                trainer = ["--epochs=1", "--warmup_steps=0", "--intra_op_threads=1", "--inter_op_threads=1"]
                command = [sys.executable, "-m", "launch", *launcher, f"--output={folder}/study", "--", *trainer]
                seconds[at_a_time] = _seconds(command)
        ratios.append(seconds[1] / seconds[2])
    found = statistics.median(ratios)
    return [_row("launch tune: trials per minute, 2 at a time over 1", found, 1.4, found >= 1.4)]


def search() -> list[dict]:
    """Random search's median best over the Bayesian one's: tests/launch/test_study_search.py's function and seeds."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "launch")]
    from test_study_search import best_of

    bayesian, random = (statistics.median(best_of(name, seed) for seed in range(20)) for name in ("", "RANDOM_SEARCH"))
    print(f"median best of 20 seeds, 30 trials: Bayesian {bayesian:.3f}, random {random:.3f}, optimum 0.398")
    return [_row("launch tune: median best of random search over Bayesian", random / bayesian, 1.0, random > bayesian)]


def diagnose(repeats: int = 3) -> list[dict]:
    """Seconds that `launch diagnose` takes for 100 MB of a job's log, the slower of plain and JSON lines."""
    sys.path.insert(0, str(ROOT))
    from tests.launch import job_log

    medians = []
    for form in ([], [job_log.as_json]):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "job.log")
            job_log.write(log, 100_000_000, *form)
            command = [sys.executable, "-m", "launch", "diagnose", "--json", str(log)]
            medians.append(statistics.median(_seconds(command) for _ in range(repeats)))
    print(f"100 MB of plain lines: {medians[0]:.2f} s, of JSON lines: {medians[1]:.2f} s")
    return [_row("launch diagnose: 100 MB, s", max(medians), 5.0, max(medians) <= 5.0)]


def _seconds(command: list[str]) -> float:
    # Bytecode is kept, as it is on a desk; some machines switch that off.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return time.perf_counter() - begun


def _row(name: str, ratio: float, wanted: float, ok: bool) -> dict:
    print(f"{name}: {ratio:.2f} (wanted {wanted}) {'ok' if ok else 'MISSED'}", flush=True)
    return {"name": name, "ratio": round(ratio, 3), "wanted": wanted, "ok": ok}


def main(names: list[str]) -> int:
    """Measure the rows named, all without a name; 1 where one misses what was wanted."""
    measures = {"start": start, "overhead": overhead, "parallel": parallel, "search": search, "diagnose": diagnose}
    if unknown := [name for name in names if name not in measures]:
        print(f"{unknown[0]!r} came; expected {', '.join(measures)}", file=sys.stderr)
        return 2
    rows = [row for name in names or measures for row in measures[name]()]
    known = json.loads(LATEST.read_text()) if LATEST.exists() else []
    mine = {row["name"] for row in rows}
    LATEST.write_text(json.dumps([row for row in known if row["name"] not in mine] + rows, indent=2) + "\n")
    return int(not all(row["ok"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
