"""Quotas: what a job takes, what the project may have and what is in use.

Limits come from Service Usage (consumerQuotaMetrics: every region in one answer), usage from Cloud Monitoring
(quota/allocation/usage) and from the region's running jobs, whichever is more: the former lags by minutes.
"""

import datetime

from launch.preflight import accelerators
from launch.preflight.cloud import Cloud
from launch.preflight.job import Job
from launch.preflight.request import Trouble
from launch.spec import JobFile, Pool

SERVICE = "aiplatform.googleapis.com"


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
