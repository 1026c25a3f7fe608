"""Parameter servers: a worker dies in the middle of a job and comes back, and no step is lost or counted twice."""

import json
import re
import signal
import time

import jobs
import pytest

STEPS = 400


def environs(workers):
    """name -> TF_CONFIG of a chief, its workers and one parameter server on this machine."""
    hosts = json.loads(jobs.cluster(workers + 2)[0]["TF_CONFIG"])["cluster"]
    cluster = {"chief": hosts["chief"], "worker": hosts["worker"][:workers], "ps": hosts["worker"][workers:]}
    return {
        f"{role}:{index}": {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})}
        for role in cluster
        for index in range(len(cluster[role]))
    }


@pytest.mark.slow
def test_a_worker_dies_and_comes_back_while_training_goes_on(forks, tmp_path):
    flags = ["--strategy=parameter_server", "--epochs=4", f"--steps_per_epoch={STEPS // 4}", "--batch_size=32"]
    flags += ["--log_every_steps=10", "--histogram_epochs=0", f"--job_dir={tmp_path}/job"]
    names = environs(3)

    def start(name, suffix=""):
        return forks.start(flags, tmp_path / f"{name}{suffix}.txt", names[name], jobs.NO_EXPORT)

    started = {name: start(name) for name in names}
    chief = started["chief:0"]
    while not re.search(r"^step [5-9]\d/", chief.text, re.M) and chief.poll() is None:
        time.sleep(0.02)
    started["worker:1"].kill(signal.SIGKILL)
    seen = chief.text.count("\nstep ")
    while chief.text.count("\nstep ") < seen + 3 and chief.poll() is None:  # on without it
        time.sleep(0.02)
    assert chief.poll() is None, chief.text
    started["worker:1"] = start("worker:1", "-again")
    assert chief.wait() == 0, chief.text
    assert [job.wait() for job in started.values()] == [0] * len(started)
    result = jobs.result(tmp_path / "job")
    assert result["steps"] == STEPS
    assert result["metrics"]["test"]["accuracy"] > 0.9
    seen = STEPS // 4 * 32  # in the last epoch: were one update of a metric lost, the share would be one of fewer
    right = result["metrics"]["train"]["accuracy"] * seen
    assert abs(right - round(right)) < 0.01
    shown = [int(step) for step in re.findall(r"^step (\d+)/", chief.text, re.M)]
    assert shown == list(range(10, STEPS + 1, 10))
