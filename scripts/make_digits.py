"""Write the bundled data set: the UCI handwritten digits as TFRecords of PNG images.

1,797 images of 8x8 grey pixels, 17 levels (0 to 16), as scikit-learn ships them
(sklearn.datasets.load_digits). E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits",
UCI Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49, CC BY 4.0.

    python scripts/make_digits.py data/digits

Every class is split alike: 70% train, 15% validation, 15% test, from a fixed seed, so that the
files are the same bytes wherever this runs.
"""

import pathlib
import sys

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

SHARDS = {"train": 4, "validation": 2, "test": 2}


def split_indices(labels: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    """The indices of each split, shuffled, with every class spread alike over the splits."""
    rng = np.random.default_rng(seed)
    parts = {split: [] for split in SHARDS}
    for label in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == label))
        cuts = np.array([0.70, 0.85]) * len(members)
        for split, part in zip(SHARDS, np.split(members, cuts.round().astype(int)), strict=True):
            parts[split].append(part)
    return {split: rng.permutation(np.concatenate(part)) for split, part in parts.items()}


def encode(image: np.ndarray) -> bytes:
    """PNG bytes of 8x8 pixels of 0 to 16."""
    return tf.io.encode_png(np.round(image * (255 / 16)).astype(np.uint8)[..., None]).numpy()


def to_example(image: np.ndarray, label: int) -> bytes:
    """One serialized tf.train.Example, with the field names of TensorFlow's image data sets."""
    encoded = encode(image)
    feature = {
        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[encoded])),
        "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString(deterministic=True)


def write_example(path: pathlib.Path, image: np.ndarray) -> None:
    """One image as a file, for `make predict`."""
    path.write_bytes(encode(image))


def main(folder: str) -> None:
    """Write every shard of every split below `folder`."""
    out = pathlib.Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8)
    for split, indices in split_indices(labels).items():
        for shard, part in enumerate(np.array_split(indices, SHARDS[split])):
            path = out / f"{split}-{shard:05d}-of-{SHARDS[split]:05d}.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as writer:
                for index in part:
                    writer.write(to_example(images[index], int(labels[index])))
        if split == "test":
            write_example(out / "example.png", images[indices[0]])
        print(f"{split}: {len(indices)} examples in {SHARDS[split]} files")


if __name__ == "__main__":
    main(sys.argv[1])
