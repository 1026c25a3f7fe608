"""Whole jobs of small programs: how they end, what restarts, what is left behind."""

import time

import pytest

from launch.local import leftovers
from launch.local.preempt import Preemption
from launch.local.rehearsal import Rehearsal

FOREVER = "import time; time.sleep(3600)"


def python(code, count=1):
    return {"replicaCount": count, "containerSpec": {"imageUri": "x", "command": ["python", "-c"], "args": [code]}}


def run(tmp_path, *pools, scheduling=None, **options):
    """(outcome, lines) of a job with these pools."""
    lines = []
    spec = {"workerPoolSpecs": list(pools), "baseOutputDirectory": {"outputUriPrefix": "gs://b"}}
    rehearsal = Rehearsal(spec={**spec, "scheduling": scheduling or {}}, output=tmp_path, **options)
    outcome = rehearsal.job(lambda name, line: lines.append((name, line))).run()
    return outcome, lines


def counts(folder, then="sys.exit(0)", fail_first=1, code=1):
    """A program that fails `fail_first` times, with other words each time, and then does `then`."""
    return (
        "import os, pathlib, sys, time\n"
        f"runs = pathlib.Path({str(folder / 'runs')!r})\n"
        "n = len(runs.read_text()) if runs.exists() else 0\n"
        "runs.write_text('x' * (n + 1))\n"
        "print('run', n, flush=True)\n"
        f"if n < {fail_first}: sys.exit({code})\n"
        f"{then}\n"
    )


def wait_for(path):
    """A program that waits until there is such a file."""
    return f"import pathlib, time\nwhile not pathlib.Path({str(path)!r}).exists(): time.sleep(.05)"


def test_the_chief_s_success_ends_the_job_and_stops_the_rest(tmp_path):
    outcome, lines = run(tmp_path, python("print('done')"), python(FOREVER, 2))
    assert outcome.code == 0
    assert ("chief", "done") in lines
    assert any("stopping worker:0, worker:1" in line for name, line in lines if name == "launch")


def test_a_worker_that_is_done_ends_nothing(tmp_path):
    outcome, lines = run(tmp_path, python("import time; time.sleep(1); print('late')"), python("pass"))
    assert outcome.code == 0
    assert ("chief", "late") in lines


def test_a_failed_replica_restarts_in_its_place(tmp_path):
    wait = wait_for(tmp_path / "ok")
    worker = counts(tmp_path, then=f"pathlib.Path({str(tmp_path / 'ok')!r}).touch()", fail_first=2)
    outcome, lines = run(tmp_path, python(wait), python(worker))
    assert outcome.code == 0
    assert [line for name, line in lines if name == "worker:0"] == ["run 0", "run 1", "run 2"]


def test_restart_job_on_worker_restart_restarts_everybody(tmp_path):
    up, ok = tmp_path / "up", tmp_path / "ok"
    chief = f"import pathlib\nprint('up', flush=True)\npathlib.Path({str(up)!r}).touch()\n{wait_for(ok)}"
    worker = f"{wait_for(up)}\n" + counts(tmp_path, then=f"pathlib.Path({str(ok)!r}).touch()")
    outcome, lines = run(tmp_path, python(chief), python(worker), scheduling={"restartJobOnWorkerRestart": True})
    assert outcome.code == 0
    assert lines.count(("chief", "up")) == 2


def test_the_same_words_twice_end_a_rehearsal(tmp_path):
    outcome, lines = run(tmp_path, python("raise ValueError('no such shape')"))
    assert (outcome.code, outcome.failed) == (1, "chief")
    assert "twice" in outcome.reason
    assert sum("no such shape" in line for _, line in lines) >= 2


def test_bad_flags_are_not_tried_again(tmp_path):
    outcome, lines = run(tmp_path, python("import sys; print('bad flag'); sys.exit(2)"))
    assert outcome.code == 1
    assert lines.count(("chief", "bad flag")) == 1


def test_a_preempted_spot_job_starts_again_and_ends_well(tmp_path):
    chief = counts(tmp_path, then="print('resumed')", fail_first=0)
    chief = chief.replace("print('resumed')", "time.sleep(3600 if n == 0 else 0)")
    outcome, lines = run(
        tmp_path,
        python(chief),
        python(FOREVER),
        scheduling={"strategy": "SPOT"},
        preemptions=[Preemption("worker:0", 0.5)],
    )
    assert outcome.code == 0
    assert any("Spot: the whole job restarts" in line for _, line in lines)


def test_a_peer_that_ends_before_the_one_that_is_taken_away_is_not_the_cause(tmp_path):
    told = tmp_path / "told"
    chief = counts(tmp_path, fail_first=0, then=f"{wait_for(told)}\nsys.exit(143 if n == 0 else 0)")
    worker = (
        "import pathlib, signal, sys, time\n"
        f"told = pathlib.Path({str(told)!r})\n"
        "signal.signal(signal.SIGTERM, lambda *_: (told.touch(), time.sleep(1), sys.exit(143)))\n"
        "time.sleep(3600)"
    )
    outcome, lines = run(
        tmp_path,
        python(chief),
        python(worker),
        scheduling={"restartJobOnWorkerRestart": True},
        preemptions=[Preemption("worker:0", 1.5)],
    )
    assert outcome.code == 0
    assert ("launch", "worker:0 was taken away; restartJobOnWorkerRestart: the whole job restarts (1 of 3)") in lines


def test_a_replica_can_be_taken_away_at_a_step(tmp_path):
    chief = counts(tmp_path, then="print('step 10/20  loss 0.1', flush=True)", fail_first=0)
    outcome, lines = run(
        tmp_path,
        python(f"{chief}\nif n == 0: time.sleep(3600)"),
        scheduling={"strategy": "SPOT"},
        preemptions=[Preemption("chief", step=10)],
    )
    assert outcome.code == 0
    assert lines.count(("chief", "step 10/20  loss 0.1")) == 2


def test_a_timeout_fails_the_job(tmp_path):
    outcome, _ = run(tmp_path, python(FOREVER), scheduling={"timeout": "0.5s"})
    assert (outcome.code, "timeout" in outcome.reason) == (1, True)


def test_a_chatty_replica_holds_no_timer_up(tmp_path):
    outcome, _ = run(tmp_path, python("while True: print('x')"), scheduling={"timeout": "0.5s"})
    assert outcome.code == 1


def test_who_ignores_sigterm_is_killed_when_the_notice_is_over(tmp_path):
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {FOREVER}"
    begun = time.monotonic()
    outcome, _ = run(tmp_path, python(deaf), scheduling={"timeout": "1s"}, notice_s=0.5)
    assert outcome.code == 1
    assert time.monotonic() - begun < 60  # a guard against a hang, not a measurement


def test_nothing_is_left_behind_not_even_who_left_the_group(tmp_path):
    code = (
        "import os, subprocess\n"
        "subprocess.Popen(['sleep', '3600'])\n"
        "subprocess.Popen(['sleep', '3600'], start_new_session=True)\n"
        "print(os.environ['TRAINYARD_RUN'])\n"
    )
    outcome, lines = run(tmp_path, python(code))
    assert outcome.code == 0
    mark = next(line for name, line in lines if name == "chief")
    assert leftovers.marked(mark) == []


def test_a_program_that_is_not_here_is_told(tmp_path):
    pool = {"replicaCount": 1, "containerSpec": {"imageUri": "x", "command": ["no-such-program"]}}
    with pytest.raises(Exception, match="no-such-program"):
        run(tmp_path, pool)


def test_accelerators_and_places_reach_the_replica(tmp_path):
    pool = python("import os; print(os.environ['TRAINYARD_STAND_IN'], os.environ['AIP_MODEL_DIR'])")
    pool["machineSpec"] = {"machineType": "g2-standard-24", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2}
    _, lines = run(tmp_path, pool)
    assert ("chief", f"gpu:2 {tmp_path}/model/") in lines


def test_the_reducers_place_is_held_and_given_up(tmp_path):
    spec = python(FOREVER)
    spec["containerSpec"]["imageUri"] = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    outcome, lines = run(tmp_path, python("import time; time.sleep(.5)"), {}, spec)
    assert outcome.code == 0
    assert any("stopping reducer:0" in line for _, line in lines)


def test_whoever_asks_twice_waits_for_nobody(tmp_path):
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); {FOREVER}"
    spec = {"workerPoolSpecs": [python(deaf)]}

    def show(name, line):
        if line == "deaf":
            job.stop("first")
            job.stop("second")

    job = Rehearsal(spec=spec, output=tmp_path, notice_s=3600).job(show)
    outcome = job.run()
    assert (outcome.code, outcome.reason, outcome.stopped) == (130, "first", True)
