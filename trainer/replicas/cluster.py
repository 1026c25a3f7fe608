"""What the environment says about this job: who is here, who is chief, and on which hardware.

Vertex AI sets TF_CONFIG on jobs of several replicas, CLUSTER_SPEC on all
(https://cloud.google.com/vertex-ai/docs/training/distributed-training).
"""

import dataclasses
import json
import os
from collections.abc import Mapping
from typing import Any

ROLES = ("chief", "worker", "ps", "evaluator")


class ClusterError(Exception):
    """The environment describes no cluster that this job can run in; str() is one sentence."""


@dataclasses.dataclass(frozen=True)
class Cluster:
    """One replica's view of the job.

    `addresses` holds host:port by role, without the evaluator, as TF_CONFIG does; it is empty for a
    job of one replica. `reducers` are the addresses of a Reduction Server, which Vertex lists as `ps`.
    """

    role: str = "chief"
    index: int = 0
    addresses: Mapping[str, list[str]] = dataclasses.field(default_factory=dict)
    reducers: tuple[str, ...] = ()
    accelerator: str = ""  # what the job asked for, such as NVIDIA_L4 or TPU; "" for none
    accelerator_count: int = 0  # on this replica
    machine_type: str = ""  # such as ct5lp-hightpu-4t
    in_cloud: bool = False
    trial: str = ""

    @property
    def workers(self) -> int:
        """How many replicas of the job train: the chief and the workers."""
        return max(1, len(self.addresses.get("chief", [])) + len(self.addresses.get("worker", [])))

    @property
    def is_chief(self) -> bool:
        """Whether this replica writes to the job's folders."""
        if self.role == "chief":
            return True
        return self.role == "worker" and self.index == 0 and "chief" not in self.addresses

    @property
    def worker_index(self) -> int:
        """This replica's place among those that train, the chief first."""
        return self.index + (self.role == "worker" and "chief" in self.addresses)

    @property
    def name(self) -> str:
        """For the log: worker:1."""
        return f"{self.role}:{self.index}"


def read_cluster(environ: Mapping[str, str] = os.environ) -> Cluster:
    """The cluster that TF_CONFIG and CLUSTER_SPEC describe. Raises ClusterError."""
    spec = _json(environ, "CLUSTER_SPEC")
    config = _json(environ, "TF_CONFIG")
    addresses, role, index = _task(config)
    job = spec.get("job") or config.get("job") or {}
    job = json.loads(job) if isinstance(job, str) else job
    pool, task = _pool(spec, job, role)
    reducers: tuple[str, ...] = ()
    if addresses.get("ps") and _is_reducer(_pools(job)[2] if len(_pools(job)) > 2 else {}):
        reducers = tuple(addresses.pop("ps"))
    machine = _get(pool, "machineSpec") or {}
    accelerator = str(_get(machine, "acceleratorType") or "")
    if not accelerator and _get(machine, "tpuTopology"):
        accelerator = "TPU"
    return Cluster(
        role=role,
        index=index,
        addresses={name: list(hosts) for name, hosts in addresses.items() if hosts and name != "evaluator"},
        reducers=reducers,
        accelerator=accelerator,
        accelerator_count=int(_get(machine, "acceleratorCount") or 0),
        machine_type=str(_get(machine, "machineType") or ""),
        in_cloud="CLOUD_ML_JOB_ID" in environ,
        trial=str(environ.get("CLOUD_ML_TRIAL_ID") or task.get("trial") or ""),
    )


def stand_in(environ: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """("gpu", 4) where TRAINYARD_STAND_IN=gpu:4 has logical CPU devices stand in for accelerators."""
    text = environ.get("TRAINYARD_STAND_IN", "")
    kind, _, count = text.partition(":")
    if not text:
        return "", 0
    if kind not in ("gpu", "tpu") or not count.isdigit() or not int(count):
        raise ClusterError(f"TRAINYARD_STAND_IN={text} came; expected gpu:4 or tpu:8")
    return kind, int(count)


def _json(environ: Mapping[str, str], name: str) -> dict[str, Any]:
    text = environ.get(name, "").strip()
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ClusterError(f"{name} is not JSON ({error}): {text[:120]}") from None
    if not isinstance(value, dict):
        raise ClusterError(f"{name} is a JSON {type(value).__name__}; an object with cluster and task is expected")
    return value


def _task(config: dict[str, Any]) -> tuple[dict[str, list[str]], str, int]:
    """(addresses, role, index) of TF_CONFIG; a job of one replica has none."""
    if not config:
        return {}, "chief", 0
    cluster, task = config.get("cluster") or {}, config.get("task") or {}
    if not isinstance(cluster, dict) or not all(isinstance(hosts, list) for hosts in cluster.values()):
        raise ClusterError(f"TF_CONFIG's cluster should map each role to a list of host:port; it is {cluster!r:.120}")
    addresses = {("chief" if role == "master" else role): list(hosts) for role, hosts in cluster.items()}
    role = "chief" if task.get("type") == "master" else task.get("type", "chief" if not addresses else None)
    if role not in ROLES:
        raise ClusterError(f"TF_CONFIG's task.type is {role!r}; expected one of {', '.join(ROLES)}")
    try:
        index = int(task.get("index", 0))
    except (TypeError, ValueError):
        raise ClusterError(f"TF_CONFIG's task.index is {task.get('index')!r}; expected a whole number") from None
    if addresses and role != "evaluator" and not 0 <= index < len(addresses.get(role, [])):
        there = {name: len(hosts) for name, hosts in addresses.items()}
        raise ClusterError(f"TF_CONFIG's task is {role}:{index}, which its cluster {there} doesn't have")
    return addresses, role, index


def _get(mapping: Any, camel: str) -> Any:
    """A field in either spelling of protobuf's JSON."""
    if not isinstance(mapping, Mapping):
        return None
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)
    return mapping.get(camel, mapping.get(snake))


def _pools(job: Any) -> list[Any]:
    spec = _get(job, "jobSpec") or job
    return _get(spec, "workerPoolSpecs") or []


def _pool(spec: dict[str, Any], job: Any, role: str) -> tuple[Any, dict[str, Any]]:
    """The worker pool of this replica in the job's own spec, and its task in CLUSTER_SPEC."""
    task = spec.get("task") or {}
    name = str(task.get("type", ""))
    number = name.removeprefix("workerpool")
    index = int(number) if name.startswith("workerpool") and number.isdigit() else ROLES.index(role)
    pools = _pools(job)
    return (pools[index] if index < len(pools) else {}), task


def _is_reducer(pool: Any) -> bool:
    return "reductionserver" in str(_get(_get(pool, "containerSpec") or {}, "imageUri") or "")
