"""What a replica of a rehearsal finds in its environment: TF_CONFIG, CLUSTER_SPEC, AIP_*, nothing of the shell's."""

import json
from pathlib import Path

from launch.local.environment import inherited, of_replica
from launch.local.plan import replicas

SPEC = {
    "workerPoolSpecs": [
        {"replicaCount": count, "containerSpec": {"imageUri": "x", "env": [{"name": "OWN", "value": "1"}]}}
        for count in (1, 2, 1, 1)
    ],
    "baseOutputDirectory": {"outputUriPrefix": "gs://bucket/job"},
}
EVERYONE = replicas(SPEC)
ADDRESSES = {one.name: f"127.0.0.1:{place}" for place, one in enumerate(EVERYONE, 1)}


def of(name, spec=SPEC, everyone=EVERYONE, trial=""):
    (replica,) = [one for one in everyone if one.name == name]
    output = Path("/out")
    return of_replica(replica, spec=spec, addresses=ADDRESSES, everyone=everyone, output=output, trial=trial)


def test_tf_config_has_the_cluster_without_the_evaluator():
    config = json.loads(of("worker:1")["TF_CONFIG"])
    assert config["cluster"] == {
        "chief": ["127.0.0.1:1"],
        "worker": ["127.0.0.1:2", "127.0.0.1:3"],
        "ps": ["127.0.0.1:4"],
    }
    assert (config["task"]["type"], config["task"]["index"], config["environment"]) == ("worker", 1, "cloud")


def test_an_evaluator_finds_itself_in_the_task_alone():
    config = json.loads(of("evaluator:0")["TF_CONFIG"])
    assert config["task"]["type"] == "evaluator"
    assert "evaluator" not in config["cluster"]


def test_cluster_spec_names_pools_and_carries_the_job():
    cluster_spec = json.loads(of("ps:0")["CLUSTER_SPEC"])
    assert cluster_spec["cluster"]["workerpool1"] == ["127.0.0.1:2", "127.0.0.1:3"]
    assert cluster_spec["task"] == {"type": "workerpool2", "index": 0}
    assert cluster_spec["job"] == SPEC


def test_one_replica_alone_gets_no_tf_config():
    spec = {"workerPoolSpecs": SPEC["workerPoolSpecs"][:1]}
    variables = of("chief", spec, replicas(spec))
    assert "TF_CONFIG" not in variables
    assert "CLUSTER_SPEC" in variables
    assert not [name for name in variables if name.startswith("AIP_")]  # nor AIP_*, without baseOutputDirectory


def test_places_end_in_a_slash():
    variables = of("chief")
    assert {variables[f"AIP_{name}_DIR"] for name in ("MODEL", "CHECKPOINT", "TENSORBOARD_LOG")} == {
        "/out/model/",
        "/out/checkpoints/",
        "/out/logs/",
    }
    assert variables["OWN"] == "1"


def test_a_trial_knows_its_number_and_has_a_metric_file_of_its_own():
    chief, worker = of("chief", trial="3"), of("worker:0", trial="3")
    assert chief["CLOUD_ML_TRIAL_ID"] == "3"
    assert json.loads(chief["TF_CONFIG"])["task"]["trial"] == "3"
    assert json.loads(chief["CLUSTER_SPEC"])["task"]["trial"] == "3"
    assert chief["CLOUD_ML_HP_METRIC_FILE"] != worker["CLOUD_ML_HP_METRIC_FILE"]
    assert "CLOUD_ML_JOB_ID" not in chief


def test_the_shell_leaks_no_other_job():
    kept = inherited(
        {"PATH": "/bin", "TF_CONFIG": "{}", "AIP_MODEL_DIR": "gs://x", "CLOUD_ML_JOB_ID": "1", "HOME": "/h"}
        | {"TRAINYARD_STAND_IN": "gpu:4", "TRAINYARD_EXAMPLE": "/text"}
    )
    assert kept == {"PATH": "/bin", "HOME": "/h", "TRAINYARD_EXAMPLE": "/text"}
