"""The input around data.py: order, sharding, batching, repeating; all from the seed and the step.

Example number n of the job is record n % N of epoch n // N; step s takes the examples
[s * batch, (s + 1) * batch). So a job that stops and goes on, and one with other workers, sees the same.
Data that fits split.CACHE_BYTES once decoded is kept in memory (gathered.py); other data is streamed (streamed.py).
"""

from types import ModuleType
from typing import Any

import tensorflow as tf

from trainer import said
from trainer.input import evaluation, sources
from trainer.input.gathered import Gathered
from trainer.input.share import Share
from trainer.input.sources import DataError
from trainer.input.split import Split
from trainer.input.streamed import Streamed
from trainer.input.tolerate import BadRecords
from trainer.settings import Settings


class Pipeline:
    """The batches of a job. `data` is data.py or a module like it."""

    def __init__(self, data: ModuleType, settings: Settings, share: Share):
        self.settings, self.share, self.data = settings, share, data
        self.batch_size = settings.batch_size
        self.evaluation_batch = settings.batch_size // settings.accumulate  # what fits in one pass
        self.bad = BadRecords(settings.skip_bad_records)
        self.reading = "train"  # the split whose batches are being asked for
        self._splits: dict[str, Split | None] = {}

    def split(self, name: str) -> Split | None:
        """A split by name, opened once; None where data.py has none of that name."""
        if name not in self._splits:
            source = sources.open_source(self.data.records, name, self.settings.data_dir)
            self._splits[name] = source and Split(name, source, self.data, name == "train", self.bad)
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
    def total_steps(self) -> int:
        """Updates of the whole job."""
        return self.steps_per_epoch * self.settings.epochs

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
        batches = self._training_batches().batches(first_step, last_step).prefetch(self._ahead(split))
        return batches.with_options(_options(tuned=not split.fits))

    def _training_batches(self) -> Gathered | Streamed:
        split = self.split("train")
        kind = Gathered if split.fits else Streamed
        return kind(split, self.settings, self.share, getattr(self.data, "augment", None))

    def _ahead(self, split: Split) -> int:
        """How many batches are made ahead of their step: few where they are large."""
        return (8 if split.fits else 2) * self.share.replicas

    def batch_at(self, step: tf.Tensor, examples: Any) -> Any:
        """This worker's part of the batch of one step (int64 scalar), out of all decoded training examples."""
        return Gathered(self.split("train"), self.settings, self.share, getattr(self.data, "augment", None)).batch_at(
            step, examples
        )

    def evaluation(self, name: str) -> tuple[tf.data.Dataset, int]:
        """(batches, steps) of a split: every example once. A batch for each replica of this worker in turn.

        The last step's batches share what is left; some may be empty.
        """
        self.reading = name
        split = self.split(name)
        batches, steps = evaluation.batches(split, self.evaluation_batch, self.share)
        return batches.prefetch(self._ahead(split)).with_options(_options()), steps

    def plain(self, name: str) -> tf.data.Dataset:
        """Batches of a split in its order, for one process to look at."""
        return evaluation.batches(self.split(name), self.evaluation_batch, Share())[0].with_options(_options())

    def sample(self) -> Any:
        """A replica's batch of the first training examples, for a model to be tried on."""
        return evaluation.first(self.split("train"), max(1, self.evaluation_batch // self.share.all_replicas))

    def locate(self, step: int) -> str:
        """The file and the record of the split at hand that can't be read or decoded, and why; "" where all can.

        `step` is the one whose batch failed, where it was a training batch. Raises DataError likewise.
        """
        training = self._training_batches() if self.reading == "train" else None
        try:
            found = training.locate(step) if isinstance(training, Streamed) else self.split(self.reading).locate()
        except tf.errors.OpError as error:
            raise DataError(f"the {self.reading} records of data.py break off: {said.first_line(error)}") from error
        return found and f"{found}; --skip_bad_records=N steps over up to N"


def _options(tuned: bool = False) -> tf.data.Options:
    """Every dataset's. `tuned`: with TensorFlow's tuner, which is worth a tenth of the speed where much is decoded.

    Its thread sleeps for up to a minute and can miss that its dataset has ended (Model::OptimizeLoop is woken before
    the cancellation shows), which held whole jobs up: the loop keeps the iterators of tuned datasets. Without it
    AUTOTUNE means one call a core.
    """
    options = tf.data.Options()
    options.autotune.enabled = tuned
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options
