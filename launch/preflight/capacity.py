"""Capacity: the quota of what the file asks for, what is in use of it, and where else it would fit.

Limits come from Service Usage (consumerQuotaMetrics: every region in one answer), usage from Cloud Monitoring
(quota/allocation/usage) and from the region's running jobs, whichever is more: the former lags by minutes.
"""

import datetime
from collections.abc import Iterator

from launch import machines
from launch.checks import Check
from launch.preflight import accelerators
from launch.preflight.cloud import Cloud, Trouble
from launch.preflight.job import Job
from launch.preflight.probe import Probe
from launch.spec import JobFile, Pool, dig

SERVICE = "aiplatform.googleapis.com"
CONSOLE = "https://console.cloud.google.com/iam-admin/quotas?project={project}"
FLEX_MAX_S = 7 * 24 * 3600


def asked(job: Job) -> dict[str, int]:
    """Quota metric -> how much of it the job takes: accelerators, or vCPUs of machines without any."""
    needs: dict[str, int] = {}
    for pool in job.pools:
        metric, amount = _of_pool(pool, job.strategy in ("SPOT", "FLEX_START"))
        if metric:
            needs[metric] = needs.get(metric, 0) + amount * pool.replicas * job.trials_at_a_time
    return needs


def _of_pool(pool: Pool, preemptible: bool) -> tuple[str, int]:
    kind = accelerators.of(pool)
    if kind:
        return kind.metric(preemptible), max(1, pool.devices)
    metric = accelerators.cpu_metric(pool.machine_type) if not pool.accelerator else ""
    if preemptible and metric:
        metric = metric.replace("training_", "training_preemptible_")
    return metric, accelerators.vcpus(pool.machine_type)


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


def limits(cloud: Cloud, project: str, metric: str) -> dict[str, int]:
    """Region -> limit, "" for the regions that are not named; -1 is no limit. Raises Trouble."""
    path = f"v1beta1/projects/{project}/services/{SERVICE}/consumerQuotaMetrics/{SERVICE}%2F{metric}"
    found: dict[str, int] = {}
    for limit in cloud.get("serviceusage", path, view="FULL").get("consumerQuotaLimits", []):
        if "{region}" not in limit.get("unit", "{region}"):
            continue
        for bucket in limit.get("quotaBuckets", []):
            where = bucket.get("dimensions", {}).get("region", "")
            found[where] = int(bucket.get("effectiveLimit", 0))
    if not found:
        raise Trouble("missing", f"{metric} has no limit for each region")
    return found


def usage(job: Job, cloud: Cloud, metric: str, region: str = "") -> tuple[int, str]:
    """(how much is in use, a remark on how sure that is)."""
    counted = None
    for count in (_monitored, _running):
        try:
            counted = max(counted or 0, count(job, cloud, metric, region or job.region))
        except Trouble as trouble:
            if trouble.kind == "perimeter":
                raise
    return (0, " (usage can't be seen: 0 is taken)") if counted is None else (counted, "")


def _monitored(job: Job, cloud: Cloud, metric: str, region: str) -> int:
    now = datetime.datetime.now(datetime.UTC).replace(second=0, microsecond=0)
    series = cloud.get(
        "monitoring",
        f"v3/projects/{job.project}/timeSeries",
        **{
            "filter": 'metric.type="serviceruntime.googleapis.com/quota/allocation/usage" AND '
            f'resource.type="consumer_quota" AND metric.label.quota_metric="{SERVICE}/{metric}"',
            "interval.startTime": (now - datetime.timedelta(hours=25)).isoformat().replace("+00:00", "Z"),
            "interval.endTime": now.isoformat().replace("+00:00", "Z"),
        },
    ).get("timeSeries", [])
    here = [one for one in series if one.get("resource", {}).get("labels", {}).get("location") == region]
    return sum(int(one["points"][0]["value"].get("int64Value", 0)) for one in here if one.get("points"))


def _running(job: Job, cloud: Cloud, metric: str, region: str) -> int:
    """What the region's running and pending jobs hold of the metric, read from their own specs."""
    answer = cloud.get(
        "aiplatform",
        f"v1/projects/{job.project}/locations/{region}/customJobs",
        filter='state="JOB_STATE_RUNNING" OR state="JOB_STATE_PENDING"',
        pageSize=100,
    )
    held = 0
    for running in answer.get("customJobs", []):
        # JSON of the API has int64 as text and leaves out what is 0; the reader of job files has the rest
        other = Job(JobFile(_Found(_numbers(running.get("jobSpec", {}))), "custom", []), job.project, region, {})
        held += asked(other).get(metric, 0)
    return held


class _Found:
    """What JobFile needs of a document, around a spec that came from the API."""

    def __init__(self, data: dict):
        self.data, self.file = data, "running"


def _numbers(spec: dict) -> dict:
    for pool in spec.get("workerPoolSpecs", []):
        pool["replicaCount"] = int(pool.get("replicaCount", 0))
    return spec


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
