"""A pool's machine: a type that exists, an accelerator and a count that fit it, a TPU's topology."""

import difflib

from launch import machines
from launch.spec import Pool, dig
from launch.spec.document import Document

_TABLE = "a machine that Vertex AI has added since is one line in launch/machines.json"


def check(doc: Document, pool: Pool) -> None:
    """Note what is wrong with a pool's machineSpec."""
    path = (*pool.path, "machineSpec")
    if "machineSpec" not in pool.data:
        doc.find(pool.path, "a worker pool without machineSpec", "machineSpec with a machineType")
        return
    name = pool.machine_type
    if not name:
        if isinstance(pool.data["machineSpec"], dict) and "machineType" not in pool.machine:
            doc.find(path, "machineSpec without machineType", "a machineType such as e2-standard-8", key=True)
        return
    if name not in machines.all_types():
        near = difflib.get_close_matches(name, machines.all_types(), n=1)
        fix = f"write {near[0]}" if near else _TABLE
        doc.find((*path, "machineType"), f"machineType: {name}", "a machine type of Vertex AI training", fix)
        return
    if machines.is_tpu(name):
        _tpu(doc, pool)
        return
    if "tpuTopology" in pool.machine:
        expected = f"no tpuTopology: {name} has no TPU"
        doc.find((*path, "tpuTopology"), "tpuTopology", expected, "see configs/tpu.yaml", key=True)
    _gpu(doc, pool)


def _gpu(doc: Document, pool: Pool) -> None:
    path = (*pool.path, "machineSpec")
    name, accelerator = pool.machine_type, pool.accelerator
    fits = machines.gpus(name)
    count = dig(pool.machine, "acceleratorCount", kind=int, default=None)
    if not accelerator:
        if count:
            doc.find(
                (*path, "acceleratorCount"), f"acceleratorCount: {count} without acceleratorType", "both or neither"
            )
        elif fits and name not in machines.cpu_types() and "acceleratorType" not in pool.machine:
            kind, counts = next(iter(fits.items()))
            fix = f"add acceleratorType: {kind} and acceleratorCount: {counts[0]}"
            doc.find((*path, "machineType"), f"{name} without acceleratorType", f"the GPU of {name}, {kind}", fix)
        return
    if count is None or count < 1:
        if "acceleratorCount" not in pool.machine or count is not None:
            place = (*path, "acceleratorCount" if count is not None else "acceleratorType")
            doc.find(
                place,
                f"{accelerator} with acceleratorCount {count or 'left out'}",
                f"acceleratorCount: {_counts(fits, accelerator)}",
            )
        return
    if count in fits.get(accelerator, ()):
        return
    others = machines.machines_with(accelerator, count)
    fix = f"machines with {count} {accelerator}: {', '.join(others[:6])}" if others else ""
    if accelerator in fits:
        expected = f"acceleratorCount {_counts(fits, accelerator)} on {name}"
        doc.find((*path, "acceleratorCount"), f"acceleratorCount: {count}", expected, fix)
    else:
        has = " or ".join(fits) if fits else "no accelerator"
        doc.find((*path, "acceleratorType"), f"{accelerator} on {name}", f"{has} on {name}", fix)


def _counts(fits: dict[str, list[int]], accelerator: str) -> str:
    return " or ".join(map(str, fits.get(accelerator, [1])))


def _tpu(doc: Document, pool: Pool) -> None:
    path = (*pool.path, "machineSpec")
    name, topologies = pool.machine_type, machines.topologies(pool.machine_type)
    if topologies:
        topology = dig(pool.machine, "tpuTopology", kind=str, default="")
        choice = ", ".join(topologies)
        if not topology:
            doc.find((*path, "machineType"), f"{name} without tpuTopology", f"tpuTopology: one of {choice}")
        elif topology not in topologies:
            doc.find((*path, "tpuTopology"), f"tpuTopology: {topology}", f"one of {choice} on {name}")
        for key in ("acceleratorType", "acceleratorCount"):
            if key in pool.machine:
                expected = f"tpuTopology alone: {name} takes no {key}"
                doc.find((*path, key), f"{key} on {name}", expected, "remove the line", key=True)
        return
    allowed = machines.tpu_accelerators(name)
    count = dig(pool.machine, "acceleratorCount", kind=int, default=0)
    if pool.accelerator not in allowed:
        came = f"{name} with acceleratorType {pool.accelerator or 'left out'}"
        fix = "later TPUs have machines of their own: see configs/tpu.yaml"
        doc.find((*path, "acceleratorType"), came, f"acceleratorType {' or '.join(allowed)}", fix)
    elif not machines.tpu_count_fits(pool.accelerator, count):
        doc.find((*path, "acceleratorCount"), f"acceleratorCount: {count}", f"{allowed[pool.accelerator]} cores")
    if "tpuTopology" in pool.machine:
        doc.find((*path, "tpuTopology"), "tpuTopology", f"acceleratorType and acceleratorCount on {name}", key=True)
