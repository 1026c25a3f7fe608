"""Wisconsin breast cancer as CSV lines: two inputs by name, one binary label."""

import tensorflow as tf

from trainer.input.sources import Source, lines

DATA_DIR = "tabular"
COLUMNS = 30


def records(split: str, data_dir: str) -> Source | None:
    """The lines of SPLIT.csv; there is no test split here."""
    return None if split == "test" else lines(f"{data_dir}/{split}.csv")


def parse(record: tf.Tensor, training: bool) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
    """One line: 30 numbers and the label."""
    *numbers, label = tf.io.decode_csv(record, [[0.0]] * COLUMNS + [[0]])
    return {"mean": tf.stack(numbers[:10]), "rest": tf.stack(numbers[10:])}, tf.cast(label, tf.float32)[None]
