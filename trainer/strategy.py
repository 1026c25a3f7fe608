"""The tf.distribute strategy for what is there, or a sentence that says why not. Never a fall-back."""

import dataclasses
import json
import os

import tensorflow as tf

from trainer.cluster import Cluster, stand_in
from trainer.settings import Settings


class StrategyError(Exception):
    """The strategy asked for doesn't fit what is there; str() is one sentence."""


@dataclasses.dataclass(frozen=True)
class Devices:
    """The devices of this replica that train: GPUs, or logical CPU devices that stand in for them."""

    kind: str  # CPU or GPU
    names: tuple[str, ...]


def set_up_devices(settings: Settings, cluster: Cluster) -> Devices:
    """Threads, memory growth and logical devices: what must precede TensorFlow's first operation.

    Raises:
        StrategyError: the job asked for an accelerator that is not seen.
    """
    tf.config.threading.set_intra_op_parallelism_threads(settings.intra_op_threads)
    tf.config.threading.set_inter_op_parallelism_threads(settings.inter_op_threads)
    kind, count = stand_in()
    if kind:
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * count)
        return Devices("CPU", tuple(f"/cpu:{index}" for index in range(count)))
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    _require_accelerator(settings, cluster, len(gpus))
    if gpus:
        return Devices("GPU", tuple(f"/gpu:{index}" for index in range(len(gpus))))
    return Devices("CPU", ("/cpu:0",))


def _require_accelerator(settings: Settings, cluster: Cluster, gpus: int) -> None:
    wanted = cluster.accelerator_count if cluster.accelerator.startswith("NVIDIA") else 0
    strict = settings.require_accelerator
    if strict == "no" or (strict == "auto" and not (cluster.in_cloud and wanted)):
        return
    if gpus < max(wanted, 1) and not cluster.accelerator.startswith("TPU"):
        asked = f"{wanted} x {cluster.accelerator}" if wanted else "a GPU (--require_accelerator=yes)"
        raise StrategyError(
            f"the job asked for {asked} and TensorFlow sees {gpus}: `python -m trainer.doctor --for=gpu` says which "
            "library or driver is missing; --require_accelerator=no trains without"
        )


def choose(settings: Settings, cluster: Cluster, devices: Devices) -> str:
    """The name of the strategy: the flag's, or for auto what is there. Raises StrategyError where it doesn't fit."""
    asked = settings.strategy
    several = cluster.workers > 1
    if asked == "auto":
        if stand_in()[0] == "tpu" or cluster.accelerator.startswith("TPU"):
            return "tpu"
        if cluster.addresses.get("ps"):
            return "parameter_server"
        if several:
            return "multi_worker"
        return "mirrored" if len(devices.names) > 1 else "one_device"
    if asked == "multi_worker" and not cluster.addresses:
        raise StrategyError(
            "--strategy=multi_worker needs a cluster, and TF_CONFIG is not set: this is a job of 1 replica"
        )
    if asked == "parameter_server" and not cluster.addresses.get("ps"):
        there = {role: len(hosts) for role, hosts in cluster.addresses.items()} or "no cluster"
        raise StrategyError(f"--strategy=parameter_server needs parameter servers (worker pool 2); there is {there}")
    if asked in ("one_device", "mirrored", "central_storage") and several:
        raise StrategyError(
            f"--strategy={asked} trains in one process, and the cluster has {cluster.workers} workers: "
            "use --strategy=multi_worker"
        )
    if asked == "multi_worker" and cluster.addresses.get("ps"):
        raise StrategyError(
            f"--strategy=multi_worker has no parameter servers, and the cluster has {len(cluster.addresses['ps'])}: "
            "use --strategy=parameter_server, or drop worker pool 2"
        )
    return asked


def make_strategy(settings: Settings, cluster: Cluster, devices: Devices) -> tf.distribute.Strategy:
    """The strategy that `choose` names, made. Raises StrategyError."""
    name = choose(settings, cluster, devices)
    if name == "one_device":
        return tf.distribute.OneDeviceStrategy(devices.names[0])
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(
            list(devices.names), cross_device_ops=_cross_device_ops(settings, devices)
        )
    if name == "multi_worker":
        _write_tf_config(cluster)
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication_options(settings))
    raise StrategyError(f"--strategy={name} doesn't fit this job")


def communication_options(settings: Settings) -> tf.distribute.experimental.CommunicationOptions:
    """How replicas of a synchronous strategy sum their gradients."""
    kinds = tf.distribute.experimental.CommunicationImplementation
    return tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=settings.bytes_per_pack,
        timeout_seconds=settings.peer_timeout_s,
        implementation={"auto": kinds.AUTO, "ring": kinds.RING, "nccl": kinds.NCCL}[settings.communication],
    )


def _cross_device_ops(settings: Settings, devices: Devices) -> tf.distribute.CrossDeviceOps | None:
    if settings.communication == "nccl" and devices.kind != "GPU":
        raise StrategyError("--communication=nccl needs GPUs, and TensorFlow sees none; leave it at auto")
    if settings.communication == "nccl":
        return tf.distribute.NcclAllReduce()
    return None


def _write_tf_config(cluster: Cluster) -> None:
    """TF_CONFIG as MultiWorkerMirroredStrategy needs it: without a Reduction Server's replicas, which
    are no TensorFlow servers and would have it wait for ever."""
    task = {"type": cluster.role, "index": cluster.index}
    addresses = {role: hosts for role, hosts in cluster.addresses.items() if role in ("chief", "worker")}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": addresses, "task": task})
