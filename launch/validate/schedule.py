"""Capacity and restarts: on demand, Spot, Flex-start, reservations, and what each asks of the rest of the file."""

import re

from launch import machines, spec
from launch.spec import dig, strategy

WEEK_S = 7 * 86_400
FLEX_GPUS = ("NVIDIA_L4", "A100", "H100", "H200", "B200")  # parts of the accelerators' names
RESERVATION_KEY = "compute.googleapis.com/reservation-name"


def check(job: spec.JobFile) -> None:
    """Note where scheduling doesn't fit the machines, or leaves the job without a way back."""
    _times(job)
    _restarts(job)
    _reservations(job)
    chosen = dig(job.scheduling, "strategy", kind=str, default="")
    if chosen == "SPOT":
        _spot(job)
    if chosen == "FLEX_START":
        _flex_start(job)
    elif "maxWaitDuration" in job.scheduling:
        path = _at(job, "maxWaitDuration")
        job.document.find(
            path, "maxWaitDuration without Flex-start", "strategy: FLEX_START with it", "remove it", key=True
        )


def _at(job: spec.JobFile, *path: str) -> tuple:
    return (*job.prefix, "scheduling", *path)


def seconds(text: object) -> float | None:
    """`3600s` -> 3600.0; None for anything else."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)s", text) if isinstance(text, str) else None
    return float(match[1]) if match else None


def _times(job: spec.JobFile) -> None:
    timeout = seconds(job.scheduling.get("timeout"))
    if timeout == 0:
        job.document.find(_at(job, "timeout"), "timeout: 0s", "the longest time that the job may take, such as 3600s")


def _restarts(job: spec.JobFile) -> None:
    restart = job.scheduling.get("restartJobOnWorkerRestart") is True
    workers = [pool for pool in job.pools if pool.role == "worker" and pool.replicas > 0 and pool.runs_trainer]
    if workers and not restart and strategy.of(job) == "multi_worker":
        path = _at(job, "restartJobOnWorkerRestart") if job.scheduling else job.prefix
        expected = "true: a restarted worker can't join the others of a MultiWorkerMirroredStrategy again"
        fix = "add restartJobOnWorkerRestart: true under scheduling; the trainer goes on from its last checkpoint"
        job.document.find(path, "several workers without restartJobOnWorkerRestart", expected, fix, key=True)
    if restart and job.scheduling.get("disableRetries") is True:
        expected = "one of them: disableRetries turns restartJobOnWorkerRestart off"
        path = _at(job, "disableRetries")
        job.document.find(
            path, "disableRetries and restartJobOnWorkerRestart", expected, "remove disableRetries", key=True
        )


def _spot(job: spec.JobFile) -> None:
    path = _at(job, "strategy")
    chief = job.pools[0] if job.pools else None
    folders = [chief.flags.get(name) for name in ("checkpoint_dir", "job_dir")] if chief else []
    kept = any(folder and folder.startswith(("gs://", "/gcs/")) for folder in folders)
    if "baseOutputDirectory" not in job.job and not kept:
        fix = "add baseOutputDirectory with outputUriPrefix: gs://${BUCKET}/${NAME}/${JOB}"
        job.document.find(path, "SPOT without a place for checkpoints", "a baseOutputDirectory to go on from", fix)
    for pool in job.pools:
        hosts = machines.topologies(pool.machine_type).get(pool.machine.get("tpuTopology"), 1) if _tpu(pool) else 1
        if hosts > 1 or (_tpu(pool) and dig(pool.machine, "acceleratorCount", kind=int, default=0) > 8):
            job.document.find(path, "SPOT with a TPU slice over several machines", "one machine, or no SPOT")


def _tpu(pool: spec.Pool) -> bool:
    return machines.is_tpu(pool.machine_type) and isinstance(pool.machine.get("tpuTopology", ""), str)


def _flex_start(job: spec.JobFile) -> None:
    doc = job.document
    timeout = seconds(job.scheduling.get("timeout"))
    if timeout is not None and timeout > WEEK_S:
        came = f"timeout: {job.scheduling['timeout']} with FLEX_START"
        doc.find(_at(job, "timeout"), came, f"at most 7 days, {WEEK_S}s")
    pools = job.pools
    for pool in pools:
        place = (*pool.path, "machineSpec")
        if pool.role == "reducer":
            doc.find(
                place, "Reduction Server with FLEX_START", "the same machine in every pool, or no FLEX_START", key=True
            )
        elif pool.index and pool.data and pool.machine != pools[0].machine:
            doc.find(
                place,
                "another machine than the chief's with FLEX_START",
                "the same machineSpec in every pool",
                key=True,
            )
        elif not any(part in pool.accelerator for part in FLEX_GPUS) and pool.machine_type:
            came = f"{pool.accelerator or pool.machine_type} with FLEX_START"
            doc.find(place, came, "L4, A100, H100, H200 or B200", "on-demand or Spot for the others", key=True)


def _reservations(job: spec.JobFile) -> None:
    doc = job.document
    for pool in job.pools:
        affinity = dig(pool.machine, "reservationAffinity", kind=dict, default=None)
        if affinity is None:
            continue
        path = (*pool.path, "machineSpec", "reservationAffinity")
        kind = dig(affinity, "reservationAffinityType", kind=str, default="")
        values = dig(affinity, "values", kind=list, default=[])
        if kind == "SPECIFIC_RESERVATION":
            if affinity.get("key") != RESERVATION_KEY:
                doc.find((*path, "key"), f"key: {affinity.get('key')}", RESERVATION_KEY)
            if not values:
                doc.find(path, "SPECIFIC_RESERVATION without values", "the reservation's full path", key=True)
        elif kind in ("ANY_RESERVATION", "NO_RESERVATION") and (values or "key" in affinity):
            doc.find(path, f"{kind} with a key or values", "none, or SPECIFIC_RESERVATION", key=True)
        for place, value in enumerate(values):
            if isinstance(value, str) and not re.fullmatch(r"projects/[^/]+/zones/[^/]+/reservations/[^/]+", value):
                expected = "the full path, projects/OWNER/zones/ZONE/reservations/NAME"
                doc.find((*path, "values", place), f"{value!r}", expected, "a shared one names its owner's project")
        if job.scheduling.get("strategy") == "FLEX_START" and kind != "NO_RESERVATION":
            doc.find(
                path, "a reservation with FLEX_START", "one of the two", "remove strategy or the reservation", key=True
            )
