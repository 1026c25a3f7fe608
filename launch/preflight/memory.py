"""Batch and memory: the global batch over the replicas, and the model's estimate against the accelerator's memory."""

import math
import pathlib
from collections.abc import Iterator

from launch.checks import Check
from launch.preflight import accelerators
from launch.preflight.estimate import Need, estimate
from launch.preflight.flags import of_job
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.spec import Pool

# How far the truth was from the estimate, as factors, where a step's real peak was measured (docs/preflight.md);
# a TPU pads the last dimensions to 8 x 128, which no graph shows.
OFF = {"cpu": (0.65, 1.6), "gpu": (0.65, 1.6), "tpu": (0.65, 2.5)}
# Vertex AI's documentation: agents may take up to 40 % of the memory of its smallest machines.
SMALL_VCPUS, SMALL_SHARE, LARGE_SHARE = 4, 0.6, 0.85
GB = 1e9


def arithmetic(job: Job) -> Iterator[Check]:
    """The global batch over replicas and micro-batches, spelled out."""
    flags = of_job(job)
    batch, parts = int(flags.number("batch_size")), max(1, int(flags.number("accumulate")))
    spelled = f"{batch} examples over {job.devices} replica{'s' * (job.devices != 1)}"
    spelled += f" and {parts} micro-batches" if parts > 1 else ""
    whole, rest = divmod(batch, job.devices * parts)
    if rest or not whole:
        near = max(1, round(batch / (job.devices * parts))) * job.devices * parts
        command = f"make local CONFIG={pathlib.Path(job.file.file).stem} ARGS=--batch_size={near}"
        yield Check("batch", "failure", f"{spelled} don't divide", f"--batch_size={near} does", command)
    else:
        yield Check("batch", "ok", f"{spelled}: {whole} each")


def fits(job: Job) -> Iterator[Check]:
    """The estimate against each kind of machine that trains."""
    need = estimate(job)
    seen = set()
    for pool in job.trainers:
        if (pool.machine_type, pool.accelerator) not in seen:
            seen.add((pool.machine_type, pool.accelerator))
            yield _fits(job, pool, need)


def _fits(job: Job, pool: Pool, need: Need) -> Check:
    flags = of_job(job)
    parts = max(1, int(flags.number("accumulate")))
    share = flags.number("batch_size") / job.devices / parts
    middle = need.bytes(share, parts > 1) / GB
    low, high = (middle * factor for factor in OFF[pool.architecture])
    room, whose = memory_gb(pool)
    said = f"about {size(middle)} ({size(low)} to {size(high)}) for {share:,.10g} examples a replica"
    said += f", {need.parameters:,} parameters"
    if need.unsized_tensors:
        said += f"; {need.unsized_tensors} tensors have no size before run time and are not in it"
    if room is None:
        return Check("memory", "unknown", f"{said}; the memory of {whose} is not in the tables", "compare it yourself")
    said += f"; {whose} has {size(room)} to give"
    if high <= room:
        return Check("memory", "ok", said)
    fix, command = _smaller(job, need, room, OFF[pool.architecture][1], parts)
    return Check("memory", "failure" if low > room else "warning", said, fix, command)


def size(gb: float) -> str:
    """To three digits, and never as 1.36e+03."""
    number, unit = (gb, "GB") if gb >= 0.1 else (gb * 1000, "MB")
    return f"{float(f'{number:.3g}'):,.15g} {unit}"


def _smaller(job: Job, need: Need, room: float, factor: float, parts: int) -> tuple[str, str]:
    """What would fit for sure: more micro-batches, as --batch_size_fit=accumulate does at run time too."""
    allowed = room * GB / factor
    most = max((n for n in range(1, 4097) if need.bytes(n, True) <= allowed), default=0)
    stem = pathlib.Path(job.file.file).stem
    if most < 1:
        return "the model alone may not fit: take an accelerator with more memory, or --precision=mixed_bfloat16", ""
    batch = int(of_job(job).number("batch_size"))
    rows, uneven = divmod(batch, job.devices)
    splits = None if uneven else _splits(rows, parts, most)
    if splits is None:
        smaller = most * job.devices
        command = f"make local CONFIG={stem} ARGS=--batch_size={smaller}"
        return f"at most {most} examples a replica fit for sure", command
    fix = f"--accumulate={splits} gives the same result from micro-batches of {rows // splits}"
    return fix, f"make local CONFIG={stem} ARGS=--accumulate={splits}"


def _splits(rows: int, parts: int, most: int) -> int | None:
    """The fewest micro-batches, `parts` or more, of at most `most` examples that `rows` divides into."""
    small = [n for n in range(1, math.isqrt(rows) + 1) if rows % n == 0]
    return min((n for n in (*small, *(rows // n for n in small)) if n >= parts and rows // n <= most), default=None)


def memory_gb(pool: Pool) -> tuple[float | None, str]:
    """(GB that training may use, or None where unknown; of what): one accelerator's, or the machine's."""
    kind = accelerators.of(pool)
    if kind:
        return kind.memory_gb * accelerators.data()["usable"], f"one {kind.name}"
    if pool.accelerator:
        return None, pool.accelerator
    whole = accelerators.host_memory_gb(pool.machine_type)
    if whole is None:
        return None, pool.machine_type or "the machine"
    small = accelerators.vcpus(pool.machine_type) <= SMALL_VCPUS
    return whole * (SMALL_SHARE if small else LARGE_SHARE), pool.machine_type


PROBES = (Probe("memory", "batch", arithmetic), Probe("memory", "memory", fits))
