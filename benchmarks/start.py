"""From the start of the process to its first update, and its peak memory: ours against a plain Keras script.

And what the doctor's look at the start costs, which is part of that.
"""

import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import time

from benchmarks.rows import Row, interleaved, ratio

STEPS = 100


def measure() -> list[Row]:
    """Three rows."""
    ours = {kind: lambda kind=kind: _child(kind) for kind in ("ours", "keras")}
    for run in ours.values():
        run()  # the files are in the page cache
    seen: dict[str, list[tuple[float, float]]] = {"ours": [], "keras": []}

    def figure(kind: str) -> float:
        seconds, megabytes = ours[kind]()
        seen[kind].append((seconds, megabytes))
        return seconds

    times = interleaved({kind: lambda kind=kind: figure(kind) for kind in ours})
    memory = {kind: [megabytes for _, megabytes in values] for kind, values in seen.items()}
    return [
        Row(
            "start to first step / a plain Keras script",
            ratio(times["ours"], times["keras"]),
            1.15,
            False,
            f"{sorted(times['ours'])[2]:.1f} against {sorted(times['keras'])[2]:.1f} s",
        ),
        Row(
            "peak memory / a plain Keras script",
            ratio(memory["ours"], memory["keras"]),
            1.1,
            False,
            f"{sorted(memory['ours'])[2]:.0f} against {sorted(memory['keras'])[2]:.0f} MiB",
        ),
        Row("the doctor's look at the start, in seconds", statistics.median(_doctor_s() for _ in range(5)), 0.2, False),
    ]


def _doctor_s() -> float:
    """Seconds, its import included, in a process that has just begun."""
    timed = "import time; start = time.perf_counter(); from trainer import doctor; doctor.check()"
    command = [sys.executable, "-c", f"{timed}; print(time.perf_counter() - start)"]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _child(kind: str) -> tuple[float, float]:
    environ = {**os.environ, "BENCHMARK_START": str(time.time())}
    command = [sys.executable, "-m", "benchmarks.start", kind]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    seconds, megabytes = done.stdout.strip().splitlines()[-1].split()
    return float(seconds), float(megabytes)


def _report(first_step: float) -> None:
    print(first_step - float(os.environ["BENCHMARK_START"]), _peak_mib(), flush=True)
    os._exit(0)


def _peak_mib() -> float:
    """The most memory that this program has held. On Linux ru_maxrss begins with what held the process that started
    it (getrusage(2)), which may be more; /proc's VmHWM begins with the program."""
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def ours() -> None:
    """`python -m trainer.task` until it has made its steps."""
    import tempfile

    from trainer import task

    def hooked() -> None:
        from trainer.loop import Loop

        train = Loop.train

        def timed(self: Loop, iterator: object, steps: int) -> int:
            train(self, iterator, 1)
            first = time.time()
            train(self, iterator, STEPS)
            _report(first)
            return 0

        Loop.train = timed

    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        hooked()
        task.main([f"--job_dir={folder}"])


def plain_keras() -> None:
    """What a user would write instead: the same model and records, `fit`."""
    import keras
    import tensorflow as tf

    from trainer import data, model

    class Timed(keras.callbacks.Callback):
        first = 0.0

        def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
            self.first = self.first or time.time()

    keras.utils.set_random_seed(0)
    files = tf.io.gfile.glob("data/digits/train-*.tfrecord")
    dataset = tf.data.TFRecordDataset(sorted(files)).shuffle(10_000).repeat()
    dataset = (
        dataset.map(lambda record: data.parse(record, True), tf.data.AUTOTUNE).batch(64).prefetch(tf.data.AUTOTUNE)
    )
    optimizer = keras.optimizers.Adam(2e-3, global_clipnorm=1.0)
    digits = model.build_model(model.Hyperparameters(), optimizer)
    timed = Timed()
    digits.fit(dataset, steps_per_epoch=STEPS, epochs=1, verbose=0, callbacks=[timed])
    _report(timed.first)


if __name__ == "__main__":
    ours() if sys.argv[1] == "ours" else plain_keras()
