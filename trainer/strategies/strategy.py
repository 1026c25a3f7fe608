"""The tf.distribute strategy for what is there, or a sentence that says why not. Never a fall-back."""

import json
import os

import tensorflow as tf

from trainer.input.share import Share
from trainer.replicas.cluster import Cluster, stand_in
from trainer.settings import Settings
from trainer.strategies import tpu
from trainer.strategies.communication import communication_options, cross_device_ops
from trainer.strategies.devices import Devices, StrategyError


def choose(settings: Settings, cluster: Cluster, devices: Devices) -> str:
    """The name of the strategy: the flag's, or for auto what is there. Raises StrategyError where it doesn't fit."""
    asked = settings.strategy
    if cluster.role == "evaluator":  # on its own, whatever strategy trains
        return "mirrored" if len(devices.names) > 1 else "one_device"
    if asked == "auto":
        if stand_in()[0] == "tpu" or cluster.accelerator.startswith("TPU"):
            asked = "tpu"
        elif cluster.addresses.get("ps"):
            asked = "parameter_server"
        elif cluster.workers > 1:
            asked = "multi_worker"
        else:
            asked = "mirrored" if len(devices.names) > 1 else "one_device"
    problem = _misfit(asked, cluster)
    if problem:
        raise StrategyError(f"--strategy={asked} {problem}")
    return asked


def _misfit(asked: str, cluster: Cluster) -> str:
    """What of the cluster doesn't fit a strategy, or an empty string."""
    there = {role: len(hosts) for role, hosts in cluster.addresses.items()}
    if asked == "multi_worker" and not cluster.addresses:
        return "needs a cluster, and TF_CONFIG is not set: this is a job of 1 replica"
    if asked == "parameter_server" and not there.get("ps"):
        return f"needs parameter servers (worker pool 2); there is {there or 'no cluster'}"
    if asked == "parameter_server" and not (there.get("worker") and there.get("chief")):
        return f"needs a chief (worker pool 0) and workers (worker pool 1); there is {there}"
    if asked != "parameter_server" and there.get("ps"):
        return (
            f"has no parameter servers, and the cluster has {there['ps']}: use --strategy=parameter_server, or drop "
            "worker pool 2"
        )
    if asked not in ("parameter_server", "multi_worker") and cluster.workers > 1:
        return f"trains in one process, and the cluster has {cluster.workers} workers: use --strategy=multi_worker"
    return ""


def needs_server(settings: Settings, cluster: Cluster) -> bool:
    """Whether this replica serves an asynchronous job's chief, as a worker or a parameter server."""
    asynchronous = settings.strategy in ("auto", "parameter_server") and bool(cluster.addresses.get("ps"))
    return asynchronous and cluster.role in ("worker", "ps")


def is_stand_in() -> bool:
    """Whether this process's CPU stands in for accelerators."""
    return bool(stand_in()[0])


def stand_in_note(settings: Settings, cluster: Cluster, devices: Devices) -> str:
    """What a person should know of a job on devices that stand in for accelerators."""
    note = "logical devices of the CPU stand in for accelerators: the same arithmetic, not the same speed"
    if len(devices.names) > 1 and choose(settings, cluster, devices) == "multi_worker":
        # CollectiveAllReduceExtended takes every GPU of a worker, and without one CPU:0 alone
        note += f"; MultiWorkerMirroredStrategy takes one CPU device of each worker: 1 of {len(devices.names)}"
    return note


def adapted(settings: Settings, cluster: Cluster, devices: Devices) -> Settings:
    """The flags that the chosen strategy changes: a TPU compiles the whole step, a bounded number of them at a time."""
    if choose(settings, cluster, devices) != "tpu":
        return settings
    changed = {"steps_per_call": settings.steps_per_call or tpu.STEPS_PER_CALL}
    return settings.model_copy(update=changed | ({"jit": True} if stand_in()[0] == "tpu" else {}))


def make_strategy(settings: Settings, cluster: Cluster, devices: Devices) -> tf.distribute.Strategy:
    """The strategy that `choose` names, made. Raises StrategyError."""
    name = choose(settings, cluster, devices)
    if name == "multi_worker":
        _write_tf_config(cluster)
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication_options(settings, devices))
    if name == "parameter_server":
        return _parameter_server(settings, cluster)
    if name == "tpu" and not stand_in()[0]:
        try:
            return tpu.make_strategy()
        except tpu.TPUError as error:
            raise StrategyError(str(error)) from None
    if name == "one_device":
        return tf.distribute.OneDeviceStrategy(devices.names[0])
    if name == "central_storage":
        return tf.distribute.experimental.CentralStorageStrategy(list(devices.names), "/cpu:0")
    # mirrored, and the CPU's logical devices that stand in for a TPU's
    return tf.distribute.MirroredStrategy(list(devices.names), cross_device_ops=cross_device_ops(settings, devices))


def _parameter_server(settings: Settings, cluster: Cluster) -> tf.distribute.Strategy:
    """The chief's strategy; workers and parameter servers run server.py."""
    from trainer.replicas import lookout

    addresses = {role: hosts for role, hosts in cluster.addresses.items() if role in ("chief", "worker", "ps")}
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(addresses), task_type="chief", task_id=0, rpc_layer="grpc"
    )
    lookout.wait_for([address for role in ("ps", "worker") for address in addresses[role]])
    partitioner = None
    if settings.min_shard_bytes:
        partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(
            settings.min_shard_bytes, len(addresses["ps"])
        )
    strategy = tf.distribute.experimental.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    lookout.stand_at(addresses["chief"][0])
    if strategy.num_replicas_in_sync > 1:
        raise StrategyError(
            f"--strategy=parameter_server trains on one GPU of each worker, and they have "
            f"{strategy.num_replicas_in_sync}: use more workers with one GPU each"
        )
    return strategy


def share(cluster: Cluster, strategy: tf.distribute.Strategy) -> Share:
    """This process's part of each batch. An asynchronous worker makes a whole batch of each step."""
    if isinstance(strategy, tf.distribute.experimental.ParameterServerStrategy):
        return Share()
    if cluster.role == "evaluator":
        return Share(replicas=strategy.num_replicas_in_sync)
    return Share(cluster.workers, cluster.worker_index, strategy.num_replicas_in_sync // cluster.workers)


def _write_tf_config(cluster: Cluster) -> None:
    """TF_CONFIG as MultiWorkerMirroredStrategy needs it: without a Reduction Server's replicas, which
    are no TensorFlow servers and would have it wait for ever."""
    task = {"type": cluster.role, "index": cluster.index}
    addresses = {role: hosts for role, hosts in cluster.addresses.items() if role in ("chief", "worker")}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": addresses, "task": task})
