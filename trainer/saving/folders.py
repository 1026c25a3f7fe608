"""The files of a job: which checkpoints there are, what to clear away, and what --fresh sets aside."""

import re
import time

import tensorflow as tf


def steps(directory: str, ending: str) -> list[int]:
    """The steps of the files ckpt-STEP + `ending`, oldest first; none where there is no folder."""
    try:
        names = tf.io.gfile.listdir(directory)
    except tf.errors.NotFoundError:
        return []
    found = [re.fullmatch(r"ckpt-(\d+)" + re.escape(ending), name) for name in names]
    return sorted(int(match[1]) for match in found if match)


def remove(path: str) -> None:
    """Delete a file that may be gone already."""
    try:
        tf.io.gfile.remove(path)
    except tf.errors.NotFoundError:
        return


def clear_unfinished(directory: str) -> None:
    """Delete what a killed process left half-written in a folder of checkpoints: TensorFlow's temporary files."""
    if not tf.io.gfile.exists(directory):
        return
    for name in tf.io.gfile.listdir(directory):
        if re.match(r"ckpt-\d+(\.|_).*(tempstate|_temp)", name):
            path = f"{directory}/{name.rstrip('/')}"
            (tf.io.gfile.rmtree if tf.io.gfile.isdir(path) else remove)(path)


def set_aside(*paths: str) -> list[str]:
    """Move files and folders out of the way, under names with the time; those they have now.

    Names that are taken (the clock may have been set back) get a number.
    """
    moved = []
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for path in paths:
        if not tf.io.gfile.exists(path):
            continue
        stem, dot, ending = path.rpartition(".") if path.endswith(".json") else (path, "", "")
        target, number = f"{stem}-{stamp}{dot}{ending}", 1
        while tf.io.gfile.exists(target):
            number += 1
            target = f"{stem}-{stamp}-{number}{dot}{ending}"
        tf.io.gfile.rename(path, target)
        moved.append(target)
    return moved
