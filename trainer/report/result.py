"""result.json: what a job reached, for scripts and for the next person."""

import json
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf


def write_json(path: str, value: Mapping[str, Any]) -> None:
    """A JSON file, whole or not at all; local or gs://."""
    folder = os.path.dirname(path)
    if folder:
        tf.io.gfile.makedirs(folder)
    partial = f"{path}.partial"
    with tf.io.gfile.GFile(partial, "w") as file:
        file.write(json.dumps(value, indent=1, sort_keys=True) + "\n")
    tf.io.gfile.rename(partial, path, overwrite=True)
