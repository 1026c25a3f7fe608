"""From a job file to replicas: roles, commands, accelerators, and a sentence for what can't run here."""

import pytest

from launch.local.plan import PlanError, accelerators, expanded, replicas


def pool(count=1, image="trainer", machine=None, **container):
    return {"replicaCount": count, "machineSpec": machine or {}, "containerSpec": {"imageUri": image, **container}}


def test_roles_are_those_of_the_pools_places():
    spec = {"workerPoolSpecs": [pool(), pool(2), pool(1), pool(1)]}
    assert [one.name for one in replicas(spec)] == ["chief", "worker:0", "worker:1", "ps:0", "evaluator:0"]


def test_a_pool_left_empty_has_no_replica():
    spec = {"workerPoolSpecs": [pool(), {}, pool(1)]}
    assert [one.name for one in replicas(spec)] == ["chief", "ps:0"]


def test_without_a_command_the_entrypoint_runs_and_later_arguments_come_last():
    (chief,) = replicas({"workerPoolSpecs": [pool(args=["--epochs=5"])]}, ["--epochs=1"])
    assert chief.program == ("python", "-m", "trainer.task", "--epochs=5", "--epochs=1")


def test_a_command_replaces_the_entrypoint():
    (chief,) = replicas({"workerPoolSpecs": [pool(command=["bash", "-c"], args=["true"])]})
    assert chief.program == ("bash", "-c", "true")


def test_a_python_package_runs_its_module():
    package = {"executorImageUri": "image", "packageUris": ["gs://b/p.tar.gz"], "pythonModule": "a.b", "args": ["--x"]}
    (chief,) = replicas({"workerPoolSpecs": [{"replicaCount": 1, "pythonPackageSpec": package}]})
    assert (chief.image, chief.program) == ("image", ("python", "-m", "a.b", "--x"))


def test_a_reduction_server_is_stood_in_for_and_gets_no_trainer_arguments():
    image = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
    *_, reducer = replicas({"workerPoolSpecs": [pool(), pool(), pool(1, image)]}, ["--epochs=1"])
    assert (reducer.name, reducer.role, reducer.reducer) == ("reducer:0", "ps", True)
    assert "--epochs=1" not in reducer.program


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ({"machineType": "n1-standard-8"}, ""),
        ({"acceleratorType": "NVIDIA_L4", "acceleratorCount": 4}, "gpu:4"),
        ({"acceleratorType": "TPU_V3", "acceleratorCount": 8}, "tpu:8"),
        ({"machineType": "ct5lp-hightpu-4t", "tpuTopology": "2x4"}, "tpu:8"),
        ({"machineType": "tpu7x-standard-4t", "tpuTopology": "2x2x1"}, "tpu:4"),
    ],
)
def test_accelerators_are_counted_as_tensorflow_would_see_them(machine, expected):
    assert accelerators(machine) == expected


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "chief"),
        ({"workerPoolSpecs": "x"}, "list"),
        ({"workerPoolSpecs": [{}, pool()]}, "chief"),
        ({"workerPoolSpecs": [pool("many")]}, "'many'"),
        ({"workerPoolSpecs": [pool(machine={"tpuTopology": "big"})]}, "2x4"),
        ({"workerPoolSpecs": [{"pythonPackageSpec": {"executorImageUri": "x"}}]}, "pythonModule"),
    ],
)
def test_what_cannot_run_is_told_in_a_sentence(spec, said):
    with pytest.raises(PlanError, match=said):
        replicas(spec)


def test_env_values_refer_to_those_before_them():
    entries = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2 $$(A) $(C)"}, {"name": "C", "value": "3"}]
    assert expanded(entries) == {"A": "1", "B": "12 $(A) $(C)", "C": "3"}
