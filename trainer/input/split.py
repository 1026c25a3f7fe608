"""One split of the data: its records, their decoding, and where they fit, the decoded examples themselves."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow as tf

from trainer import said
from trainer.guard import own
from trainer.input import shapes, sources, tolerate
from trainer.input.sources import DataError
from trainer.input.tolerate import BadRecords

CACHE_BYTES = 256 << 20
AUTOTUNE = tf.data.AUTOTUNE


class Split:
    """One split of the data: its records, its parser, and, where they fit, its decoded examples."""

    def __init__(self, name: str, source: sources.Source, data: ModuleType, training: bool, bad: BadRecords):
        self.name, self.source, self.bad = name, source, bad
        self.record_spec = sources.dataset(source).element_spec
        self.parse = _traced_parse(data, self.record_spec, training)
        self.element_spec = _element_spec(self.parse.structured_outputs)
        self.random_ops = _random_ops(self.parse)
        self._count: int | None = None
        self._fits: bool | None = None
        self._examples: Any = None

    @property
    def count(self) -> int:
        """Records in the split; read once."""
        if self._count is None:
            self._count, self.source = sources.count(self.source, self.bad.note if self.bad.allowed else None)
        return self._count

    @property
    def fits(self) -> bool:
        """Whether the decoded examples fit the memory set aside, and are the same each time."""
        if self._fits is None:
            self._fits = self._few_enough()
        return self._fits

    def _few_enough(self) -> bool:
        leaves = tf.nest.flatten(self.element_spec)
        if self.random_ops or not all(leaf.shape.is_fully_defined() for leaf in leaves):
            return False
        most = CACHE_BYTES // max(1, sum(leaf.shape.num_elements() * max(1, leaf.dtype.size) for leaf in leaves))
        if self._count is None and sources.are_more(self.source, most):
            return False  # and not counted: that may take hours, and who sets --steps_per_epoch need not wait
        return self.count <= most

    @property
    def examples(self) -> Any:
        """All decoded examples in the order of the records; tensors of [count, ...]."""
        if self._examples is None:
            decoded = sources.dataset(self.source).map(self.parse, AUTOTUNE).batch(self.count)
            try:
                self._examples = decoded.get_single_element()
            except tf.errors.OpError as error:
                if not self.bad.allowed:
                    raise DataError(f"{self.locate()}; --skip_bad_records=N steps over up to N") from error
                self._examples = tolerate.decode_all(self.source, self.parse_record, self.bad)
                self._count = int(tf.nest.flatten(self._examples)[0].shape[0])
        return self._examples

    def parse_record(self, record: Any) -> Any:
        """One example of one record: a tensor, or a tuple of them."""
        return self.parse(*(record if isinstance(record, tuple) else (record,)))

    def trouble(self, record: Any) -> str:
        """Why a record can't be decoded; "" where it can."""
        try:
            self.parse_record(record)
        except tf.errors.OpError as error:
            return said.first_line(error)
        return ""

    def locate(self) -> str:
        """The first record that can't be decoded, and why, or "". Raises DataError for one that can't even be read."""
        sources.count(self.source)
        try:
            for name, record in tolerate.named_records(self.source):
                if told := self.trouble(record):
                    return f"{name}: {told}"
        except tf.errors.OpError as error:
            raise DataError(f"the {self.name} records of data.py break off: {said.first_line(error)}") from error
        return ""


def _traced_parse(data: ModuleType, spec: Any, training: bool) -> Callable:
    given = spec if isinstance(spec, tuple) else (spec,)
    try:
        inspect.signature(data.parse).bind(*given, training)
    except TypeError as error:
        raise DataError(
            f"data.parse{inspect.signature(data.parse)} came; it is called with {len(given) + 1} arguments, "
            f"{'the record' if len(given) == 1 else f'the {len(given)} parts of a record'} and training: {error}"
        ) from error
    try:
        return tf.function(lambda *record: data.parse(*record, training)).get_concrete_function(*given)
    except Exception as error:  # whatever it is, the function is the fork's
        raise DataError(f"data.parse can't be traced on a record of {spec}: {own.told(error)}") from error


def _element_spec(outputs: Any) -> Any:
    """The tf.TensorSpec of what parse gives. Raises DataError where that is no example."""
    parts = outputs if isinstance(outputs, tuple | list) else (outputs,)
    wanted = "(features, label) or (features, label, weight) in dense tensors is expected"
    if not 1 <= len(parts) <= 3 or any(part is None for part in parts):
        came = "None" if outputs is None else f"{len(parts)} things ({', '.join(map(shapes.words, parts))})"
        raise DataError(f"data.parse gives {came}; {wanted}")
    for leaf in tf.nest.flatten(outputs):
        if not isinstance(leaf, tf.Tensor):
            raise DataError(f"data.parse gives a {type(leaf).__name__}; {wanted}")
    return tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape, t.dtype), outputs)


def _random_ops(parse: Any) -> list[str]:
    """Operations whose result is not a function of their input; they would differ after a restart."""
    stateful = ("RandomUniform", "RandomStandardNormal", "RandomUniformInt", "TruncatedNormal", "SampleDistorted")
    return sorted({op.type for op in parse.graph.get_operations() if op.type.startswith(stateful)})
