"""The training loop, the same under every strategy: Keras' own steps, many in one call of the device.

Keras 3's `fit` fails on more than one machine; its train_step and test_step don't. They run here
under strategy.run inside a tf.function, so that the host stays out of the way, and whatever `compile`
or the model's own train_step define keeps working.
"""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import keras
import tensorflow as tf

from trainer.input.pipeline import Pipeline
from trainer.metrics import Extras, Metrics
from trainer.optimizer.replicated import replica_local
from trainer.optimizer.whole_batch import TRACED, WholeBatchOptimizer

# AutoGraph would read and rewrite every function of a step, a second before the first one; Keras' `fit` keeps it away
# from train_step as well.
plainly = tf.autograph.experimental.do_not_convert


class Loop:
    """A model, its optimizer and a strategy, ready to step.

    Args:
        model: compiled under the strategy's scope, with a WholeBatchOptimizer.
        jit: compile forward and backward pass with XLA.
    """

    def __init__(self, model: keras.Model, strategy: tf.distribute.Strategy, pipeline: Pipeline, *, jit: bool = False):
        self.model, self.strategy, self.pipeline, self.jit = model, strategy, pipeline, jit
        self.optimizer: WholeBatchOptimizer = model.optimizer
        self.request = tf.Variable(0.0, trainable=False)  # a plain variable: signal handlers and timers set it
        self._kept: list[Any] = []  # every training iterator
        self.waits: Callable[[str], AbstractContextManager] = contextlib.nullcontext  # around what needs all workers
        self.prepare()
        self._train_call = tf.function(self._train_steps)
        self._test_call = tf.function(self._test_step)
        self._look_call = tf.function(self._train_one)
        self.test_graph: Any = None  # the concrete function of the evaluation step, once it has run
        self._waited = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._waited_from: float | None = None

    def prepare(self) -> None:
        """Create every variable before the first trace: a trace under several replicas can't.

        Compiled metrics and losses create theirs at their first use, so test_step runs once on zeros.
        """
        spec = self.pipeline.element_spec
        zeros = tf.nest.map_structure(lambda leaf: tf.zeros([1, *leaf.shape[1:]], leaf.dtype), spec)
        with self.strategy.scope():
            if not self.model.built:
                self._once(lambda batch: self.model(keras.utils.unpack_x_y_sample_weight(batch)[0]), zeros)
            self.optimizer.build(self.model.trainable_variables)
            self.extras = Extras(self.model)
            self.losses = replica_local(tf.zeros([TRACED, 2]), tf.float32, "losses")  # (total, count) after each step
        self._once(self.model.test_step, zeros)
        self.model.reset_metrics()
        self.metrics = self._metrics()
        means = [m for m in self.model.metrics if m.name == "loss" and isinstance(m, keras.metrics.Mean)]
        self.loss_metric = means[0] if means else None
        self.optimizer.averaged = statistics(self.model) if self.optimizer.replicas > 1 else []
        self.optimizer.request = self.request

    def _metrics(self) -> Metrics:
        return Metrics(self.model, self.strategy, lambda kind: self.waits(kind))

    def _once(self, step: Callable, batch: Any) -> None:
        """One step, eagerly, on a batch for every replica."""
        self.strategy.run(step, args=(batch,))

    @property
    def step(self) -> int:
        """Updates made so far."""
        return int(self.optimizer.iterations.numpy())

    def iterator(self, first_step: int, last_step: int) -> Any:
        """The training batches of steps [first, last), distributed."""
        # kept: its end may wait for a thread of tf.data's own (pipeline.py), and no step should wait for that
        iterator = iter(self._distributed(lambda _: self.pipeline.training(first_step, last_step)))
        self._kept.append(iterator)
        return iterator

    def _distributed(self, make: Callable) -> Any:
        devices = getattr(self.strategy.extended, "worker_devices", ())
        if all("CPU" in device.upper() for device in devices):  # the batches are where they are needed already
            options = tf.distribute.InputOptions(experimental_fetch_to_device=False)
            return self.strategy.distribute_datasets_from_function(make, options)
        return self.strategy.distribute_datasets_from_function(make)

    def train(self, iterator: Any, steps: int) -> int:
        """Make up to `steps` updates; fewer where a replica asked to stop or pause. Returns how many."""
        self.pipeline.reading = "train"
        with self.waits("train"):
            return int(self._train_call(iterator, tf.constant(steps)))

    def _train_steps(self, iterator: Any, steps: tf.Tensor) -> tf.Tensor:
        done, asked = tf.constant(0), tf.constant(False)
        while done < steps and not asked:
            self.strategy.run(self._replica_step, args=(self._next(iterator),))
            asked = self.strategy.experimental_local_results(self.optimizer.agreed)[0] > 0
            done += 1
        return done

    def _next(self, iterator: Any) -> Any:
        """The next batch; how long that took is added up."""
        if self.pipeline.settings.deterministic:  # TensorFlow reads no clock then
            return next(iterator)
        start = tf.timestamp()
        with tf.control_dependencies([start]):
            batch = next(iterator)
        first = self.strategy.experimental_local_results(tf.nest.flatten(batch, expand_composites=False)[0])[0]
        with tf.control_dependencies([first]):
            self._waited.assign_add(tf.timestamp() - start)
        return batch

    def input_wait_s(self) -> float:
        """Seconds that steps have waited for their batches since the last look."""
        total = float(self._waited.numpy())
        since, self._waited_from = total - (self._waited_from or 0.0), total
        return since

    @property
    def model_at_hand(self) -> keras.Model:
        """A model with the weights of the last evaluation, whose variables this process can read at once."""
        return self.model

    def train_and_look(self, iterator: Any) -> dict[str, tf.Tensor]:
        """Make one update; its gradients, summed over all replicas, by the variable's path."""
        self.pipeline.reading = "train"
        with self.waits("look"):
            gradients = self._look_call(iterator)
        names = [variable.path for variable in self.model.trainable_variables]
        return {name: value for name, value in zip(names, gradients, strict=False) if value is not None}

    def _train_one(self, iterator: Any) -> list[tf.Tensor]:
        def step(batch: Any) -> list[tf.Tensor]:
            self._replica_step(batch)
            kept = {id(variable): tf.convert_to_tensor(gradient) for gradient, variable in self.optimizer.kept}
            return [kept.get(id(v), tf.zeros([0])) for v in self.model.trainable_variables]

        results = self.strategy.run(step, args=(next(iterator),))
        return [self.strategy.experimental_local_results(value)[0] for value in results]

    @plainly
    def _replica_step(self, batch: Any) -> None:
        self.optimizer.applied = False
        gradients = self._micro_batches
        if self.jit:
            gradients = tf.function(gradients, jit_compile=True, autograph=False)
        gradients(batch)
        self.optimizer.finish()
        self._note_loss()

    def _note_loss(self) -> None:
        """Keep what the loss metric holds after each of the last steps: a report of a NaN shows them."""
        if self.loss_metric is None:
            return
        held = tf.stack([tf.cast(self.loss_metric.total, tf.float32), tf.cast(self.loss_metric.count, tf.float32)])
        place = tf.cast(self.optimizer.iterations.value - 1, tf.int64) % TRACED
        mine = tf.equal(tf.range(TRACED, dtype=tf.int64), place)[:, None]
        self.losses.assign(tf.where(mine, held[None], self.losses))

    def _micro_batches(self, batch: Any) -> None:
        parts = max(1, self.optimizer.micro_batches)
        if parts == 1:
            self.extras.keep(self.extras.of(self.model.train_step(batch)))
            return
        rows = tf.nest.flatten(batch)[0].shape[0] // parts

        def one(part: tf.Tensor) -> tf.Tensor:
            start = part * rows
            micro = tf.nest.map_structure(
                lambda t: tf.ensure_shape(t[start : start + rows], [rows, *t.shape[1:]]), batch
            )
            self.extras.keep(self.extras.of(self.model.train_step(micro)))
            return part + 1

        tf.while_loop(lambda part: part < parts, one, [0])

    def logs(self) -> dict[str, float]:
        """The metrics since they were reset, over all replicas, and the last step's extras."""
        return self.metrics.results() | self.extras.results()

    def evaluate(self, split: str, stop: Callable[[bool], bool] = lambda last: False) -> dict[str, float] | None:
        """The metrics of a split: every example counted once, whatever batch size and replicas.

        `stop` is called after each step (with whether it was the last); where it says so, the result is None.
        """
        dataset, steps = self.pipeline.evaluation(split)
        iterator = iter(self._distributed(lambda _: dataset))
        self.test_graph = self.test_graph or self._test_call.get_concrete_function(iterator)
        self.metrics.reset()
        for number in range(steps):
            with self.waits(f"test {split}"):
                self._test_call(iterator)
            if stop(number == steps - 1):
                self.metrics.reset()
                return None
        values = self.metrics.results()
        self.metrics.reset()
        return values

    def _test_step(self, iterator: Any) -> None:
        self.strategy.run(self._replica_test, args=(next(iterator),))

    @plainly
    def _replica_test(self, batch: Any) -> None:
        def test() -> int:
            self.model.test_step(batch)
            return 0

        # the last step may leave a replica without an example
        tf.cond(tf.shape(tf.nest.flatten(batch)[0])[0] > 0, test, lambda: 0)


def _layers(layer: Any) -> list[Any]:
    return [layer, *(inner for sub in getattr(layer, "layers", []) for inner in _layers(sub))]


def statistics(model: keras.Model) -> list[tf.Variable]:
    """The variables that steps change besides the optimizer's: BatchNorm's moving statistics and their like.

    Those of frozen layers stay as they are and are left out.
    """
    frozen = {id(w) for layer in _layers(model) if not layer.trainable for w in layer.weights}
    return [
        weight.value
        for weight in model.non_trainable_weights
        if id(weight) not in frozen and weight.dtype.startswith(("float", "bfloat"))
    ]
