"""Capacity: does the quota have room for what the file asks for, where else would it fit, and Flex-start's limits."""

from collections.abc import Iterator

from launch import machines
from launch.checks import Check
from launch.preflight import accelerators
from launch.preflight.cloud import Cloud
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.preflight.quotas import SERVICE, asked, limits, usage
from launch.preflight.request import Trouble
from launch.spec import dig

CONSOLE = "https://console.cloud.google.com/iam-admin/quotas?project={project}"
FLEX_MAX_S = 7 * 24 * 3600


def quota(job: Job, cloud: Cloud) -> Iterator[Check]:
    """Limit, usage and need of every metric in the job's region."""
    for metric, need in asked(job).items():
        name = f"quota {metric.removeprefix('custom_model_training_')}"
        try:
            found = limits(cloud, job.project, metric)
        except Trouble as trouble:
            if trouble.kind != "missing":
                raise
            said = f"no limit is known by the name of {metric} ({trouble.detail})"
            yield Check(name, "unknown", said, "see what it is called in this project", _listed(job, metric))
            continue
        limit = found.get(job.region, found.get("", 0))
        used, how = usage(job, cloud, metric)
        said = f"{need} needed in {job.region}, "
        said += (
            f"{used} of {limit} in use{how}" if limit > 0 else f"and the limit there is {'0' if limit == 0 else 'none'}"
        )
        if limit < 0 or need + used <= limit:
            yield Check(name, "ok", said)
            continue
        fix = "; ".join([_ask_or_wait(job, need, limit), *elsewhere(job, cloud, metric, need, found)])
        yield Check(name, "failure", said, fix, _listed(job, metric))


def _ask_or_wait(job: Job, need: int, limit: int) -> str:
    if need > limit:
        return f"ask for {need} at {CONSOLE.format(project=job.project)} (days, not minutes)"
    return "wait for the jobs that hold it: such a job stays queued"


def _listed(job: Job, metric: str) -> str:
    where = f"--service={SERVICE} --consumer=projects/{job.project}"
    return f"gcloud alpha services quota list {where} --filter=metric:{metric}"


def elsewhere(job: Job, cloud: Cloud, metric: str, need: int, here: dict[str, int]) -> Iterator[str]:
    """Where it would fit: other regions, the same thing as Spot, other accelerators in this region."""
    regions = sorted(region for region, limit in here.items() if region not in ("", job.region) and limit >= need)
    if regions:
        yield f"it would fit in {', '.join(regions[:4])} (change REGION)"
    kinds = [kind for pool in job.pools if (kind := accelerators.of(pool))]
    kind = next((kind for kind in kinds if kind.quota == _bare(metric)), None)
    if kind is None:
        return
    if "preemptible" not in metric and _has_room(job, cloud, kind.metric(True), need):
        yield f"there is quota for {need} as Spot (scheduling.strategy: SPOT)"
    for name in kind.instead:
        other = accelerators.named(name)
        if other and _has_room(job, cloud, other.metric("preemptible" in metric), need):
            types = machines.machines_with(name, need) or machines.machines_with(name, 1)
            yield f"{job.region} has quota for {need} {name}" + (f" (machineType: {types[0]})" if types else "")


def _bare(metric: str) -> str:
    return metric.removeprefix("custom_model_training_").removeprefix("preemptible_")


def _has_room(job: Job, cloud: Cloud, metric: str, need: int) -> bool:
    try:
        found = limits(cloud, job.project, metric)
        limit = found.get(job.region, found.get("", 0))
        return limit < 0 or limit - usage(job, cloud, metric)[0] >= need
    except Trouble:
        return False


def flex_start(job: Job) -> Iterator[Check]:
    """Offline: the limits of Flex-start, for a file that asks for it."""
    if job.strategy != "FLEX_START":
        return
    troubles = []
    for pool in job.pools:
        kind = accelerators.of(pool)
        if kind is None or not kind.flex_start:
            troubles.append(f"{pool.accelerator or pool.machine_type} is not among L4, A100, H100, H200 and B200")
    text = dig(job.file.scheduling, "timeout", kind=str, default="604800s")
    if float(text.removesuffix("s")) > FLEX_MAX_S:
        troubles.append(f"timeout {text} is over 7 days ({FLEX_MAX_S}s)")
    if len({str(sorted(pool.machine.items())) for pool in job.pools}) > 1:
        troubles.append("its pools have different machines")
    if any(dig(pool.machine, "reservationAffinity", kind=dict, default={}) for pool in job.pools):
        troubles.append("it names a reservation")
    if troubles:
        fix = "change that, or use scheduling.strategy SPOT or STANDARD"
        yield Check("flex start", "failure", "; ".join(dict.fromkeys(troubles)), fix)
    else:
        waits = dig(job.file.scheduling, "maxWaitDuration", kind=str, default="86400s")
        yield Check("flex start", "ok", f"within its limits; waits {'for ever' if waits == '0s' else 'up to ' + waits}")


PROBES = (
    Probe("capacity", "flex start", flex_start),
    Probe("capacity", "quota", quota, online=True),
)
