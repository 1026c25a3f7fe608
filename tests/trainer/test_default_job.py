"""What `make train` promises: the default model on the bundled data."""

import jobs
import pytest


@pytest.mark.slow
def test_the_default_model_reaches_what_the_readme_says(forks, tmp_path):
    job = forks.start([f"--job_dir={tmp_path}/job"], tmp_path / "log.txt")
    assert job.wait() == 0, job.text
    assert jobs.result(tmp_path / "job")["metrics"]["test"]["accuracy"] >= 0.985
    for name in ("model", "checkpoints", "logs", "result"):
        assert f"{name}:" in job.text
