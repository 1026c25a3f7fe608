"""How much memory one replica will need: `python -m trainer.estimate --flag=value ...` prints it as JSON.

The training step is traced, never run: the graph of `model.train_step` for a static batch says which tensors
exist when, so the peak is found by walking it in order; two traces hold for every batch. No record is read and
no weight is trained; it needs a CPU and the seconds that TensorFlow takes to start.
"""

import contextlib
import dataclasses
import json
import os
import sys
import tempfile
from typing import Any, NamedTuple

BATCHES = (32, 96)

HANDLES = ("resource", "variant", "string")
# Their output is their input's memory under another name.
ALIASES = {
    "ExpandDims",
    "Identity",
    "IdentityN",
    "PreventGradient",
    "ReadVariableOp",
    "Reshape",
    "Squeeze",
    "StopGradient",
}
# They may write over an input that nobody needs afterwards, as TensorFlow's kernels do.
IN_PLACE = {
    "AddN",
    "AddV2",
    "BiasAdd",
    "Elu",
    "Exp",
    "Mul",
    "Neg",
    "Relu",
    "Relu6",
    "ReluGrad",
    "Rsqrt",
    "Selu",
    "Sigmoid",
    "SigmoidGrad",
    "Softmax",
    "Sqrt",
    "Sub",
    "Tanh",
    "TanhGrad",
}


class Graph(NamedTuple):
    """What is needed of a traced step to say what is alive when, for any batch."""

    uses: list[tuple[bool, list[str], list[str]]]  # (writes in place, storages it reads, storages it makes)
    size: dict[str, int]  # storage -> bytes
    unsized: int  # tensors without a known size


def graph(operations: list) -> Graph:
    """The storages that a graph's operations make and read, in the order in which they were made.

    Variables and the batch itself are not counted: whoever holds them counts them.
    """
    storage: dict[str, str] = {}  # tensor -> the tensor whose memory it is
    uses, size, unsized = [], {}, 0
    for operation in operations:
        reads = [storage.get(tensor.name, tensor.name) for tensor in operation.inputs]
        makes = []
        for index, tensor in enumerate(operation.outputs):
            if operation.type in ALIASES and reads:
                storage[tensor.name] = reads[min(index, len(reads) - 1)]
                continue
            storage[tensor.name] = tensor.name
            makes.append(tensor.name)
            size[tensor.name] = bytes_of(tensor) if operation.type not in ("Placeholder", "Const") else 0
            unsized += tensor.shape.num_elements() is None and tensor.dtype.name not in HANDLES
        uses.append((operation.type in IN_PLACE, reads, makes))
    return Graph(uses, size, unsized)


def peak(uses: list[tuple[bool, list[str], list[str]]], size: dict[str, float]) -> float:
    """The most bytes that are alive at one time."""
    last = {name: position for position, (_, reads, makes) in enumerate(uses) for name in (*makes, *reads)}
    now = worst = 0.0
    for position, (in_place, reads, makes) in enumerate(uses):
        new = sum(size.get(name, 0) for name in makes)
        freed = sum(size.get(name, 0) for name in {*reads, *makes} if last[name] == position)
        # an operation needs its inputs and its outputs together, except where it writes over an input
        worst = max(worst, now + (max(0, new - freed) if in_place else new))
        now += new - freed
    return worst


def peaks(small: Graph, large: Graph) -> dict[int, float]:
    """Examples -> peak bytes, from the graphs of BATCHES: each tensor's size is a line in the batch."""
    low, high = BATCHES
    slope = {name: (large.size.get(name, bytes_) - bytes_) / (high - low) for name, bytes_ in small.size.items()}
    sizes = [2**power for power in range(18)]
    return {n: peak(small.uses, {k: v + slope[k] * (n - low) for k, v in small.size.items()}) for n in sizes}


def bytes_of(tensor: Any) -> int:
    """Bytes of a tensor or a variable of known shape, 0 for handles and for what has no known shape."""
    elements = tensor.shape.num_elements()
    return 0 if elements is None or tensor.dtype.name in HANDLES else elements * tensor.dtype.size


def element_spec(data_dir: str) -> Any:
    """(features, label) or (features, label, weight) of one example, from data.py, without reading a record."""
    from trainer import data
    from trainer.input import sources

    with tempfile.TemporaryDirectory() as empty:
        try:
            source = data.records("train", empty)
        except Exception:
            # some data.py's look into their files at once; those of a bucket are not waited for
            if data_dir.startswith("gs://"):
                raise
            source = data.records("train", data_dir)
    if isinstance(source, sources.Files):
        source = dataclasses.replace(source, paths=("none",))
    records = sources.dataset(source)
    return records.map(lambda *record: data.parse(*record, True)).element_spec


def batched(spec: Any, size: int) -> Any:
    """The spec of a batch of `size` examples."""
    import tensorflow as tf

    return tf.nest.map_structure(lambda one: tf.TensorSpec([size, *one.shape], one.dtype), spec)


def estimate(settings: Any, hyperparameters: Any) -> dict[str, Any]:
    """The figures of one replica, in bytes: the whole for each size of its batch, and the gradients alone."""
    import keras
    import tensorflow as tf

    from trainer.model import build_model

    keras.config.set_dtype_policy(settings.precision)
    model = build_model(hyperparameters, keras.optimizers.Adam(settings.learning_rate))
    spec = element_spec(settings.data_dir)
    traced = []
    for size in BATCHES:
        step = tf.function(model.train_step).get_concrete_function(batched(spec, size))
        traced.append(graph(step.graph.get_operations()))
    batch = sum(bytes_of(one) for one in tf.nest.flatten(batched(spec, 1)))
    held = sum(_variable_bytes(v) for v in (*model.variables, *model.optimizer.variables))
    return {
        "parameters": sum(_raw(v).shape.num_elements() for v in model.trainable_variables),
        "gradient_bytes": sum(_variable_bytes(v) for v in model.trainable_variables),
        # variables, the step's own tensors, the batch in use and the one that is fetched ahead
        "bytes_by_batch": {n: round(held + most + 2 * batch * n) for n, most in peaks(*traced).items()},
        "unsized_tensors": traced[0].unsized,
    }


def _raw(variable: Any) -> Any:
    return getattr(variable, "value", variable)


def _variable_bytes(variable: Any) -> int:
    return bytes_of(_raw(variable))


def main(arguments: list[str]) -> int:
    """Print the estimate; exit code 2 with a sentence where flags, model.py or data.py don't allow one."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("NO_GCE_CHECK", "true")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    from trainer.flags import FlagError, parse

    try:
        settings, hyperparameters = parse(arguments)
    except FlagError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        # what model.py prints must not come between us and the JSON
        with contextlib.redirect_stdout(sys.stderr):
            found = estimate(settings, hyperparameters)
    except Exception as error:
        # model.py and data.py are the user's: whatever they raise is told, in one line
        said = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        told = said[-1] if said[0].endswith("in user code:") else said[0]  # TensorFlow puts the stack before it
        print(f"the step can't be traced: {type(error).__name__}: {told}", file=sys.stderr)
        return 2
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
