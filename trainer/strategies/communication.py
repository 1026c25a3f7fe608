"""How the replicas of a synchronous strategy sum their gradients: --communication, --bytes_per_pack."""

import tensorflow as tf

from trainer.replicas.cluster import stand_in
from trainer.settings import Settings
from trainer.strategies.devices import Devices, StrategyError


def communication_options(settings: Settings, devices: Devices) -> tf.distribute.experimental.CommunicationOptions:
    """How replicas of a synchronous strategy sum their gradients."""
    communication = settings.communication
    if communication == "nccl":
        communication = _nccl(devices)
    kinds = tf.distribute.experimental.CommunicationImplementation
    return tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=settings.bytes_per_pack,  # no timeout_seconds: watchdog.py says why
        implementation={"auto": kinds.AUTO, "ring": kinds.RING, "nccl": kinds.NCCL}[communication],
    )


def _nccl(devices: Devices) -> str:
    """nccl where there are GPUs; auto where the CPU stands in for them, which the log's first lines say."""
    if stand_in()[0]:
        return "auto"
    if devices.kind != "GPU":
        raise StrategyError("--communication=nccl needs GPUs, and TensorFlow sees none; leave it at auto")
    return "nccl"


def cross_device_ops(settings: Settings, devices: Devices) -> tf.distribute.CrossDeviceOps | None:
    """How the replicas of one process sum theirs; None: as TensorFlow sees fit."""
    if settings.communication == "ring":
        raise StrategyError("--communication=ring goes from worker to worker, and this job has one; leave it at auto")
    if settings.communication == "nccl" and _nccl(devices) == "nccl":
        return tf.distribute.NcclAllReduce()
    return None
