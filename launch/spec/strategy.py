"""The strategy that a job file comes to, and the replicas that share its global batch."""

from launch.spec import JobFile


def of(job: JobFile) -> str:
    """The strategy of the file: --strategy of its chief, or what `auto` will take for this shape."""
    pools = job.pools
    chosen = pools[0].flags.get("strategy") if pools else None
    if chosen and chosen != "auto":
        return chosen
    roles = {pool.role for pool in pools if pool.replicas > 0}
    if pools and pools[0].architecture == "tpu":
        return "tpu"
    if "ps" in roles:
        return "parameter_server"
    if "worker" in roles:
        return "multi_worker"
    return "mirrored" if pools and pools[0].devices > 1 else "one_device"


def replicas_in_sync(job: JobFile) -> int | None:
    """The number of replicas that the global batch is cut into; None where each worker takes its own."""
    pools = [pool for pool in job.pools if pool.role in ("chief", "worker")]
    chosen = of(job)
    if not pools or chosen == "parameter_server":
        return None
    if chosen == "one_device":
        return 1
    if chosen != "multi_worker":
        pools = pools[:1]
    count = sum(min(pool.replicas, 10_000) * max(1, min(pool.devices, 10_000)) for pool in pools)
    return max(1, count)
