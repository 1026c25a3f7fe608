"""Which accelerators fit which machines; the data is machines.json, whose `source` says where it's from.

A machine that Vertex AI added since then is one line there.
"""

import functools
import itertools
import json
import pathlib
import re

DATA = pathlib.Path(__file__).with_name("machines.json")


@functools.cache
def _data() -> dict:
    return json.loads(DATA.read_text())


@functools.cache
def cpu_types() -> frozenset[str]:
    """Machine types that run without an accelerator."""
    return frozenset(itertools.chain.from_iterable(_expand(pattern) for pattern in _data()["cpu"]))


def _expand(pattern: str) -> list[str]:
    """`e2-highmem-{2,4}` -> [`e2-highmem-2`, `e2-highmem-4`]."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if place % 2 else [part] for place, part in enumerate(parts)]
    return ["".join(combination) for combination in itertools.product(*choices)]


@functools.cache
def all_types() -> frozenset[str]:
    """Every machine type that the tables know."""
    return cpu_types() | set(_data()["gpu"]) | set(_data()["tpu_topology_to_vm_count"])


def is_tpu(machine_type: str) -> bool:
    """Whether it is a machine with TPU chips."""
    return machine_type in _data()["tpu_topology_to_vm_count"]


def gpus(machine_type: str) -> dict[str, list[int]]:
    """accelerator -> the counts that the machine can have of it; empty for a machine without GPUs."""
    return _data()["gpu"].get(machine_type, {})


def machines_with(accelerator: str, count: int) -> list[str]:
    """Machine types that can have exactly `count` of the GPU."""
    return [name for name, fits in _data()["gpu"].items() if count in fits.get(accelerator, ())]


def topologies(machine_type: str) -> dict[str, int]:
    """tpuTopology -> the number of VMs of the slice; empty for cloud-tpu (v2, v3), which has none."""
    return _data()["tpu_topology_to_vm_count"][machine_type]["tpuTopology"] or {}


def tpu_accelerators(machine_type: str) -> dict[str, str]:
    """accelerator -> the counts allowed, in words: only cloud-tpu has an acceleratorType."""
    return _data()["tpu_topology_to_vm_count"][machine_type].get("acceleratorType", {})


def tpu_count_fits(accelerator: str, count: int) -> bool:
    """Whether a v2 or v3 slice of `count` cores exists: 8 on one host, from 32 on a pod."""
    return count == 8 or (count >= 32 and (accelerator == "TPU_V3" or count % 32 == 0))


def tpu_chips(topology: str) -> int:
    """`2x4` -> 8 chips."""
    chips = 1
    for side in topology.split("x"):
        chips *= int(side)
    return chips


def architecture(machine_type: str, accelerator: str | None) -> str:
    """cpu, gpu or tpu: which image a replica on this machine needs."""
    if is_tpu(machine_type):
        return "tpu"
    return "gpu" if accelerator else "cpu"


def replica_devices(machine_spec: dict) -> int:
    """Accelerators that one worker pool replica sees; 0 on a machine without any.

    A TPU v2 or v3 counts cores (what TensorFlow sees), later ones chips: v5e has one core a chip.
    """
    if machine_spec.get("tpuTopology"):
        return tpu_chips(machine_spec["tpuTopology"])
    return int(machine_spec.get("acceleratorCount") or 0)
