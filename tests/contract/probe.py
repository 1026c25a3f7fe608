"""Looks at trainer/model.py and trainer/data.py in a process of its own, and writes what it found as JSON."""

import base64
import json

import keras
import tensorflow as tf

from trainer import contract, data, export, flags, model, said
from trainer.input import sources, split
from trainer.input.pipeline import Pipeline
from trainer.input.share import Share

BATCH = 8
KEPT, STREAMED = split.CACHE_BYTES, 0


def rows(settings, name: str, share: Share, keep: int) -> int:
    """How many examples an evaluation goes through, with `keep` bytes for decoded ones."""
    split.CACHE_BYTES = keep
    batches, _ = Pipeline(data, settings, share).evaluation(name)
    return sum(int(tf.shape(tf.nest.flatten(batch)[0])[0]) for batch in batches)


def main(path: str) -> None:
    """Check the contract, open the data, count, and say what an example and a record look like."""
    contract.check(data, model)
    settings, hyperparameters = flags.parse([f"--batch_size={BATCH}"])
    found = {"hyperparameters": flags.as_dict(hyperparameters), "unreachable": ""}
    try:
        source = sources.open_source(data.records, "train", settings.data_dir)
        first = next(iter(sources.dataset(source)))
    except (sources.DataError, tf.errors.OpError) as error:
        found["unreachable"] = f"--data_dir={settings.data_dir}: {said.first_line(error)}"
    else:
        pipeline = Pipeline(data, settings, Share())
        opened = pipeline.split("train")
        features = keras.utils.unpack_x_y_sample_weight(opened.element_spec)[0]
        decoder = export.raw_decoder(data, opened.record_spec)
        is_raw = decoder is not None and not hasattr(data, "decode")
        found |= {
            "features": [[leaf.shape.as_list(), leaf.dtype.name] for leaf in tf.nest.flatten(features)],
            "raw_signature": decoder is not None,
            "raw_example": base64.b64encode(first.numpy()).decode() if is_raw else "",
            "random_ops": opened.random_ops,
            "counts": {name: pipeline.split(name).count for name in ("validation", "test") if pipeline.split(name)},
        }
        shares = [Share(), Share(replicas=2), Share(workers=2, replicas=2)]
        found["evaluated"] = {
            name: [[rows(settings, name, share, keep) for share in shares] for keep in (KEPT, STREAMED)]
            for name in found["counts"]
        }
    with open(path, "w") as file:
        json.dump(found, file)
