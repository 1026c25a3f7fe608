"""The input around data.py: order, sharding, batching, repeating; all from the seed and the step.

Example number n of the job is record n % N of epoch n // N; step s takes the examples
[s * batch, (s + 1) * batch). So a job that stops and goes on, and one with other workers, sees the same.
Data that fits CACHE_BYTES once decoded is kept in memory and gathered by index; other data is streamed.
"""

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow as tf

from trainer import sources
from trainer.settings import Settings
from trainer.sources import DataError

CACHE_BYTES = 256 << 20
AUTOTUNE = tf.data.AUTOTUNE


@dataclasses.dataclass(frozen=True)
class Share:
    """Which part of each global batch is this worker's."""

    workers: int = 1
    index: int = 0
    replicas: int = 1  # of this worker

    @property
    def all_replicas(self) -> int:
        """Of all workers."""
        return self.workers * self.replicas


class Split:
    """One split of the data: its records, its parser, and, where they fit, its decoded examples."""

    def __init__(self, name: str, source: sources.Source, data: ModuleType, training: bool):
        self.name, self.source = name, source
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
            self._count = sources.count(self.source)
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
                raise DataError(_locate(self, error)) from None
        return self._examples


def _traced_parse(data: ModuleType, spec: Any, training: bool) -> Callable:
    try:
        return tf.function(lambda *record: data.parse(*record, training)).get_concrete_function(
            *(spec if isinstance(spec, tuple) else (spec,))
        )
    except (TypeError, ValueError, tf.errors.OpError) as error:
        raise DataError(f"data.parse can't be traced on a record of {spec}: {sources.first_line(error)}") from error


def _random_ops(parse: Any) -> list[str]:
    """Operations whose result is not a function of their input; they would differ after a restart."""
    stateful = ("RandomUniform", "RandomStandardNormal", "RandomUniformInt", "TruncatedNormal", "SampleDistorted")
    return sorted({op.type for op in parse.graph.get_operations() if op.type.startswith(stateful)})


def _locate(split: Split, error: Exception) -> str:
    """The file and the record that can't be decoded."""
    files = split.source.paths if isinstance(split.source, sources.Files) else [None]
    for path in files:
        records = split.source.reader(path) if path else split.source
        for index, record in enumerate(records):
            try:
                split.parse(*(record if isinstance(record, tuple) else (record,)))
            except tf.errors.OpError as own:
                return f"{path or split.name}, record {index}: {sources.first_line(own)}"
    return sources.first_line(error)


class Pipeline:
    """The batches of a job. `data` is data.py or a module like it."""

    def __init__(self, data: ModuleType, settings: Settings, share: Share):
        self.settings, self.share, self.data = settings, share, data
        self.batch_size = settings.batch_size
        self._splits: dict[str, Split | None] = {}

    def split(self, name: str) -> Split | None:
        """A split by name, opened once; None where data.py has none of that name."""
        if name not in self._splits:
            source = sources.open_source(self.data.records, name, self.settings.data_dir)
            self._splits[name] = source and Split(name, source, self.data, name == "train")
        return self._splits[name]

    @property
    def steps_per_epoch(self) -> int:
        """Updates in an epoch: the flag's, or the whole batches that the data fills."""
        settings = self.settings
        if settings.steps_per_epoch:
            return settings.steps_per_epoch
        examples = settings.examples_per_epoch or self.split("train").count
        if examples < self.batch_size:
            raise DataError(f"--batch_size={self.batch_size} is more than the {examples} examples of an epoch")
        return examples // self.batch_size

    @property
    def element_spec(self) -> Any:
        """The training batch of one replica: tf.TensorSpec of [batch, ...], static throughout."""
        spec = self.split("train").element_spec
        for leaf in tf.nest.flatten(spec):
            if not leaf.shape.is_fully_defined():
                raise DataError(
                    f"data.parse gives a tensor of shape {leaf.shape}; training needs static shapes: "
                    "resize, pad or tf.ensure_shape it"
                )
        rows = self.batch_size // self.share.all_replicas
        return tf.nest.map_structure(lambda leaf: tf.TensorSpec([rows, *leaf.shape], leaf.dtype), spec)

    def training(self, first_step: int, last_step: int) -> tf.data.Dataset:
        """The batches of steps [first, last), one for each replica of this worker in turn."""
        split = self.split("train")
        make = self._gathered if split.fits else self._streamed
        return make(split, first_step, last_step).prefetch(AUTOTUNE).with_options(_options())

    def _gathered(self, split: Split, first_step: int, last_step: int) -> tf.data.Dataset:
        rows = self.batch_size // self.share.workers
        offset, examples = rows * self.share.index, split.examples

        def batch(step: tf.Tensor) -> Any:
            positions = step * self.batch_size + offset + tf.range(rows, dtype=tf.int64)
            indices = self._record_indices(positions, split.count)
            elements = tf.nest.map_structure(lambda tensor: tf.gather(tensor, indices), examples)
            return self._augmented(positions, elements)

        steps = tf.data.Dataset.range(first_step, last_step).map(batch, AUTOTUNE, deterministic=True)
        return _per_replica(steps, self.share.replicas)

    def _record_indices(self, positions: tf.Tensor, count: int) -> tf.Tensor:
        epochs, within = positions // count, positions % count
        if self.settings.shuffle_buffer <= 1 or count == 1:
            return within
        seeds = tf.stack([tf.fill(tf.shape(epochs), tf.cast(self.settings.seed, tf.int64)), epochs, epochs * 0 + 1], 1)
        last = tf.constant(count - 1, tf.int64)
        # tf.random.experimental.index_shuffle takes one seed for all; a batch may span two epochs
        return tf.raw_ops.RandomIndexShuffle(index=within, seed=seeds, max_index=last, rounds=4)

    def _augmented(self, positions: tf.Tensor, elements: Any) -> Any:
        augment = getattr(self.data, "augment", None)
        if augment is None:
            return elements
        seeds = self._seeds(positions)
        signature = tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape[1:], t.dtype), elements)
        return tf.map_fn(lambda args: augment(*args[0], seed=args[1]), (elements, seeds), fn_output_signature=signature)

    def _seeds(self, positions: tf.Tensor) -> tf.Tensor:
        """A seed (int32 [2]) for every example of the job, whatever step or worker it comes to."""
        low = tf.cast(tf.bitwise.bitwise_and(positions, 0x7FFFFFFF), tf.int32)
        return tf.stack([tf.fill(tf.shape(low), self.settings.seed), low], -1)

    def _streamed(self, split: Split, first_step: int, last_step: int) -> tf.data.Dataset:
        settings, share = self.settings, self.share
        start, count = first_step * self.batch_size, split.count if first_step else 0
        epoch = start // count if count else 0
        records = tf.data.Dataset.range(epoch, 2**31).flat_map(
            lambda e: sources.shuffled(split.source, e, settings.seed, settings.shuffle_buffer)
        )
        records = records.skip(start - epoch * count).enumerate(start)
        records = records.take((last_step - first_step) * self.batch_size)
        if share.workers > 1:
            rows = self.batch_size // share.workers
            offset = rows * share.index
            records = records.filter(lambda position, _: (position % self.batch_size) // rows == offset // rows)
        augment = getattr(self.data, "augment", None)

        def example(position: tf.Tensor, record: Any) -> Any:
            element = split.parse(*(record if isinstance(record, tuple) else (record,)))
            return augment(*element, seed=self._seeds(position)) if augment else element

        examples = records.map(example, AUTOTUNE, deterministic=True)
        return examples.batch(self.batch_size // share.all_replicas, drop_remainder=True)

    def evaluation(self, name: str) -> tuple[tf.data.Dataset, int]:
        """(batches, steps) of a split: every example once. A batch for each replica of this worker in turn.

        The last step's batches share what is left; some may be empty.
        """
        split = self.split(name)
        steps = -(-split.count // self.batch_size)
        make = self._evaluated_slices if split.fits else self._evaluated_stream
        return make(split, steps).prefetch(AUTOTUNE).with_options(_options()), steps

    def plain(self, name: str) -> tf.data.Dataset:
        """Batches of a split in its order, for one process to look at."""
        split = self.split(name)
        parsed = sources.dataset(split.source).map(split.parse, AUTOTUNE)
        return parsed.batch(self.batch_size).with_options(_options())

    def _bounds(self, replica: int, left: int) -> tuple[int, int]:
        """Which of the `left` examples of a step are a replica's (of all workers)."""
        return replica * left // self.share.all_replicas, (replica + 1) * left // self.share.all_replicas

    def _mine(self) -> range:
        return range(self.share.index * self.share.replicas, (self.share.index + 1) * self.share.replicas)

    def _evaluated_slices(self, split: Split, steps: int) -> tf.data.Dataset:
        bounds = []
        for step in range(steps):
            start = step * self.batch_size
            left = min(self.batch_size, split.count - start)
            bounds += [[start + edge for edge in self._bounds(replica, left)] for replica in self._mine()]
        examples = split.examples
        parts = tf.data.Dataset.from_tensor_slices(tf.constant(bounds, tf.int64))
        return parts.map(
            lambda part: tf.nest.map_structure(lambda tensor: tensor[part[0] : part[1]], examples), AUTOTUNE
        )

    def _evaluated_stream(self, split: Split, steps: int) -> tf.data.Dataset:
        whole = split.count // self.batch_size * self.batch_size
        rows = self.batch_size // self.share.all_replicas
        mine = self._mine()
        records = sources.dataset(split.source)

        def parse(record: Any) -> Any:
            return split.parse(*(record if isinstance(record, tuple) else (record,)))

        batches = (
            records.take(whole)
            .enumerate()
            .filter(lambda position, _: mine.start * rows <= position % self.batch_size < mine.stop * rows)
            .map(lambda _, record: parse(record), AUTOTUNE, deterministic=True)
            .batch(rows)
        )
        left = split.count - whole
        for replica in mine if left else ():
            low, high = self._bounds(replica, left)
            part = records.skip(whole + low).take(high - low).map(parse, AUTOTUNE)
            if low == high:
                part = records.take(1).map(parse)
            part = part.batch(max(1, high - low))
            if low == high:
                part = part.map(lambda *element: tf.nest.map_structure(lambda tensor: tensor[:0], element))
            batches = batches.concatenate(part)
        return batches


def _per_replica(batches: tf.data.Dataset, replicas: int) -> tf.data.Dataset:
    """Each batch cut into one for each replica, in turn."""
    if replicas == 1:
        return batches

    def cut(*batch: Any) -> Any:
        return tf.nest.map_structure(
            lambda tensor: tf.reshape(tensor, [replicas, tensor.shape[0] // replicas, *tensor.shape[1:]]), batch
        )

    return batches.map(cut, AUTOTUNE, deterministic=True).unbatch()


def _options() -> tf.data.Options:
    options = tf.data.Options()
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options
