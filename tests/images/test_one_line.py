"""`make build-cpu push submit`: one line from a change of code to a job that runs it, by digest."""

import json
import subprocess
import sys

import pytest

from tests.images.containers import HANG_S
from tests.standin import StandIn

pytestmark = pytest.mark.engine


def test_make_build_push_submit_is_one_line(images, registry, tree, tmp_path):
    images("cpu")  # so that the build here finds its layers
    link = tree / ".venv"
    link.symlink_to(sys.prefix)
    record = tree / ".cache/image.json"
    before = record.read_text() if record.exists() else None

    def created(call):
        return {**call.body, "name": f"projects/1/locations/{call['region']}/customJobs/42"}

    try:
        with StandIn() as api:
            api.route("POST", r"/v1/projects/p/locations/(?P<region>[^/]+)/customJobs", created)
            values = ["PROJECT=p", "REGION=us-central1", "BUCKET=jobs", "ARGS=--no_preflight"]
            done = subprocess.run(
                ["make", "-o", ".venv/dev.stamp", "build-cpu", "push", "submit", *values],
                cwd=tree,
                env=api.environment(tmp_path / "gcloud", project="p"),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=HANG_S,
            )
            assert done.returncode == 0, done.stdout[-3000:]
            (call,) = api.calls
        pushed = json.loads(record.read_text())
        (pool,) = call.body["jobSpec"]["workerPoolSpecs"]
        repository = pushed["image"].rpartition(":")[0]
        assert repository == f"{registry}/images-test-cpu" and pushed["digest"]
        assert pool["containerSpec"]["imageUri"] == f"{repository}@{pushed['digest']}"
        assert pool["machineSpec"] == {"machineType": "e2-standard-8"}  # the config that fits a cpu image
    finally:
        link.unlink()
        record.unlink(missing_ok=True) if before is None else record.write_text(before)
