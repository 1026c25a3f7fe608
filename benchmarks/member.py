"""One process of a comparison between strategies, on one core and one thread.

`python -m benchmarks.member KIND SUBJECT` builds its contender, makes some steps, says `ready`; then makes as many
steps as each line of its input says, and answers with the seconds they took. TF_CONFIG names its peers, if any.
"""

import json
import os
import sys
import time
from collections.abc import Callable

import keras
import tensorflow as tf

from benchmarks.models import BATCH, build_of, data_of
from trainer.flags import parse
from trainer.input.pipeline import Pipeline
from trainer.input.share import Share
from trainer.loop import Loop
from trainer.optimizer.whole_batch import WholeBatchOptimizer

WARM_UP, FOREVER = 2, 10**7


def _place() -> tuple[int, int]:
    """(workers, this one's index)."""
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    return len(config.get("cluster", {}).get("worker", [0])), config.get("task", {}).get("index", 0)


def _pipeline(subject: str) -> Pipeline:
    workers, index = _place()
    settings, _ = parse([f"--batch_size={BATCH[subject] * workers}"])
    return Pipeline(data_of(subject), settings, Share(workers, index))


def ours(kind: str, subject: str) -> Callable[[int], object]:
    """The trainer's loop under the strategy of that name."""
    strategy = {
        "one_device": lambda: tf.distribute.OneDeviceStrategy("/cpu:0"),
        "mirrored": lambda: tf.distribute.MirroredStrategy(["/cpu:0"]),
        "multi_worker": tf.distribute.MultiWorkerMirroredStrategy,
    }[kind]()
    with strategy.scope():
        model = build_of(subject)(WholeBatchOptimizer(keras.optimizers.Adam(2e-3), clip_norm=1.0))
    loop = Loop(model, strategy, _pipeline(subject))
    iterator = loop.iterator(0, FOREVER)
    return lambda steps: loop.train(iterator, steps)


def tf_keras(kind: str, subject: str) -> Callable[[int], object]:
    """`fit` of Keras 2, the last that trains under MultiWorkerMirroredStrategy, on the same batches."""
    import tf_keras

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    dataset = _pipeline(subject).training(0, FOREVER)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    with strategy.scope():
        model = build_of(subject, tf_keras)(tf_keras.optimizers.Adam(2e-3, global_clipnorm=1.0))
    # each worker's dataset is its own share of the global batch already
    dataset = strategy.distribute_datasets_from_function(lambda _: dataset.with_options(options))
    return lambda steps: model.fit(dataset, steps_per_epoch=steps, epochs=1, verbose=0)


def main(kind: str, subject: str) -> None:
    """Serve the parent until it closes the pipe."""
    _, index = _place()
    os.sched_setaffinity(0, {index % os.cpu_count()})
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    run = (tf_keras if kind == "tf_keras" else ours)(kind, subject)
    run(WARM_UP)
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        run(int(line))
        print("seconds", time.perf_counter() - start, flush=True)
    os._exit(0)  # the parent is done with all of us: no farewell between peers


if __name__ == "__main__":
    main(*sys.argv[1:])
