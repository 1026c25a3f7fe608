"""`launch local` from the command line: its stream, its exit codes, and what it leaves behind."""

import os
import signal
import subprocess
import sys
import time

import pytest
import yaml

from launch import __main__ as command_line
from launch import project, rehearsed
from launch.local import lock

SLEEPER = """
import subprocess, time
subprocess.Popen(["sleep", "3600"], start_new_session=True)
print("up", flush=True)
time.sleep(3600)
"""


def job(tmp_path, *programs, **more):
    """A job file whose pools run these Python programs."""
    pools = [
        {"replicaCount": 1, "containerSpec": {"imageUri": "x", "command": ["python", "-c"], "args": [program]}}
        for program in programs
    ]
    file = tmp_path / "job.yaml"
    file.write_text(yaml.safe_dump({"workerPoolSpecs": pools, **more}))
    return str(file)


def local(file, tmp_path, *arguments):
    return command_line.main(["local", file, f"--output={tmp_path / 'out'}", *arguments])


def test_every_line_carries_its_role(tmp_path, capsys):
    wait = "import time; time.sleep(1); print('hello from the chief')"
    assert local(job(tmp_path, wait, "print('hello from a worker')"), tmp_path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "chief    | hello from the chief" in lines
    assert "worker:0 | hello from a worker" in lines
    assert (tmp_path / "out/replicas/worker-0.log").read_text() == "hello from a worker\n"


@pytest.mark.slow
def test_a_failed_trainer_is_explained_at_the_end(tmp_path):
    """The real trainer with a rate that ends in NaN: the diagnosis comes by itself, after the job's own lines."""
    flags = ["--learning_rate=1e30", "--warmup_steps=0", "--clip_norm=0", "--steps_per_epoch=20", "--epochs=1"]
    command = [
        sys.executable,
        "-m",
        "launch",
        "local",
        "configs/cpu.yaml",
        f"--output={tmp_path / 'out'}",
        "--",
        *flags,
    ]
    done = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "The job failed" in done.stderr
    diagnosis = done.stdout[done.stdout.rindex("nan_loss") :]
    assert "nan_loss; 6, NaN" in diagnosis and "--on_nan=rewind" in diagnosis


def test_a_rehearsal_that_succeeded_is_written_down_with_its_commit(tmp_path):
    file = job(tmp_path, "raise SystemExit(2)")
    assert local(file, tmp_path) == 1
    assert rehearsed.records() == {}
    assert local(job(tmp_path, "print('fine')"), tmp_path) == 0
    assert rehearsed.records()["job.yaml"]["commit"] == rehearsed.state()[0]


def test_arguments_after_two_dashes_are_the_trainers(tmp_path, capsys):
    file = job(tmp_path, "import sys; print(sys.argv[1:])")
    assert local(file, tmp_path, "--", "--epochs=2") == 0
    assert "['--epochs=2']" in capsys.readouterr().out


def test_a_failed_job_exits_with_1_and_says_where_to_look(tmp_path, capsys):
    assert local(job(tmp_path, "raise SystemExit(2)"), tmp_path) == 1
    err = capsys.readouterr().err
    assert "exited with 2" in err
    assert "replicas" in err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("workerPoolSpecs: 3", "the number 3. Expected: a list"),
        ("{}", "chief"),
        ("- 1", "Expected"),
        ("workerPoolSpecs: [{replicaCount: 1, containerSpec: {imageUri: x, command: [no-such-program]}}]", "no-such"),
    ],
)
def test_what_cannot_be_run_exits_with_2(content, said, tmp_path, capsys):
    file = tmp_path / "job.yaml"
    file.write_text(content)
    assert local(str(file), tmp_path) == 2
    assert said in capsys.readouterr().err


def test_two_cannot_have_a_folder_at_a_time(tmp_path, capsys):
    first = lock.hold(tmp_path / "out")
    assert local(job(tmp_path, "pass"), tmp_path) == 2
    assert "in use" in capsys.readouterr().err
    first.close()
    assert local(job(tmp_path, "pass"), tmp_path) == 0


def test_a_folder_that_cannot_be_is_told(tmp_path, capsys):
    (tmp_path / "out").write_text("a file")
    assert local(job(tmp_path, "pass"), tmp_path) == 2
    assert "--output" in capsys.readouterr().err


def test_a_preemption_that_names_nobody_exits_with_2(tmp_path, capsys):
    assert local(job(tmp_path, "pass"), tmp_path, "--preempt=worker:1@20s") == 2
    assert "only chief" in capsys.readouterr().err


def test_a_tuning_job_is_rehearsed_as_one_trial(tmp_path, capsys):
    pool = {"replicaCount": 1, "containerSpec": {"imageUri": "x", "command": ["python", "-c"]}}
    pool["containerSpec"]["args"] = ["import os, sys; print(sys.argv[1:], os.environ['CLOUD_ML_TRIAL_ID'])"]
    study = {
        "metrics": [{"metricId": "loss", "goal": "MINIMIZE"}],
        "parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 0.0, "maxValue": 1.0}}],
    }
    file = tmp_path / "tune.yaml"
    file.write_text(yaml.safe_dump({"studySpec": study, "trialJobSpec": {"workerPoolSpecs": [pool]}}))
    assert local(str(file), tmp_path) == 0
    out = capsys.readouterr().out
    assert "['--x=0.5'] 1" in out
    assert "launch tune" in out


def of_run(folder):
    """Processes that carry the output folder of a job in their environment."""
    wanted = f"AIP_MODEL_DIR={folder}/model/".encode()
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                with open(f"/proc/{entry.name}/environ", "rb") as environ:
                    if wanted in environ.read().split(b"\0"):
                        found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_behind_however_the_launcher_ends(number, tmp_path):
    file = job(tmp_path, SLEEPER, SLEEPER, baseOutputDirectory={"outputUriPrefix": "gs://b"})
    command = [sys.executable, "-u", "-m", "launch", "local", file, f"--output={tmp_path / 'out'}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        up = 0
        while up < 2 and (line := process.stdout.readline()):
            up += line.rstrip().endswith("| up")
        assert up == 2
        for _ in range(600):  # a process that is being started has no environment to read for a moment
            if len(of_run(tmp_path / "out")) == 4:
                break
            time.sleep(0.1)
        before = len(of_run(tmp_path / "out"))
        process.send_signal(number)
        process.wait()
    assert before == 4
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    for _ in range(600):  # after SIGKILL it is the watchdog that cleans up: soon, but not at once
        if not of_run(tmp_path / "out") or number != signal.SIGKILL:
            break
        time.sleep(0.1)
    assert of_run(tmp_path / "out") == []


def test_the_light_verbs_stay_light():
    code = "import sys, launch.__main__ as m; m.main(['local', '--help'])"
    heavy = "print(sorted({'rich', 'docker', 'optuna', 'tensorflow'} & {*sys.modules}), file=sys.stderr)"
    program = f"import atexit, sys; atexit.register(lambda: {heavy})\n{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.strip() == "[]"


def test_on_a_terminal_roles_have_colours_and_the_chief_s_progress_one_line(tmp_path):
    from rich.console import Console

    from launch.local.stream import Stream

    with (tmp_path / "terminal").open("w+") as terminal:
        console = Console(file=terminal, force_terminal=True, color_system="standard", width=80)
        stream = Stream(console, ["chief", "worker:0"], tmp_path / "replicas")
        stream.show("worker:0", "a line [bold]as it came[/bold]")
        stream.show("chief", "step 1/9  loss 0.5")
        stream.show("chief", "epoch 1/1  loss 0.4")
        stream.close()
        terminal.seek(0)
        text = terminal.read()
    assert "\x1b[36mworker:0 \x1b[0m\x1b[2m| \x1b[0ma line [bold]as it came[/bold]" in text
    assert "epoch 1/1  loss 0.4\n" in text
    assert "step 1/9  loss 0.5\n" not in text.replace("\x1b[?25h", "").split("epoch 1/1")[0]
    assert (tmp_path / "replicas/chief.log").read_text() == "step 1/9  loss 0.5\nepoch 1/1  loss 0.4\n"
