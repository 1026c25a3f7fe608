"""What one accelerator is: memory, number formats, the name of its quota (data: accelerators.json)."""

import dataclasses
import functools
import json
from pathlib import Path

from launch.spec import Pool

DATA = Path(__file__).with_name("accelerators.json")


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """One kind; `memory_gb` of a single device, in GB of 10^9 bytes, as its data sheet counts."""

    name: str
    memory_gb: float
    quota: str
    bfloat16: bool
    float16: bool
    instead: tuple[str, ...] = ()
    flex_start: bool = False
    machine: str = ""  # beginning of the machine types that imply it

    def metric(self, preemptible: bool) -> str:
        """Its quota's metric for training, such as `custom_model_training_preemptible_nvidia_l4_gpus`."""
        return f"custom_model_training_{'preemptible_' if preemptible else ''}{self.quota}"


@functools.cache
def data() -> dict:
    """accelerators.json."""
    return json.loads(DATA.read_text())


@functools.cache
def named(name: str) -> Accelerator | None:
    """The kind of that name, or None."""
    kind = data()["kinds"].get(name)
    return kind and Accelerator(name, **{**kind, "instead": tuple(kind.get("instead", ()))})


def of(pool: Pool) -> Accelerator | None:
    """What a pool's machines compute with, or None for the CPU (and for a kind that is not known)."""
    if pool.accelerator:
        return named(pool.accelerator)
    for name, kind in data()["kinds"].items():
        if kind.get("machine") and pool.machine_type.startswith(kind["machine"]):
            return named(name)
    return None


def vcpus(machine: str) -> int:
    """The vCPUs of a machine type whose name ends in them, 0 for the others."""
    last = machine.rsplit("-", 1)[-1]
    return int(last) if last.isdigit() else 0


def host_memory_gb(machine: str) -> float | None:
    """Memory of a machine in GB, or None where its family isn't in the table."""
    per_vcpu = data()["host_memory_gb_per_vcpu"].get(machine.rsplit("-", 1)[0])
    return per_vcpu * vcpus(machine) if isinstance(per_vcpu, int | float) and vcpus(machine) else None


def cpu_metric(machine: str) -> str:
    """The quota metric of a machine family's vCPUs, "" where it isn't known."""
    return data()["cpu_quota"].get(machine.split("-", 1)[0], "")
