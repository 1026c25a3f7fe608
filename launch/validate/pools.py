"""What worker pools must be, beyond their types: what they run, their shape together, and what the job says beside."""

import re

from launch import machines, spec
from launch.spec import Pool, dig
from launch.spec.document import Document
from launch.validate import machine

MAX_POOLS = 4
DISK_GB = range(100, 64_001)
DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")


def check(job: spec.JobFile) -> None:
    """Note what is wrong with the pools and with what the job says beside them."""
    pools = job.pools
    base = (*job.prefix, "workerPoolSpecs")
    if not pools and "workerPoolSpecs" in job.job:
        job.document.find(base, "no worker pool", "at least one, the chief's", "see configs/cpu.yaml", key=True)
    if len(pools) > MAX_POOLS:
        came = f"{len(pools)} worker pools"
        expected = "at most 4: chief, workers, parameter servers or reducers, evaluators"
        job.document.find(pools[MAX_POOLS].path, came, expected)
    for pool in pools:
        if not pool.data:
            _empty(job, pool)
            continue
        _what_runs(job.document, pool)
        machine.check(job.document, pool)
        _disk(job.document, pool)
    _chief(job.document, pools)
    _tpu_shape(job.document, pools)
    _reducers(job, pools)
    _beside(job)


def _empty(job: spec.JobFile, pool: Pool) -> None:
    if pool.index == 0:
        job.document.find(pool.path, "an empty chief pool", "the chief's machineSpec and containerSpec")
    elif job.kind == "custom":  # the API and hp-tuning-jobs take it, custom-jobs' own client doesn't
        fix = "give the pool its containerSpec, or put what it stands before in its place"
        job.document.find(pool.path, "an empty worker pool", "a full one: gcloud refuses empty ones in --config", fix)


def _what_runs(doc: Document, pool: Pool) -> None:
    given = [key for key in ("containerSpec", "pythonPackageSpec") if key in pool.data]
    if not given:
        doc.find(pool.path, "a worker pool that runs nothing", "containerSpec or pythonPackageSpec")
    count = dig(pool.data, "replicaCount", kind=int, default=None)
    if count is not None and count < 1:
        doc.find((*pool.path, "replicaCount"), f"replicaCount: {count}", "1 or more", "remove the pool instead")
    for key, name in (("containerSpec", "imageUri"), ("pythonPackageSpec", "executorImageUri")):
        uri = dig(pool.data, key, name, kind=str, default=None)
        if uri is not None and not re.fullmatch(r"[A-Za-z0-9][\w.:/@-]*[\w]", uri):
            expected = "an image such as us-central1-docker.pkg.dev/PROJECT/REPOSITORY/NAME:TAG, or ${IMAGE}"
            doc.find((*pool.path, key, name), f"{name}: {uri!r}", expected)
    for place, uri in enumerate(dig(pool.package, "packageUris", kind=list, default=[])):
        if isinstance(uri, str) and not uri.startswith("gs://"):
            path = (*pool.path, "pythonPackageSpec", "packageUris", place)
            doc.find(path, f"{uri!r}", "a gs:// address", "run `make package` and write ${PACKAGE}")


def _disk(doc: Document, pool: Pool) -> None:
    size = dig(pool.data, "diskSpec", "bootDiskSizeGb", kind=int, default=None)
    if size is not None and size not in DISK_GB:
        path = (*pool.path, "diskSpec", "bootDiskSizeGb")
        doc.find(path, f"bootDiskSizeGb: {size}", f"{DISK_GB.start} to {DISK_GB.stop - 1} (GB)")
    kind = dig(pool.data, "diskSpec", "bootDiskType", kind=str, default=None)
    if kind is not None and kind not in DISK_TYPES:
        doc.find((*pool.path, "diskSpec", "bootDiskType"), f"bootDiskType: {kind}", f"one of {', '.join(DISK_TYPES)}")


def _chief(doc: Document, pools: list[Pool]) -> None:
    if pools and pools[0].replicas > 1:
        path = (*pools[0].path, "replicaCount")
        fix = "put the other replicas into a second pool, the workers': see configs/multi_worker.yaml"
        if machines.is_tpu(pools[0].machine_type):
            fix = "a larger slice is a larger tpuTopology, not more replicas"
        doc.find(path, f"replicaCount: {pools[0].replicas} in the chief's pool", "1: there is one chief", fix)


def _tpu_shape(doc: Document, pools: list[Pool]) -> None:
    tpu = [pool for pool in pools if machines.is_tpu(pool.machine_type)]
    if tpu and len(pools) > 1:
        other = next((pool for pool in pools[1:]), pools[0])
        fix = "a slice over several machines is one replica with a larger tpuTopology"
        doc.find(other.path, f"a TPU job with {len(pools)} worker pools", "one worker pool, always", fix)


def _reducers(job: spec.JobFile, pools: list[Pool]) -> None:
    """Reduction Server: an NCCL plug-in for GPU workers; its machines sit in the third pool and have no GPU."""
    for pool in pools:
        if "reductionserver" not in pool.image:
            continue
        path = (*pool.path, "containerSpec", "imageUri")
        if pool.index != 2:
            job.document.find(path, f"Reduction Server in pool {pool.index}", "the third pool, workerPoolSpecs[2]")
        if pool.accelerator:
            fix = "n1-highcpu-16 is the usual one"
            accelerator = (*pool.path, "machineSpec", "acceleratorType")
            job.document.find(accelerator, "a reducer with an accelerator", "a CPU machine", fix)
        if not any(other.architecture == "gpu" for other in pools if other.role in ("chief", "worker")):
            job.document.find(path, "Reduction Server without GPU workers", "a chief and workers with GPUs")
        chief = pools[0]
        if chief.runs_trainer and chief.flags.get("communication") != "nccl":
            fix = "add --communication=nccl to the args of the chief and the workers"
            job.document.find(chief.args_path, "Reduction Server without NCCL", "--communication=nccl", fix, key=True)


def _beside(job: spec.JobFile) -> None:
    """The fields of the job that name other things."""
    doc, prefix = job.document, job.prefix
    output = dig(job.job, "baseOutputDirectory", "outputUriPrefix", kind=str, default=None)
    path = (*prefix, "baseOutputDirectory", "outputUriPrefix")
    if output is not None and not re.fullmatch(r"gs://[a-z0-9][\w.-]+(/.*)?", output):
        fix = "a bucket is 3 to 63 of a-z, 0-9, -, _ and .; BUCKET in project.env is written without gs://"
        doc.find(path, f"outputUriPrefix: {output!r}", "gs://BUCKET/FOLDER", fix if output.startswith("gs://") else "")
    account = dig(job.job, "serviceAccount", kind=str, default="")
    if account and not re.fullmatch(r"[^@\s]+@[^@\s]+\.[a-z]+|\d+", account):
        doc.find(
            (*prefix, "serviceAccount"),
            f"serviceAccount: {account!r}",
            "an address such as NAME@PROJECT.iam.gserviceaccount.com",
        )
    board = dig(job.job, "tensorboard", kind=str, default="")
    path = (*prefix, "tensorboard")
    if board and not re.fullmatch(r"projects/[^/]+/locations/[^/]+/tensorboards/[^/]+", board):
        doc.find(path, f"tensorboard: {board!r}", "projects/NUMBER/locations/REGION/tensorboards/ID")
    if board and not account:
        doc.find(path, "tensorboard without serviceAccount", "both: Vertex AI writes as that account", key=True)
    if board and output is None:
        doc.find(path, "tensorboard without baseOutputDirectory", "both: the curves are read from there", key=True)
    network = dig(job.job, "network", kind=str, default="")
    if network and not re.fullmatch(r"projects/[^/]+/global/networks/[^/]+", network):
        doc.find((*prefix, "network"), f"network: {network!r}", "projects/NUMBER/global/networks/NAME")
