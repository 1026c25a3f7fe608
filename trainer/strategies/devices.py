"""The devices of this replica: threads, memory, and whether the accelerators that the job asked for are there."""

import dataclasses

import tensorflow as tf

from trainer.replicas.cluster import Cluster, stand_in
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
