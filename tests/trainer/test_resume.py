"""Jobs that are killed, stopped, damaged, changed or finished, each compared with one that never was."""

import pathlib
import re
import signal
import time

import jobs
import pytest

EVERY_6 = [*jobs.SHORT, "--checkpoint_every=6steps"]


@pytest.fixture(scope="module")
def whole(forks, tmp_path_factory) -> pathlib.Path:
    """A job that ran to its end undisturbed."""
    folder = tmp_path_factory.mktemp("whole")
    job = forks.start([*EVERY_6, f"--job_dir={folder}"], folder / "log.txt", {}, jobs.NO_EXPORT)
    assert job.wait() == 0, job.text
    return folder


def until(job, text: str) -> None:
    """Wait until a job has said something that matches `text`, or has ended."""
    while not re.search(text, job.text, re.M) and job.poll() is None:
        time.sleep(0.02)


def assert_same(one: pathlib.Path, other: pathlib.Path) -> None:
    assert jobs.differences(jobs.final_state(one / "checkpoints"), jobs.final_state(other / "checkpoints")) == []
    assert jobs.curves(one / "logs") == jobs.curves(other / "logs")
    assert jobs.result(one)["metrics"] == jobs.result(other)["metrics"]


def test_killed_told_to_stop_and_damaged_it_ends_with_the_same_bits(forks, whole, tmp_path):
    flags = [*EVERY_6, f"--job_dir={tmp_path}"]
    killed = forks.start(flags, tmp_path / "1.txt", {}, jobs.NO_EXPORT)
    until(killed, "step 20/")
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    # a few steps more may have been made, and saved, between the line that was waited for and the signal
    newest = max(int(path.stem.split("-")[1]) for path in (tmp_path / "checkpoints").glob("*.index"))
    assert newest >= 18 and newest % 6 == 0
    (values,) = (tmp_path / "checkpoints").glob(f"ckpt-{newest}.data*")
    values.write_bytes(values.read_bytes()[:-1000])
    stopped = forks.start(flags, tmp_path / "2.txt", {}, jobs.NO_EXPORT)
    until(stopped, r"^step \d+/")
    stopped.kill(signal.SIGTERM)
    assert stopped.wait() == 143, stopped.text
    assert f"ckpt-{newest} can't be read" in stopped.text and f"resuming at step {newest - 6} of 48" in stopped.text
    saved = int(re.search(r"told to stop: saved step (\d+)", stopped.text)[1])
    assert newest - 6 < saved < 48
    (tmp_path / f"checkpoints/ckpt-{saved}.index").unlink()
    before = max(int(path.stem.split("-")[1]) for path in (tmp_path / "checkpoints").glob("*.index"))
    last = forks.start(flags, tmp_path / "3.txt", {}, jobs.NO_EXPORT)
    assert last.wait() == 0, last.text
    assert f"ckpt-{saved} is not whole: its index is missing" in last.text
    assert f"resuming at step {before} of 48" in last.text
    assert_same(whole, tmp_path)


STREAMED = """
from trainer.input import split
split.CACHE_BYTES = 0
"""


@pytest.mark.slow
def test_data_too_large_for_the_memory_goes_on_where_it_was(forks, tmp_path):
    def start(name, run=1):
        flags = [*EVERY_6, "--shuffle_buffer=300", f"--job_dir={tmp_path / name}"]
        return forks.start(flags, tmp_path / f"{name}{run}.txt", {}, STREAMED + jobs.NO_EXPORT)

    whole = start("whole")
    assert whole.wait() == 0, whole.text
    cut = start("cut")
    until(cut, "step 20/")
    cut.kill()
    cut.wait()
    again = start("cut", 2)
    assert again.wait() == 0, again.text
    assert "resuming at step" in again.text
    assert_same(tmp_path / "whole", tmp_path / "cut")


EARLY_STOPPING = """
import keras, trainer.model
stop = keras.callbacks.EarlyStopping("val_loss", mode="max", patience=2, restore_best_weights=True)
trainer.model.callbacks = lambda hyperparameters: [stop]
"""


@pytest.mark.slow
def test_early_stopping_gives_back_the_best_weights_after_a_kill(forks, tmp_path):
    def start(name, run=1):  # "best" is the largest loss, the first epoch's: its weights are those of the end
        return forks.start(
            [*EVERY_6, f"--job_dir={tmp_path / name}"], tmp_path / f"{name}{run}.txt", {}, EARLY_STOPPING
        )

    assert start("whole").wait() == 0
    killed = start("cut")
    until(killed, "^epoch 2/")
    killed.kill()
    killed.wait()
    again = start("cut", 2)
    assert again.wait() == 0, again.text
    assert "resuming at step" in again.text and "epoch 1/" not in again.text
    metrics = jobs.result(tmp_path / "cut")["metrics"]
    assert metrics == jobs.result(tmp_path / "whole")["metrics"]
    assert metrics["test"]["loss"] > 2 * metrics["validation"]["loss"]  # validation is the last epoch's


def test_a_finished_job_changes_nothing_and_more_epochs_go_on(forks, whole, tmp_path):
    files = {path: path.read_bytes() for path in whole.rglob("*") if path.is_file() and path.name != "log.txt"}
    again = forks.start([*EVERY_6, f"--job_dir={whole}"], tmp_path / "again.txt")
    assert again.wait() == 0
    assert "this job is finished" in again.text
    assert files == {path: path.read_bytes() for path in whole.rglob("*") if path.is_file() and path.name != "log.txt"}


def test_another_job_s_checkpoint_is_one_sentence_saying_what_differs(forks, whole, tmp_path):
    (tmp_path / "checkpoints").symlink_to(whole / "checkpoints")
    other = forks.start([*EVERY_6, f"--job_dir={tmp_path}", "--batch_size=64", "--width=8"], tmp_path / "log.txt")
    assert other.wait() == 2
    (said,) = [line for line in other.text.splitlines() if line.startswith("ERROR")]
    assert "--batch_size was 32, is 64" in said and "--width was 20, is 8" in said and "--fresh" in said


def test_fresh_sets_aside_and_says_where_and_changed_flags_are_listed(forks, tmp_path):
    flags = ["--epochs=1", "--examples_per_epoch=128", f"--job_dir={tmp_path}"]
    assert forks.start(flags, tmp_path / "1.txt", {}, jobs.NO_EXPORT).wait() == 0
    more = forks.start([*flags, "--epochs=2", "--learning_rate=0.001"], tmp_path / "2.txt", {}, jobs.NO_EXPORT)
    assert more.wait() == 0
    assert "it goes on to --epochs=2" in more.text and "--learning_rate was 0.002, is 0.001" in more.text
    fresh = forks.start([*flags, "--fresh"], tmp_path / "3.txt", {}, jobs.NO_EXPORT)
    assert fresh.wait() == 0
    assert "set aside: " in fresh.text and "resuming" not in fresh.text
    assert len(list(tmp_path.glob("checkpoints-*"))) == len(list(tmp_path.glob("result-*.json"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_three_workers_one_killed_all_end_with_the_same_bits(forks, tmp_path, number):
    flags = [*EVERY_6, "--batch_size=30", "--peer_timeout_s=10"]

    def start(name: str, run: int) -> list:
        environs = jobs.cluster(3)
        return [
            forks.start([*flags, f"--job_dir={tmp_path / name}"], tmp_path / f"{name}-{run}-{i}.txt", environ)
            for i, environ in enumerate(environs)
        ]

    assert [job.wait() for job in start("whole", 0)] == [0, 0, 0]
    first = start("cut", 0)
    until(first[0], "step 20/")
    first[2].kill(number)
    codes = [job.wait() for job in first]
    assert codes == ([143, 143, 143] if number == signal.SIGTERM else [1, 1, -9])
    if number == signal.SIGKILL:
        assert "another worker is gone" in first[0].text
    assert [job.wait() for job in start("cut", 1)] == [0, 0, 0]
    assert_same(tmp_path / "whole", tmp_path / "cut")


def test_a_worker_that_hangs_is_told_by_the_others(forks, tmp_path):
    jobs_ = [
        forks.start([*jobs.SHORT, "--peer_timeout_s=5", f"--job_dir={tmp_path}"], tmp_path / f"{i}.txt", environ)
        for i, environ in enumerate(jobs.cluster(2))
    ]
    until(jobs_[0], "step 8/")
    jobs_[1].kill(signal.SIGSTOP)
    code = jobs_[0].wait()
    jobs_[1].kill(signal.SIGCONT)
    jobs_[1].wait()
    assert code == 1, jobs_[0].text
    assert "has not answered for --peer_timeout_s=5 seconds" in jobs_[0].text


@pytest.mark.slow
def test_the_best_stays_beside_the_newest(forks, tmp_path):
    flags = [*EVERY_6, "--keep_checkpoints=1", "--keep_best=min:val_accuracy", f"--job_dir={tmp_path}"]
    job = forks.start(flags, tmp_path / "log.txt")
    assert job.wait() == 0, job.text
    steps = sorted(int(path.stem.split("-")[1]) for path in (tmp_path / "checkpoints").glob("*.index"))
    assert steps == [16, 48]  # the worst accuracy, which min: calls the best, is the first epoch's


@pytest.mark.slow
def test_a_cloud_job_restarted_with_fresh_goes_on(forks, tmp_path):
    flags, cloud = [*EVERY_6, "--fresh", f"--job_dir={tmp_path}"], {"CLOUD_ML_JOB_ID": "77"}
    first = forks.start(flags, tmp_path / "1.txt", cloud)
    until(first, "step 20/")
    first.kill()
    first.wait()
    again = forks.start(flags, tmp_path / "2.txt", cloud)
    assert again.wait() == 0, again.text
    assert "--fresh is passed over" in again.text and "resuming at step" in again.text
    last = forks.start(flags, tmp_path / "3.txt", cloud)
    assert last.wait() == 0 and "this job is finished" in last.text


@pytest.mark.slow
def test_a_clock_set_back_does_not_matter(forks, whole, tmp_path):
    flags = [*EVERY_6, f"--job_dir={tmp_path}"]
    killed = forks.start(flags, tmp_path / "1.txt", {}, jobs.NO_EXPORT)
    until(killed, "step 20/")
    killed.kill()
    killed.wait()
    back = "import time; plain = time.time; time.time = lambda: plain() - 10_000_000"
    last = forks.start(flags, tmp_path / "2.txt", setup=back)
    assert last.wait() == 0, last.text
    assert "resuming at step" in last.text
    assert_same(whole, tmp_path)
