"""`launch tune` from the command line, on trials that take a moment."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import types

import pytest
import yaml
from rich.console import Console

from launch import __main__ as command_line
from launch.study import devices, store
from launch.study.table import Show

TRIAL = """
import os, sys, time, hypertune
values = dict(flag[2:].split("=", 1) for flag in sys.argv[1:])
assert os.environ["AIP_MODEL_DIR"].endswith("/" + os.environ["CLOUD_ML_TRIAL_ID"] + "/model/")
report = hypertune.HyperTune().report_hyperparameter_tuning_metric
if values["kind"] == "broken":
    print("ERROR: this kind is broken")
    sys.exit(2)
if values["kind"] == "late" and os.environ["CLOUD_ML_TRIAL_ID"] == "4":
    report("score", -1.0, 3)
    time.sleep(3600)
if values["kind"] == "slow":
    report("score", 0.1, 1)
    print("waiting", flush=True)
    time.sleep(3600)
for step in (1, 2, 3):
    report(os.environ.get("METRIC", "score"), float(values["x"]) * step, step)
"""


@pytest.fixture
def tuning(tmp_path):
    """write(kinds, **changes) -> path of a tuning job whose trials are of these kinds."""
    program = tmp_path / "trial.py"
    program.write_text(TRIAL)

    def write(kinds=("good",), env=(), study=None, **changes):
        spec = {
            "metrics": [{"metricId": "score", "goal": "MAXIMIZE"}],
            "parameters": [
                {"parameterId": "x", "doubleValueSpec": {"minValue": 0.0, "maxValue": 1.0}},
                {"parameterId": "kind", "categoricalValueSpec": {"values": list(kinds)}},
            ],
            **(study or {}),
        }
        container = {"imageUri": "x", "command": ["python", str(program)], "env": list(env)}
        job = {
            "displayName": "test",
            "maxTrialCount": 3,
            "parallelTrialCount": 2,
            "studySpec": spec,
            "trialJobSpec": {
                "workerPoolSpecs": [{"replicaCount": 1, "containerSpec": container}],
                "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/job"},
            },
            **changes,
        }
        file = tmp_path / "job.yaml"
        file.write_text(yaml.safe_dump(job))
        return file

    return write


def tune(file, folder, *arguments):
    return command_line.main(["tune", str(file), f"--output={folder}", *arguments])


def trials(folder):
    return json.loads((folder / "study.json").read_text())["trials"]


def test_a_study_ends_with_its_best_trial_and_a_page(tuning, tmp_path, capsys):
    folder = tmp_path / "study"
    assert tune(tuning(), folder) == 0
    out = capsys.readouterr().out
    best = max(trials(folder), key=lambda one: one["finalMeasurement"]["metrics"][0]["value"])
    assert f"Best of 3 trials: {best['id']}, score" in out
    assert "--kind=good" in out
    page = (folder / "study.html").read_text()
    assert "Importance" in page
    assert "score of each trial" in page
    with sqlite3.connect(folder / "study.db") as database:
        assert database.execute("select count(*) from trials").fetchone() == (3,)


def test_a_finished_study_says_so_and_more_trials_go_on(tuning, tmp_path, capsys):
    folder = tmp_path / "study"
    assert tune(tuning(), folder) == 0
    assert tune(tuning(), folder, "--trials=4") == 0
    assert "3 of 4 trials" in capsys.readouterr().err
    assert [one["id"] for one in trials(folder)] == ["1", "2", "3", "4"]


def test_measurement_selection_is_the_file_s(tuning, tmp_path):
    folder = tmp_path / "study"
    assert tune(tuning(study={"measurementSelectionType": "BEST_MEASUREMENT"}, maxTrialCount=1), folder) == 0
    (trial,) = trials(folder)
    assert trial["finalMeasurement"]["stepCount"] == "3"


def test_failed_trials_end_the_study_at_their_limit(tuning, tmp_path, capsys):
    folder = tmp_path / "study"
    assert tune(tuning(kinds=["broken"], maxTrialCount=20, maxFailedTrialCount=2), folder) == 1
    told = capsys.readouterr()
    assert "exited with 2" in told.err and "ERROR: this kind is broken" in told.err
    assert "ERROR: this kind is broken" in told.out  # the trial's own line
    assert {one["state"] for one in trials(folder)} <= {"FAILED", "ACTIVE"}


def test_a_trial_that_falls_behind_is_stopped_and_keeps_its_value(tuning, tmp_path, capsys):
    folder = tmp_path / "study"
    rule = {"medianAutomatedStoppingSpec": {}}
    assert tune(tuning(kinds=["late"], study=rule, maxTrialCount=4, parallelTrialCount=1), folder) == 0
    assert "STOPPED" in capsys.readouterr().out
    last = trials(folder)[-1]
    assert (last["id"], last["state"]) == ("4", "SUCCEEDED")
    assert last["finalMeasurement"] == {"stepCount": "3", "metrics": [{"metricId": "score", "value": -1.0}]}


def test_on_a_terminal_a_table_follows_the_trials(tuning, tmp_path):
    folder = tmp_path / "study"
    file = tuning(maxTrialCount=2)
    assert tune(file, folder) == 0
    keep = store.open_store(folder, yaml.safe_load(file.read_text()), "job.yaml")
    with (tmp_path / "terminal").open("w+") as terminal:
        console = Console(file=terminal, force_terminal=True, width=120)
        study = types.SimpleNamespace(store=keep, running_now=lambda: {2: (0.25, 7.0)})
        with Show(console) as show:
            show(study)
        terminal.seek(0)
        text = terminal.read()
    keep.close()
    assert "score" in text and "SUCCEEDED" in text
    assert "RUNNING" in text and "0.25" in text and "7 s" in text
    assert f"{keep.best().number + 1} *" in text


def test_a_metric_of_another_name_is_named(tuning, tmp_path, capsys):
    folder = tmp_path / "study"
    file = tuning(env=[{"name": "METRIC", "value": "accuracy"}], maxFailedTrialCount=1, maxTrialCount=1)
    assert tune(file, folder) == 1
    assert "no score, only accuracy" in capsys.readouterr().err


def test_other_parameters_are_another_study(tuning, tmp_path, capsys):
    folder = tmp_path / "study"
    assert tune(tuning(maxTrialCount=1), folder) == 0
    assert tune(tuning(kinds=["good", "better"], maxTrialCount=1), folder) == 2
    assert "other parameters" in capsys.readouterr().err
    assert tune(tuning(kinds=["good", "better"], maxTrialCount=1), folder, "--fresh") == 0
    assert (tmp_path / "study.1" / "study.db").exists()


def test_what_is_no_study_is_told(tuning, tmp_path, capsys):
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "study.db").write_bytes(b"not a database at all" * 100)
    assert tune(tuning(), folder) == 2
    assert "study.db" in capsys.readouterr().err


def test_two_cannot_have_a_study_at_a_time(tuning, tmp_path, capsys):
    job = yaml.safe_load(tuning().read_text())
    folder = tmp_path / "study"
    first = store.open_store(folder, job, "job.yaml")
    assert tune(tuning(), folder) == 2
    assert "in use" in capsys.readouterr().err
    first.close()


def test_a_stopped_study_goes_on_with_the_trial_it_was_in(tuning, tmp_path):
    folder = tmp_path / "study"
    file = tuning(kinds=["slow"], parallelTrialCount=1, maxTrialCount=1)
    command = [sys.executable, "-m", "launch", "tune", str(file), f"--output={folder}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        log = folder / "1" / "replicas" / "chief.log"
        while process.poll() is None and not (log.exists() and "waiting" in log.read_text()):
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.1)
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    (before,) = trials(folder)
    assert before["state"] == "ACTIVE"
    (tmp_path / "trial.py").write_text(TRIAL.replace("time.sleep(3600)", "sys.exit()"))
    assert tune(file, folder) == 0
    (after,) = trials(folder)
    assert (after["state"], after["parameters"]) == ("SUCCEEDED", before["parameters"])


def test_gpus_are_shared_out_and_given_back():
    shares = devices.Shares(["0", "1", "2"], each=1)
    assert shares.trials == 3
    first, second = shares.take(), shares.take()
    assert {*first, *second} == {"0", "1"}
    shares.give_back(first)
    assert shares.take() == ["0"]
    assert devices.Shares(["0"], each=2).trials is None  # too few: stand-ins take their place


def test_gpus_are_used_where_the_environment_can(tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "CUDA_VISIBLE_DEVICES", "0,3")
    assert devices.gpus(tmp_path) == []
    (tmp_path / ".venv/lib/python3.12/site-packages/nvidia/cudnn").mkdir(parents=True)
    assert devices.gpus(tmp_path) == ["0", "3"]
