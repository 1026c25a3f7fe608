"""What the tests of resuming share: short jobs of the real trainer, and what they left."""

import json
import pathlib
import socket

import numpy as np
import tensorflow as tf

# the check of the exported model in a fresh process takes longer than a short training
NO_EXPORT = "import trainer.export; trainer.export.export = lambda *_: None\n"
SHORT = ["--deterministic", "--epochs=3", "--examples_per_epoch=512", "--batch_size=32", "--log_every_steps=4"]


def final_state(directory: pathlib.Path | str) -> dict[str, np.ndarray]:
    """Every value of a job's last checkpoint."""
    last = max(int(name.split("-")[1][:-6]) for name in tf.io.gfile.listdir(str(directory)) if name.endswith(".index"))
    reader = tf.train.load_checkpoint(f"{directory}/ckpt-{last}")
    names = [name for name in reader.get_variable_to_shape_map() if name.startswith(("state/", "metrics/"))]
    return {name: reader.get_tensor(name) for name in names}


def differences(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> list[str]:
    """The names whose values are not the same to the last bit."""
    names = one.keys() | other.keys()
    return sorted(n for n in names if n not in one or n not in other or one[n].tobytes() != other[n].tobytes())


def curves(directory: pathlib.Path | str) -> list[tuple[str, str, int, bytes]]:
    """(curve, name, step, value) of every point of TensorBoard's curves, in the order of steps; no speeds."""
    points = []
    for path in tf.io.gfile.glob(f"{directory}/*/*.tfevents.*"):
        curve = path.split("/")[-2]
        for record in tf.data.TFRecordDataset(path):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                if (
                    value.metadata.plugin_data.plugin_name == "scalars"
                    or value.tensor.dtype == tf.float32.as_datatype_enum
                ):
                    points.append((curve, value.tag, event.step, value.tensor.SerializeToString()))
    return sorted(point for point in points if point[0] != "speed")


def histograms(directory: pathlib.Path | str) -> dict[tuple[str, int], bytes]:
    """TensorBoard's histograms by name and step."""
    found = {}
    for path in tf.io.gfile.glob(f"{directory}/*/*.tfevents.*"):
        for record in tf.data.TFRecordDataset(path):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "histograms":
                    found[value.tag, event.step] = value.tensor.SerializeToString()
    return found


def result(job: pathlib.Path | str) -> dict:
    """A job's result.json."""
    with tf.io.gfile.GFile(f"{job}/result.json") as file:
        return json.load(file)


def cluster(size: int, devices: int = 1) -> list[dict[str, str]]:
    """The environments of a job of `size` workers on free ports of this machine."""
    sockets = [socket.socket() for _ in range(size)]
    for opened in sockets:
        opened.bind(("127.0.0.1", 0))
    hosts = [f"127.0.0.1:{opened.getsockname()[1]}" for opened in sockets]
    for opened in sockets:
        opened.close()
    roles = {"chief": hosts[:1], "worker": hosts[1:]}
    tasks = [{"type": "chief", "index": 0}, *({"type": "worker", "index": i} for i in range(size - 1))]
    stand_in = {"TRAINYARD_STAND_IN": f"gpu:{devices}"} if devices > 1 else {}
    return [{"TF_CONFIG": json.dumps({"cluster": roles, "task": task})} | stand_in for task in tasks]
