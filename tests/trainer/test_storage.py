"""gs:// for real: TensorFlow's own client against the emulator, plain and with faults between."""

import pathlib
import signal
import stat
import subprocess

import jobs
import pytest
from emulator import Emulator

ROOT = pathlib.Path(__file__).parents[2]
FLAGS = ["--deterministic", "--epochs=2", "--examples_per_epoch=256", "--batch_size=32", "--log_every_steps=4"]
FLAGS += ["--checkpoint_every=6steps"]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    with Emulator(tmp_path_factory.mktemp("cloud")) as emulator:
        yield emulator


@pytest.fixture(autouse=True)
def no_faults(cloud, monkeypatch):
    for name, value in cloud.environ.items():
        monkeypatch.setenv(name, value)
    cloud.faults()


@pytest.fixture(scope="module")
def whole(forks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    assert forks.start([*FLAGS, f"--job_dir={folder}"], folder / "log.txt").wait() == 0
    return folder


def copy_data() -> None:
    import tensorflow as tf

    for path in (ROOT / "data/digits").glob("*.tfrecord"):
        tf.io.gfile.copy(str(path), f"gs://yard/data/{path.name}", overwrite=True)


def test_data_checkpoints_logs_model_and_result_on_gs(forks, cloud, whole, tmp_path):
    import tensorflow as tf

    copy_data()
    flags = [*FLAGS, "--job_dir=gs://yard/plain", "--data_dir=gs://yard/data"]
    job = forks.start(flags, tmp_path / "log.txt", cloud.environ)
    assert job.wait() == 0, job.text
    assert (
        jobs.differences(jobs.final_state("gs://yard/plain/checkpoints"), jobs.final_state(whole / "checkpoints")) == []
    )
    assert jobs.curves("gs://yard/plain/logs") == jobs.curves(whole / "logs")
    assert jobs.result("gs://yard/plain")["metrics"] == jobs.result(whole)["metrics"]
    assert tf.io.gfile.exists("gs://yard/plain/model/saved_model.pb")


@pytest.mark.slow
def test_busy_broken_and_slow_it_ends_with_nothing_lost(forks, cloud, whole, tmp_path):
    copy_data()
    cloud.faults(
        {"kind": 429, "share": 0.04},
        {"kind": 503, "share": 0.04},
        {"kind": "reset", "share": 0.03},
        {"kind": "slow", "share": 0.05, "seconds": 0.3},
        {"kind": "half", "match": "^(PUT|POST) /upload", "share": 0.05},
        {"kind": "timeout", "share": 0.01, "seconds": 3},
    )
    flags = [*FLAGS, "--job_dir=gs://yard/rough", "--data_dir=gs://yard/data"]
    for number in range(6):
        job = forks.start(flags, tmp_path / f"{number}.txt", cloud.environ)
        code = job.wait()
        if code == 0:
            break
        assert code == 1 and "ERROR: " in job.text, job.text  # a sentence; the platform starts it again
    hits = cloud.hits()
    cloud.faults()
    assert code == 0, job.text
    assert {"429", "503", "reset"} <= hits.keys(), hits
    assert (
        jobs.differences(jobs.final_state("gs://yard/rough/checkpoints"), jobs.final_state(whole / "checkpoints")) == []
    )
    assert jobs.curves("gs://yard/rough/logs") == jobs.curves(whole / "logs")


def test_a_missing_permission_is_told_before_training(forks, cloud, tmp_path):
    cloud.faults({"match": "testPermissions", "kind": "permissions", "lacking": ["storage.objects.create"]})
    job = forks.start([*FLAGS, "--job_dir=gs://yard/refused"], tmp_path / "log.txt", cloud.environ)
    assert job.wait() == 2
    assert "gs://yard: nobody (no credentials" in job.text and "lacks storage.objects.create" in job.text
    assert "roles/storage.objectUser" in job.text and "step" not in job.text


def test_no_bucket_and_no_right_to_ask_are_told_before_training(forks, cloud, tmp_path):
    job = forks.start([*FLAGS, "--job_dir=gs://absent/a"], tmp_path / "1.txt", cloud.environ)
    assert job.wait() == 2
    assert "gs://absent does not exist (404" in job.text
    cloud.faults({"match": "testPermissions", "kind": 403})
    job = forks.start([*FLAGS, "--job_dir=gs://yard/a"], tmp_path / "2.txt", cloud.environ)
    assert job.wait() == 2
    assert "gs://yard refuses nobody" in job.text and "(403)" in job.text


def test_a_folder_that_cannot_be_made_is_told_before_training(forks, tmp_path):
    (tmp_path / "file").write_text("")
    job = forks.start([*FLAGS, f"--job_dir={tmp_path}/file/job"], tmp_path / "log.txt")
    assert job.wait() == 2
    assert "can't write to" in job.text and "--job_dir" in job.text


def test_a_read_only_folder_is_told(tmp_path):
    from trainer.saving import storage

    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    probe = folder / "probe"
    try:
        probe.write_text("")
    except PermissionError:
        with pytest.raises(storage.RefusedError, match=r"can't write to .*locked: Permission denied"):
            storage.check((), (str(folder),))
    else:  # root may write anywhere: /proc refuses even root
        with pytest.raises(storage.RefusedError, match=r"can't write to /proc/trainyard"):
            storage.check((), ("/proc/trainyard",))


FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from trainer.saving import checkpoint
plain = checkpoint.Checkpoints._write
def write(self, step, best_step):
    if step >= 12:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    plain(self, step, best_step)
checkpoint.Checkpoints._write = write
"""


def test_a_write_that_fails_half_way_keeps_what_was_there_and_goes_on_later(forks, whole, tmp_path):
    flags = [*FLAGS, f"--job_dir={tmp_path / 'job'}"]
    job = forks.start(flags, tmp_path / "1.txt", setup=FULL)
    assert job.wait() == 1, job.text
    assert "ERROR: could not write the checkpoint" in job.text
    job = forks.start(flags, tmp_path / "2.txt")
    assert job.wait() == 0, job.text
    assert "resuming at step 6 " in job.text
    state = jobs.final_state(tmp_path / "job/checkpoints")
    assert jobs.differences(state, jobs.final_state(whole / "checkpoints")) == []


@pytest.fixture
def small_disk(whole, tmp_path):
    """A file system of its own with room for one checkpoint and a half; skips where none can be mounted."""
    one = sum(path.stat().st_size for path in (whole / "checkpoints").glob("ckpt-16.*"))
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={one * 3 // 2}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_runs_full_keeps_what_was_saved_and_goes_on_with_more_room(forks, whole, small_disk, tmp_path):
    flags = [*FLAGS, f"--job_dir={tmp_path / 'job'}", f"--checkpoint_dir={small_disk}/checkpoints"]
    job = forks.start(flags, tmp_path / "1.txt")
    assert job.wait() == 1, job.text
    assert "the disk is full" in job.text
    subprocess.run(["mount", "-o", "remount,size=100m", str(small_disk)], check=True)
    job = forks.start(flags, tmp_path / "2.txt")
    assert job.wait() == 0, job.text
    assert "resuming at step 6 " in job.text
    state = jobs.final_state(small_disk / "checkpoints")
    assert jobs.differences(state, jobs.final_state(whole / "checkpoints")) == []


def test_full_disk_is_said_as_such():
    import tensorflow as tf

    from trainer.saving import storage

    error = tf.errors.ResourceExhaustedError(None, None, "/d/ckpt-5.data; No space left on device")
    assert "the disk is full" in storage.explain(error, "write the checkpoint /d/ckpt-5")


def test_what_may_pass_is_tried_again_and_what_may_not_is_told_at_once():
    import tensorflow as tf

    from trainer.saving import storage

    calls = []

    def busy() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise tf.errors.UnavailableError(None, None, "503")
        return "done"

    assert storage.with_retries(busy, "read", first_wait_s=0.01) == "done" and len(calls) == 3

    def refused() -> None:
        calls.append(1)
        raise tf.errors.PermissionDeniedError(None, None, "403")

    with pytest.raises(storage.StorageError, match="not allowed"):
        storage.with_retries(refused, "read", first_wait_s=0.01)
    assert len(calls) == 4


def test_sigterm_before_training_ends_with_143(forks, tmp_path):
    job = forks.start([*FLAGS, f"--job_dir={tmp_path}"], tmp_path / "log.txt", setup="import time\n")
    while job.poll() is None and not job.text:
        pass
    job.kill(signal.SIGTERM)
    assert job.wait() == 143, job.text
