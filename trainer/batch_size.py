"""make batch-size: the largest batch that fits one device of this machine."""

import math
import os
import sys
from typing import Any

from trainer import flags


def main(arguments: list[str]) -> int:
    """Print the largest batch that fits one device of this machine. Flags are those of trainer.task."""
    try:
        settings, hyperparameters = flags.parse(arguments)
    except flags.FlagError as error:
        print(error, file=sys.stderr)
        return 2
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    return search(settings, hyperparameters)


def search(settings: Any, hyperparameters: Any) -> int:
    """Try batches of zeros, larger and larger, on the first device."""
    import keras
    import tensorflow as tf

    from trainer import build, data
    from trainer.guard.memory import gradient_fits, largest
    from trainer.input.pipeline import Pipeline
    from trainer.input.share import Share
    from trainer.replicas import cluster
    from trainer.strategies.devices import set_up_devices

    tf.get_logger().setLevel("ERROR")  # every batch is traced anew, which TensorFlow would warn of
    settings = settings.model_copy(update={"steps_per_epoch": settings.steps_per_epoch or 1})
    devices = set_up_devices(settings, cluster.Cluster())
    keras.mixed_precision.set_global_policy(settings.precision)
    spec = Pipeline(data, settings.model_copy(update={"accumulate": 1}), Share()).element_spec
    with tf.device(devices.names[0]):
        model = build.build(settings, hyperparameters, 1)
        model.optimizer.build(model.trainable_variables)
        limit = 1 << 20 if devices.kind == "GPU" else _host_limit(model, spec)
        fits = largest(lambda rows: gradient_fits(model, spec, rows), limit)
    if not fits:
        print("not even 1 example fits the memory of this machine", file=sys.stderr)
        return 1
    power = 1 << (fits.bit_length() - 1)
    reached = " (the search ends there)" if fits == limit else ""
    print(f"{fits} examples fit one {devices.kind}{reached}; a batch of {power} per replica leaves some room:")
    print(f"  --batch_size={power * len(devices.names)} on {len(devices.names)} device(s)")
    return 0


def _host_limit(model: Any, spec: Any) -> int:
    """Rows whose activations take a quarter of the host's memory: a CPU has no limit of its own to run into."""
    import tensorflow as tf

    outputs = [t for layer in model._flatten_layers() for t in tf.nest.flatten(getattr(layer, "output", None))]
    per_row = sum(4 * math.prod(n or 1 for n in t.shape) for t in outputs if t is not None) or 4 * 1024
    per_row += sum(math.prod(leaf.shape[1:]) * leaf.dtype.size for leaf in tf.nest.flatten(spec))
    return max(1, min(1 << 16, int(_host_memory() / 4 / (4 * per_row))))


def _host_memory() -> int:
    """Bytes: the machine's, or what a container may take of it (cgroup v2's memory.max)."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            return min(whole, int(file.read()))
    except (OSError, ValueError):  # no such file, or "max"
        return whole


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
