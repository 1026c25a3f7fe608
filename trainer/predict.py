"""What the exported model says of a file: `make predict IMAGE=digit.png`."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main(argv: list[str] | None = None) -> int:
    """Print the answer to each file's bytes; 2 where the model or a file can't be used."""
    parser = argparse.ArgumentParser(prog="python -m trainer.predict", description=__doc__)
    parser.add_argument("files", nargs="+", help="what data.decode takes, such as PNG images")
    parser.add_argument("--model", default="jobs/default/model", help="an exported model, local or gs://")
    parser.add_argument("--json", action="store_true", help="the raw outputs")
    options = parser.parse_args(argv)
    try:
        contents = [Path(file).read_bytes() for file in options.files]
    except OSError as error:
        print(f"{error.filename} can't be read: {error.strerror}", file=sys.stderr)
        return 2
    if "://" not in options.model and not Path(options.model, "saved_model.pb").exists():
        print(f"{options.model} holds no model; make train exports one, --model names another", file=sys.stderr)
        return 2
    import tensorflow as tf  # takes seconds: what is missing is told before

    try:
        raw = tf.saved_model.load(options.model).signatures["raw"]
        answers = {name: value.numpy() for name, value in raw(tf.constant(contents)).items()}
    except KeyError:
        print(f"{options.model} has no signature for raw bytes: data.py defines no decode", file=sys.stderr)
        return 2
    except (OSError, tf.errors.OpError) as error:
        print(f"no answer from {options.model} to {' '.join(options.files)}: {_reason(error)}", file=sys.stderr)
        return 2
    for index, file in enumerate(options.files):
        row = {name: values[index] for name, values in answers.items()}
        if options.json:
            print(json.dumps({"file": file} | {name: value.tolist() for name, value in row.items()}))
        else:
            print(file, *(_line(name, value) for name, value in row.items()), sep="\n")
    return 0


def _reason(error: Any) -> str:
    """What TensorFlow says is wrong, without where in its graph."""
    lines = [line.strip() for line in (getattr(error, "message", None) or str(error)).splitlines()]
    about_graph = ("Graph execution error", "Detected at node", "<stack traces", "[[{{node")
    return next((line for line in lines if line and not line.startswith(about_graph)), "it said nothing")


def _line(name: str, scores: Any) -> str:
    """The outputs; for a classifier's logits the likeliest classes."""
    import tensorflow as tf

    from trainer import data

    names = getattr(data, "CLASS_NAMES", None)
    if names is None or scores.shape != (len(names),):
        return f"  {name}: {scores}"
    shares = tf.nn.softmax(scores).numpy()
    best = shares.argsort()[::-1][:3]
    return "\n".join(f"  {names[i]:>12}  {shares[i]:6.1%}  {'█' * round(shares[i] * 30)}" for i in best)


if __name__ == "__main__":
    sys.exit(main())
