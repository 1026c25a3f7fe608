"""TPUs: which there is and how TensorFlow reaches it, and what a model must be to run there.

TPU VMs: https://cloud.google.com/vertex-ai/docs/training/training-with-tpu-vm. TensorFlow is imported late:
`environment` has to be there before it.
"""

import glob
import importlib.util
import json
import os
import pathlib
import re
from collections.abc import Mapping
from typing import Any

DEVICES = ("/dev/accel*", "/dev/vfio/[0-9]*")
STEPS_PER_CALL = 100  # so that a request to stop is seen in time, where no step on the device looks for it


class TPUError(Exception):
    """No TPU, or a model that can't run on one; str() is one sentence."""


def environment(machine_type: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What must be set before TensorFlow is imported: v5e and later are reached through PJRT, libtpu's C interface."""
    if not machine_type.startswith(("ct5", "ct6", "tpu7")) or environ.get("TRAINYARD_STAND_IN"):
        return {}
    found = importlib.util.find_spec("libtpu")
    folder = pathlib.Path(found.origin).parent if found and found.origin else pathlib.Path("/lib")
    wanted = {
        "NEXT_PLUGGABLE_DEVICE_USE_C_API": "true",
        "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(folder / "libtpu.so"),
    }
    return {name: value for name, value in wanted.items() if name not in environ}


def target(environ: Mapping[str, str] = os.environ, devices: list[str] | None = None) -> dict[str, str]:
    """The arguments of TPUClusterResolver: a TPU node that is named, or the chips of this machine.

    Raises TPUError where there is neither.
    """
    if environ.get("TPU_CONFIG"):
        try:
            config = json.loads(environ["TPU_CONFIG"])
            arguments = {"tpu": config["tpu_node_name"], "project": config.get("project"), "zone": config.get("zone")}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise TPUError(
                f"TPU_CONFIG={environ['TPU_CONFIG']:.120} came; expected JSON with tpu_node_name, project and zone"
            ) from None
        return {name: value for name, value in arguments.items() if value}
    if environ.get("TPU_NAME"):
        arguments = {"tpu": environ["TPU_NAME"], "project": environ.get("TPU_PROJECT"), "zone": environ.get("TPU_ZONE")}
        return {name: value for name, value in arguments.items() if value}
    found = [path for pattern in DEVICES for path in glob.glob(pattern)] if devices is None else devices
    if not found:
        raise TPUError(
            "--strategy=tpu needs a TPU, and there is none: no /dev/accel0 or /dev/vfio/0 here, and neither TPU_NAME "
            "nor TPU_CONFIG is set"
        )
    return {"tpu": "local"}


def make_strategy() -> Any:
    """tf.distribute.TPUStrategy on the TPU that there is. Raises TPUError."""
    import tensorflow as tf

    arguments = target()
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(**arguments)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        first = (getattr(error, "message", None) or str(error)).split("\n")[0]
        raise TPUError(
            f"the TPU {arguments['tpu']} can't be used ({first}): `python -m trainer.doctor --for=tpu` tells more"
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def check_static(model: Any, batch_spec: Any) -> None:
    """Raise TPUError naming the first layer whose result has no static shape.

    Args:
        model: a built keras.Model.
        batch_spec: tf.TensorSpec of the features of one replica's batch, or a structure of them.
    """
    import tensorflow as tf

    graph = tf.function(lambda features: model(features, training=True)).get_concrete_function(batch_spec).graph
    names = {layer.name for layer in model._flatten_layers() if layer is not model}
    for operation in graph.get_operations():
        for output in operation.outputs:
            if output.dtype.is_floating and not output.shape.is_fully_defined():
                # a scope is the layer's name, with a number where TensorFlow has seen the name before
                scopes = [part if part in names else re.sub(r"_\d+$", "", part) for part in operation.name.split("/")]
                layer = next((part for part in reversed(scopes) if part in names), operation.name)
                raise TPUError(
                    f"layer {layer} gives a tensor of shape {output.shape}: a TPU needs static shapes; pad or resize "
                    "in data.parse, and let no size depend on a value"
                )
