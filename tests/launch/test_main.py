"""The command line of launch: every verb is there, light to start, and its errors are sentences."""

import errno
import importlib
import inspect
import subprocess
import sys

import pytest

from launch import __main__ as cli
from launch import project
from launch.errors import LaunchError

FULL = OSError(errno.ENOSPC, "No space left on device", "jobs/tune")
HEAVY = {"rich", "yaml", "google.protobuf", "optuna", "docker", "pydantic", "tensorflow", "keras", "numpy", "trainer"}


def imported(*arguments: str) -> set[str]:
    """The modules that are there after `python -m launch ARGUMENTS`."""
    ask = "import sys, contextlib; from launch.__main__ import main\n"
    ask += "with contextlib.suppress(SystemExit): main(sys.argv[1:])\n"
    ask += "print('modules:', *sys.modules)"
    command = [sys.executable, "-c", ask, *arguments]
    done = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("modules: ")[2].split())


def test_help_lists_every_verb_and_imports_nothing_heavy(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    told = capsys.readouterr().out
    assert all(verb in told for verb in cli.VERBS)
    assert not imported("--help") & HEAVY


def test_validate_imports_the_message_types_and_none_of_the_clients():
    modules = imported("validate", "configs/cpu.yaml")
    assert "google.cloud.aiplatform_v1.types.custom_job" in modules
    assert not {"grpc", "google.api_core.grpc_helpers", "google.cloud.aiplatform", "rich"} & modules
    assert not {name for name in modules if name.startswith(("tensorflow", "keras", "trainer"))}


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_its_two_functions_and_a_help(verb, capsys):
    module = importlib.import_module(cli.VERBS[verb][0])
    assert len(inspect.signature(module.run).parameters) == 1
    with pytest.raises(SystemExit) as ended:
        cli.main([verb, "--help"])
    assert ended.value.code == 0 and verb in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["validate"], ["validate", "--nope", "x"], ["watch", "--every=soon"]]
)
def test_a_command_line_that_cannot_be_read_is_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2 and "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["tune", "x", "--trials=0"],
        ["tune", "x", "--parallel=two"],
        ["local", "x", "--restarts=-1"],
        ["list", "--limit=0"],
        ["refine", "x", "--points=0"],
    ],
)
def test_a_count_that_can_be_none_is_told(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == 2
    least = 0 if "restarts" in arguments[-1] else 1
    assert f"a whole number of {least} or more was expected" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["soon", "nan", "-1", "inf"])
def test_a_time_that_can_be_none_is_told(given, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["watch", f"--every={given}"])
    assert ended.value.code == 2
    assert f"{given!r} came; seconds were expected" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["list", "watch", "cancel", "diagnose"])
def test_without_gcloud_a_verb_that_needs_it_says_how_to_get_it(verb, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PROJECT", "my-project")
    monkeypatch.setenv("REGION", "us-central1")
    job = [] if verb == "list" else ["projects/my-project/locations/us-central1/customJobs/1"]
    assert cli.main([verb, *job]) == 2
    said = capsys.readouterr().err
    assert "gcloud is not installed" in said and "https://cloud.google.com/sdk/docs/install" in said


@pytest.mark.parametrize(
    ("raised", "code"),
    [(LaunchError("a sentence"), 2), (LaunchError("no", 1), 1), (KeyboardInterrupt(), 130), (FULL, 1)],
)
def test_what_a_verb_raises_is_told_without_a_traceback(raised, code, monkeypatch, capsys):
    from launch import listing

    def run(options):
        raise raised

    monkeypatch.setattr(listing, "run", run)
    assert cli.main(["list"]) == code
    said = capsys.readouterr().err
    wanted = "launch list: jobs/tune: No space left on device" if raised is FULL else str(raised) or "stopped"
    assert "Traceback" not in said and wanted in said
