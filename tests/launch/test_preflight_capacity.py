"""Preflight of capacity: quota, use, Flex-start and reservations."""

import pytest

from launch import project
from launch.preflight import capacity, reservations
from launch.preflight.job import Job
from tests import google_world
from tests.google_world import NUMBER, VARIABLES
from tests.launch.preflight_world import look


def test_no_quota_and_where_there_is(google):
    google.limits = {
        "custom_model_training_nvidia_l4_gpus": {"us-central1": 2, "europe-west4": 16},
        "custom_model_training_preemptible_nvidia_l4_gpus": {"us-central1": 8},
        "custom_model_training_nvidia_t4_gpus": {"us-central1": 6},
        "custom_model_training_nvidia_a100_gpus": {"us-central1": 1},
    }
    check = look(google, "multi_worker", capacity)["quota nvidia_l4_gpus"]
    assert check.status == "failure"
    assert "6 needed in us-central1, 0 of 2 in use" in check.found
    assert "europe-west4" in check.fix
    assert "as Spot" in check.fix
    assert "NVIDIA_TESLA_T4" in check.fix
    assert "A100" not in check.fix


def test_quota_that_others_use_now(google):
    google.used = {"custom_model_training_nvidia_l4_gpus": 8}
    check = look(google, "gpu", capacity)["quota nvidia_l4_gpus"]
    assert (check.status, "8 of 8 in use" in check.found, "wait" in check.fix) == ("failure", True, True)


def test_running_jobs_count_before_monitoring_sees_them(google):
    machine = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
    google.jobs = [{"jobSpec": {"workerPoolSpecs": [{"machineSpec": machine, "replicaCount": "8"}]}}]
    assert "8 of 8 in use" in look(google, "gpu", capacity)["quota nvidia_l4_gpus"].found


def test_spot_and_flex_start_have_a_quota_of_their_own(google):
    for config in ("spot", "flex_start"):
        job = Job.read(str(project.ROOT / "configs" / f"{config}.yaml"), VARIABLES)
        assert all("_preemptible_" in metric for metric in capacity.asked(job)), config


def test_trials_at_a_time_add_up():
    job = Job.read(str(project.ROOT / "configs" / "tune.yaml"), VARIABLES)
    assert capacity.asked(job) == {"custom_model_training_nvidia_l4_gpus": 4}


def test_a_quota_nobody_knows(google):
    google.limits = {}
    assert look(google, "gpu", capacity)["quota nvidia_l4_gpus"].status == "unknown"


def test_flex_starts_limits(tmp_path):
    good = Job.read(str(project.ROOT / "configs" / "flex_start.yaml"), VARIABLES)
    assert [check.status for check in capacity.flex_start(good)] == ["ok"]
    text = (project.ROOT / "configs" / "flex_start.yaml").read_text()
    path = tmp_path / "flex_start.yaml"
    path.write_text(
        text.replace("scheduling:\n", "scheduling:\n  timeout: 1209600s\n").replace("NVIDIA_L4", "NVIDIA_TESLA_T4")
    )
    lines = path.read_text().splitlines()
    keep = [i for i, line in enumerate(lines) if line.startswith("  timeout:")]
    path.write_text("\n".join(line for i, line in enumerate(lines) if i not in keep[1:]))
    (check,) = capacity.flex_start(Job.read(str(path), VARIABLES))
    assert check.status == "failure"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"}}, "not shared with Vertex AI"),
        ({"status": "CREATING"}, "not READY"),
        (
            {
                "specificReservation": {
                    "count": "1",
                    "inUseCount": "1",
                    "instanceProperties": {"machineType": "a3-highgpu-2g"},
                }
            },
            "0 of 1 are free",
        ),
        (
            {"specificReservation": {"count": "2", "instanceProperties": {"machineType": "a3-highgpu-8g"}}},
            "holds a3-highgpu-8g",
        ),
    ],
)
def test_a_reservation_that_does_not_fit(google, changed, told):
    google.reservations["two"] = google_world.reservation(**changed)
    check = look(google, "reserved", reservations)["reservation"]
    assert check.status == "failure"
    assert told in check.found


def test_a_reservation_elsewhere_or_of_somebody_else(google):
    elsewhere = "projects/yard/zones/europe-west4-a/reservations/two"
    assert "the job runs in" in look(google, "reserved", reservations, RESERVATION=elsewhere)["reservation"].found
    theirs = "projects/other/zones/us-central1-a/reservations/two"
    assert "doesn't share it" in look(google, "reserved", reservations, RESERVATION=theirs)["reservation"].found
    google.reservations["two"] = google_world.reservation(
        shareSettings={"shareType": "SPECIFIC_PROJECTS", "projectMap": {NUMBER: {"projectId": "yard"}}}
    )
    assert look(google, "reserved", reservations, RESERVATION=theirs)["reservation"].status == "ok"
    assert look(google, "reserved", reservations, RESERVATION=theirs[:-3] + "no")["reservation"].status == "failure"
