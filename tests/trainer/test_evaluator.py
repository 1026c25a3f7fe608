"""The evaluator of a job evaluates what the chief saves, and ends when the job does."""

import json
import re

import jobs


def test_an_evaluator_follows_a_job_to_its_end(forks, tmp_path):
    flags = ["--epochs=2", "--examples_per_epoch=256", "--batch_size=32", "--checkpoint_every=4steps"]
    flags += [f"--job_dir={tmp_path}/job"]
    cluster = json.loads(jobs.cluster(1)[0]["TF_CONFIG"])["cluster"]
    chief, evaluator = (
        forks.start(
            flags,
            tmp_path / f"{role}.txt",
            {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": 0}})},
        )
        for role in ("chief", "evaluator")
    )
    assert chief.wait() == 0, chief.text
    assert evaluator.wait() == 0, evaluator.text
    said = re.findall(r"\[evaluator:0\] step (\d+)  loss (\S+)  accuracy (\S+)", evaluator.text)
    reached = jobs.result(tmp_path / "job")["metrics"]["validation"]
    assert said[-1] == ("16", f"{reached['loss']:.4f}", f"{reached['accuracy']:.4f}"), evaluator.text
    assert "WARNING" not in evaluator.text
    points = [point for point in jobs.curves(tmp_path / "job" / "logs") if point[0] == "evaluator"]
    assert {step for _, _, step, _ in points} == {int(step) for step, _, _ in said}
