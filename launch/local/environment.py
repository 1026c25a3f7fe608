"""The environment that Vertex AI gives each replica, with local addresses and folders.

Sources: cloud.google.com/vertex-ai/docs/training/distributed-training (CLUSTER_SPEC, TF_CONFIG) and
.../training/code-requirements (AIP_*, CLOUD_ML_*). Left out on purpose: CLOUD_ML_JOB_ID, CLOUD_ML_PROJECT_ID, TPU_*
and AIP_TENSORBOARD_RESOURCE_NAME, because code takes them as the sign that it runs in the cloud.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from launch.local.plan import ROLES, Replica

# What an earlier job, or the person's shell, may have left behind and no replica should see.
CLEARED = ("TF_CONFIG", "CLUSTER_SPEC", "AIP_", "CLOUD_ML_", "TPU_", "TRAINYARD_")
KEPT = "TRAINYARD_EXAMPLE"  # whose model.py and data.py train: nothing of an earlier job


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The shell's environment without what describes a job."""
    return {key: value for key, value in environ.items() if key == KEPT or not key.startswith(CLEARED)}


def of_replica(
    replica: Replica,
    *,
    spec: Mapping,
    addresses: Mapping[str, str],
    everyone: Sequence[Replica],
    output: Path,
    trial: str = "",
) -> dict[str, str]:
    """The variables of one replica; `addresses` maps a replica's name to its host:port.

    `output` stands in for baseOutputDirectory (and already ends in the trial's id where there is one).
    """
    variables = dict(replica.env)
    variables["CLUSTER_SPEC"] = json.dumps(_cluster_spec(replica, spec, addresses, everyone, trial))
    if len(everyone) > 1:
        variables["TF_CONFIG"] = json.dumps(_tf_config(replica, spec, addresses, everyone, trial))
    if spec.get("baseOutputDirectory"):
        for name, folder in {"MODEL": "model", "CHECKPOINT": "checkpoints", "TENSORBOARD_LOG": "logs"}.items():
            variables[f"AIP_{name}_DIR"] = f"{output}/{folder}/"
    if trial:
        variables["CLOUD_ML_TRIAL_ID"] = trial
        variables["CLOUD_ML_HP_METRIC_FILE"] = str(metric_file(output, replica.name))
    if replica.accelerators:
        variables["TRAINYARD_STAND_IN"] = replica.accelerators
    return variables


def metric_file(output: Path, name: str = "chief") -> Path:
    """Where a replica's cloudml-hypertune writes: one file each, as each has its own disk in the cloud."""
    return output / "hypertune" / f"{name.replace(':', '-')}.metrics"


def _cluster_spec(replica: Replica, spec: Mapping, addresses: Mapping, everyone: Sequence[Replica], trial: str) -> dict:
    cluster: dict[str, list[str]] = {}
    for other in everyone:
        cluster.setdefault(f"workerpool{other.pool}", []).append(addresses[other.name])
    task = {"type": f"workerpool{replica.pool}", "index": replica.index}
    if trial:
        task["trial"] = trial
    return {"cluster": cluster, "environment": "cloud", "task": task, "job": dict(spec)}


def _tf_config(replica: Replica, spec: Mapping, addresses: Mapping, everyone: Sequence[Replica], trial: str) -> dict:
    """An evaluator stands in `task` but never in `cluster`; a reducer shows up as a `ps`."""
    cluster: dict[str, list[str]] = {}
    for other in everyone:
        if other.role != "evaluator":
            cluster.setdefault(ROLES[other.pool], []).append(addresses[other.name])
    task = {"type": replica.role, "index": replica.index, "cloud": "local"}
    if trial:
        task["trial"] = trial
    return {"cluster": cluster, "environment": "cloud", "task": task, "job": dict(spec)}
