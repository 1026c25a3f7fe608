"""A submission as a person reads it before it goes."""

from launch.spec import JobFile
from launch.vertex.request import Request


def show(job: JobFile, made: Request) -> None:
    """What will run: pools, machines, accelerators, image, arguments, output."""
    from launch.console import console, table

    rows = []
    for pool in job.pools:
        devices = f"{pool.devices} x {pool.accelerator or 'TPU chip'}" if pool.devices else "-"
        topology = pool.machine.get("tpuTopology")
        rows.append(
            (pool.role, str(pool.replicas), pool.machine_type, f"{devices} ({topology})" if topology else devices)
        )
    out = console()
    out.print(f"{made.name}: {job.file} in {made.project}, {made.region}", markup=False)
    out.print(table(("pool", "replicas", "machine", "accelerators"), rows))
    images = list(dict.fromkeys(pool.image for pool in job.pools if pool.image))
    facts = [("image", image) for image in images]
    facts += [("package", uri) for pool in job.pools for uri in pool.package.get("packageUris", [])]
    lines = list(dict.fromkeys(" ".join(pool.args) for pool in job.pools if pool.args))
    facts += [("arguments", line) for line in lines]
    facts += [("output", job.output or "none: what the job writes is lost with its machines")]
    facts += [("runs as", job.job.get("serviceAccount") or "Vertex AI's Custom Code Service Agent")]
    scheduling = " ".join(f"{key}={_word(value)}" for key, value in job.scheduling.items())
    facts += [("scheduling", scheduling)] if scheduling else []
    if job.kind == "tuning":
        metric = job.study["metrics"][0]
        trials = f"{job.data['maxTrialCount']} trials, {job.data['parallelTrialCount']} at once"
        facts.append(("study", f"{trials}, {metric['goal'].lower()} {metric['metricId']}"))
    for name, value in facts:
        out.print(f"  {name:<11} {value}", markup=False)


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
