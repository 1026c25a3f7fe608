"""CentralStorage in a whole job: what it reports is what MirroredStrategy reports."""

import jobs

STAND_IN = {"TRAINYARD_STAND_IN": "gpu:2"}


def test_every_reported_metric_of_every_epoch_is_that_of_mirrored(forks, tmp_path):
    for name in ("mirrored", "central_storage"):
        flags = [*jobs.SHORT, "--histogram_epochs=2", f"--strategy={name}", f"--job_dir={tmp_path / name}"]
        job = forks.start(flags, tmp_path / f"{name}.txt", STAND_IN, jobs.NO_EXPORT)
        assert job.wait() == 0, job.text
    mirrored, central = tmp_path / "mirrored", tmp_path / "central_storage"
    assert jobs.result(central)["metrics"] == jobs.result(mirrored)["metrics"]
    assert jobs.curves(central / "logs") == jobs.curves(mirrored / "logs")
    shown = jobs.histograms(central / "logs")
    assert {tag.split("/")[0] for tag, _ in shown} == {"weights", "gradients"}
    assert shown == jobs.histograms(mirrored / "logs")
