"""A job that is finished already: told at once, without TensorFlow, and only where that is what the run would say."""

import json
import subprocess
import sys

import pytest

from trainer import finished, flags, yours
from trainer.replicas.cluster import Cluster
from trainer.saving.places import places


@pytest.fixture
def job(tmp_path):
    """The flags of a finished job of three epochs."""
    write(tmp_path)
    return ["--epochs=3", f"--job_dir={tmp_path}"]


def write(folder, **changes):
    result = {"finished": True, "flags": {"epochs": 3}, "job": "", "yours": yours.contents()} | changes
    (folder / "result.json").write_text(json.dumps(result))


def told(arguments, here=Cluster()):  # noqa: B008  a frozen dataclass
    settings, _ = flags.parse(arguments)
    return finished.without_tensorflow(places(settings), settings, here)


def test_a_second_run_says_so_and_does_not_import_tensorflow(job):
    command = [sys.executable, "-X", "importtime", "-m", "trainer.task", *job]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(" (")[0]) == (0, "this job is finished")
    assert "tensorflow" not in done.stderr and "keras" not in done.stderr


@pytest.mark.parametrize("flag", ["--fresh", "--epochs=4", "--data_dir=gs://yard/digits", "--log_dir=gs://yard/logs"])
def test_other_flags_leave_it_to_the_run(job, flag, capsys):
    assert told(job)
    assert capsys.readouterr().out
    assert not told([*job, flag])
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    "changes", [{"finished": False}, {"yours": {}}, {"yours": {"model.py": "other", "data.py": "other"}}]
)
def test_another_model_or_an_unfinished_job_is_left_to_the_run(job, tmp_path, changes):
    write(tmp_path, **changes)
    assert not told(job)


def test_a_cluster_and_the_cloud_are_left_to_the_run(job):
    assert not told(job, Cluster(addresses={"chief": ["a:1"], "worker": ["b:1"]}))
    assert not told(job, Cluster(in_cloud=True))


@pytest.mark.parametrize("text", ["", "{", "[]", "\ud800"])
def test_a_result_that_is_none_is_no_finished_job(job, tmp_path, text):
    (tmp_path / "result.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert not told(job)
    assert not finished.finished(str(tmp_path / "result.json"))


def test_the_run_says_the_same_and_that_it_goes_on(job, tmp_path):
    class Console:
        lines = []
        line = lines.append

    path = str(tmp_path / "result.json")
    assert finished.already_done(path, flags.parse(job)[0], Console)
    assert not finished.already_done(path, flags.parse([*job, "--epochs=5"])[0], Console)
    assert not finished.already_done(path, flags.parse([*job, "--fresh"])[0], Console)
    assert [line.split(";")[0] for line in Console.lines] == [
        f"this job is finished ({path})",
        "this job was finished at --epochs=3",
    ]
