"""One split of the data: its records, their decoding, and where they fit, the decoded examples themselves."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow as tf

from trainer import said
from trainer.input import sources, tolerate
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
        self.element_spec = tf.nest.map_structure(
            lambda t: tf.TensorSpec(t.shape, t.dtype), self.parse.structured_outputs
        )
        self.random_ops = _random_ops(self.parse)
        self._count: int | None = None
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
        sizes = [spec.shape.num_elements() for spec in tf.nest.flatten(self.element_spec)]
        if self.random_ops or None in sizes:
            return False
        size = sum(n * max(1, s.dtype.size) for n, s in zip(sizes, tf.nest.flatten(self.element_spec), strict=True))
        return size * self.count <= CACHE_BYTES

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
        for name, record in tolerate.named_records(self.source):
            if told := self.trouble(record):
                return f"{name}: {told}"
        return ""


def _traced_parse(data: ModuleType, spec: Any, training: bool) -> Callable:
    try:
        return tf.function(lambda *record: data.parse(*record, training)).get_concrete_function(
            *(spec if isinstance(spec, tuple) else (spec,))
        )
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise DataError(f"data.parse can't be traced on a record of {spec}: {said.first_line(error)}") from error


def _random_ops(parse: Any) -> list[str]:
    """Operations whose result is not a function of their input; they would differ after a restart."""
    stateful = ("RandomUniform", "RandomStandardNormal", "RandomUniformInt", "TruncatedNormal", "SampleDistorted")
    return sorted({op.type for op in parse.graph.get_operations() if op.type.startswith(stateful)})
