"""The table of machines, read as the rules need it."""

import pytest

from launch import machines


def test_braces_are_written_out():
    assert {"e2-standard-8", "n4-highmem-80", "c2-standard-60", "m1-megamem-96"} <= machines.cpu_types()
    assert "e2-standard-2" not in machines.cpu_types()
    assert not any("{" in name for name in machines.all_types())


@pytest.mark.parametrize(
    ("machine", "accelerator", "architecture"),
    [("e2-standard-8", "", "cpu"), ("n1-standard-8", "NVIDIA_TESLA_T4", "gpu"), ("ct5lp-hightpu-4t", "", "tpu")],
)
def test_which_image_a_machine_needs(machine, accelerator, architecture):
    assert machines.architecture(machine, accelerator) == architecture


def test_machines_with_a_number_of_a_gpu():
    assert machines.machines_with("NVIDIA_L4", 4) == ["g2-standard-48"]
    assert "n1-standard-32" not in machines.machines_with("NVIDIA_TESLA_T4", 1)
    assert machines.machines_with("NVIDIA_TESLA_P100", 1) == []


@pytest.mark.parametrize(
    ("accelerator", "count", "fits"),
    [("TPU_V3", 8, True), ("TPU_V3", 16, False), ("TPU_V3", 32, True), ("TPU_V2", 40, False), ("TPU_V2", 64, True)],
)
def test_slices_of_v2_and_v3(accelerator, count, fits):
    assert machines.tpu_count_fits(accelerator, count) is fits


def test_devices_of_a_replica():
    assert machines.replica_devices({"machineType": "ct5lp-hightpu-4t", "tpuTopology": "4x4"}) == 16
    assert machines.replica_devices({"acceleratorType": "NVIDIA_L4", "acceleratorCount": 2}) == 2
    assert machines.replica_devices({"machineType": "e2-standard-8"}) == 0
    assert all(
        machines.tpu_chips(shape)
        for name in machines.all_types()
        if machines.is_tpu(name)
        for shape in machines.topologies(name)
    )
