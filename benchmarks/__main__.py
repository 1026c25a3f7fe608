"""`make benchmark`: every comparison in one run; ARGS="loop input" chooses."""

import importlib
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# what is measured is the digits model, in a fork with a model of its own as well
os.environ["TRAINYARD_EXAMPLE"] = str(pathlib.Path(__file__).resolve().parents[1] / "tests/examples/digits")

# name -> (module with measure() -> list[Row], what is compared)
SUBJECTS = {
    "loop": ("benchmarks.loop", "steps/s: our loop, Keras fit, fit with steps_per_execution=32, a bare tf.function"),
    "start": ("benchmarks.start", "start to the first step, and peak memory, against a plain Keras script"),
    "strategies": ("benchmarks.strategies", "two workers against one, Mirrored with one replica, tf_keras on two"),
    "faults": ("benchmarks.faults", "what checkpoints and the look for NaN cost, as shares of the throughput"),
    "input": ("benchmarks.images_input", "20,000 JPEGs: our pipeline against tf.data's decode alone"),
}


def main(chosen: list[str]) -> int:
    """Print the rows of the chosen subjects (all by default); 1 where one misses what is wanted."""
    unknown = set(chosen) - set(SUBJECTS)
    if unknown:
        print(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    from benchmarks.rows import save

    missed = 0
    for subject in chosen or SUBJECTS:
        module, text = SUBJECTS[subject]
        print(f"\n{subject}: {text}", flush=True)
        rows = importlib.import_module(module).measure()
        for row in rows:
            print(row.line(), flush=True)
        save(rows)
        missed += sum(not row.ok for row in rows)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
