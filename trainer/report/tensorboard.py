"""TensorBoard: curves, histograms, the graph, example images, a confusion matrix, a profile."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.saving import curves

SHOWN_EXAMPLES = 2000  # how many validation examples the confusion matrix counts
CELL = 16  # pixels of a cell of the confusion matrix


class TensorBoard:
    """Writes below `directory` (local or gs://); with "" writes nothing, for replicas that aren't chief."""

    def __init__(self, directory: str):
        self.directory = directory
        self._writers: dict[str, Any] = {}
        self._graph_written = False
        self.last_steps: dict[str, int] = {}  # of every curve: what a checkpoint may rely on after `flush`

    def _writer(self, kind: str, step: int) -> Any:
        if not self.directory:
            return tf.summary.create_noop_writer()
        self.last_steps[kind] = max(step, self.last_steps.get(kind, 0))
        if kind not in self._writers:
            self._writers[kind] = tf.summary.create_file_writer(f"{self.directory}/{kind}")
        return self._writers[kind]

    def scalars(self, kind: str, step: int, values: Mapping[str, float]) -> None:
        """Points of curves; `kind` names them, train or validation."""
        with self._writer(kind, step).as_default(step):
            for name, value in values.items():
                tf.summary.scalar(name, value)

    def histograms(self, step: int, values: Mapping[str, Any]) -> None:
        """Weights or gradients by name."""
        with self._writer("train", step).as_default(step):
            for name, value in values.items():
                tf.summary.histogram(name, value)

    def graph(self, function: Any) -> None:
        """The graph of a concrete function, once."""
        if self._graph_written or not self.directory:
            return
        self._graph_written = True
        with self._writer("train", 0).as_default(0):
            tf.summary.graph(function.graph.as_graph_def())

    def images(self, step: int, features: Any) -> None:
        """The first images of a batch, [batch, height, width, 1 | 3 | 4]; other features are passed over."""
        for index, leaf in enumerate(tf.nest.flatten(features)):
            if leaf.shape.rank == 4 and leaf.shape[-1] in (1, 3, 4):
                pictures = tf.cast(leaf[:8], tf.float32)
                low, high = tf.reduce_min(pictures), tf.reduce_max(pictures)
                with self._writer("train", step).as_default(step):
                    scaled = (pictures - low) / tf.maximum(high - low, 1e-6)
                    tf.summary.image(f"examples/{index}", scaled, max_outputs=8)

    def confusion(self, step: int, matrix: np.ndarray, names: Sequence[str]) -> None:
        """A confusion matrix [classes, classes], rows true: a picture, and a table where it is small."""
        share = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
        picture = np.kron(1 - share, np.ones((CELL, CELL)))[None, :, :, None].astype(np.float32)
        with self._writer("validation", step).as_default(step):
            tf.summary.image("confusion (row: true, column: predicted, dark: often)", picture)
            if len(names) <= 30:
                tf.summary.text("confusion", _table(matrix, names))

    def flush(self) -> None:
        """Have all that was said written; a thread may call it."""
        for writer in list(self._writers.values()):
            writer.flush()

    def take_back(self, last_steps: Mapping[str, int]) -> None:
        """Drop the points after `last_steps` of each curve: training goes on from there. See curves.py."""
        self.close()
        self._writers, self.last_steps = {}, dict(last_steps)
        if self.directory:
            curves.take_back(self.directory, last_steps)

    def close(self) -> None:
        """Write what is buffered."""
        for writer in self._writers.values():
            writer.close()


def _table(matrix: np.ndarray, names: Sequence[str]) -> str:
    head = "| true \\ predicted | " + " | ".join(names) + " |"
    rows = [
        f"| **{name}** | " + " | ".join(str(int(n)) for n in row) + " |"
        for name, row in zip(names, matrix, strict=True)
    ]
    return "\n".join([head, "|" + " --- |" * (len(names) + 1), *rows])


def confusion_matrix(model: Any, batches: tf.data.Dataset) -> np.ndarray | None:
    """[classes, classes] counts of the first examples; None for a model that is no classifier.

    A classifier here has one output of [batch, classes] and whole-numbered labels of [batch] or [batch, 1].
    """
    matrix, seen = None, 0
    for batch in batches:
        if not isinstance(batch, tuple) or len(batch) < 2 or seen >= SHOWN_EXAMPLES:
            break
        labels = batch[1]
        if not tf.is_tensor(labels) or not labels.dtype.is_integer or int(tf.size(labels)) != labels.shape[0]:
            return None
        scores = model(batch[0], training=False)
        if not tf.is_tensor(scores) or scores.shape.rank != 2 or not 2 <= scores.shape[1] <= 200:
            return None
        classes = scores.shape[1]
        seen += labels.shape[0]
        counts = tf.math.confusion_matrix(tf.reshape(labels, [-1]), tf.argmax(scores, 1), classes).numpy()
        matrix = counts if matrix is None else matrix + counts
    return matrix
