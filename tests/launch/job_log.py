"""A log as a job of several replicas writes it, of any size: for the slow test of diagnose, and for its benchmark."""

import json
import random
from collections.abc import Callable
from pathlib import Path

KINDS: tuple[str, ...] = (
    "{time}: I tensorflow/core/common_runtime/gpu/gpu_device.cc:2019] Created device /job:worker/replica:0/"
    "task:{small}/device:GPU:{small} with {large} MB memory:  -> device: {small}, name: NVIDIA L4, "
    "pci bus id: 0000:{small}:03.0",
    "step {large}/400000  loss {fraction:.4f}  accuracy {fraction:.4f}  {large} examples/s",
    "{large}/1875 [=====>.......] - ETA: {small}s - loss: {fraction:.4f} - accuracy: {fraction:.4f}",
    "{time} [INFO] read gs://my-bucket/data/train-{large:05}-of-99999.tfrecord, generation {id}, in {fraction:.3f} s",
    "W0000 00:00:{large}.{large} {large} cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to register "
    "factory for plugin cuDNN when one has already been registered",
    '{time} DEBUG urllib3.connectionpool: "GET /storage/v1/b/my-bucket/o/{hex} HTTP/1.1" 200 {large}',
    "[{time}] worker-{small} heartbeat ok, queue {small}, request {hex}",
    "{time}: W tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting with status: "
    "OUT_OF_RANGE",
    "INFO:root:saved checkpoint {large} in {fraction:.1f} s",
    "WARNING:tensorflow:5 out of the last {small} calls to <function train_step at 0x{hex}> triggered retracing.",
)
CAUSE = "CUDA_ERROR_OUT_OF_MEMORY"


def _line(order: random.Random) -> str:
    large = order.randrange(10**5)
    return order.choice(KINDS).format(
        time=f"2026-11-21 {large % 24:02}:{large % 60:02}:{large % 59:02}.{large:06}",
        small=large % 8,
        large=large,
        fraction=order.random(),
        id=order.getrandbits(60),
        hex=f"{order.getrandbits(64):x}",
    )


def as_json(line: str, order: random.Random) -> str:
    """The line as Cloud Logging gives it."""
    return json.dumps(
        {
            "insertId": f"{order.getrandbits(64):x}",
            "jsonPayload": {"message": line, "levelname": "INFO"},
            "resource": {
                "type": "ml_job",
                "labels": {"job_id": "12", "task_name": f"workerpool0-{order.randrange(4)}"},
            },
            "timestamp": "2026-11-21T02:33:10.5Z",
            "severity": "INFO",
        }
    )


def write(file: Path, size: int, form: Callable[[str, random.Random], str] = lambda line, order: line) -> int:
    """Writes `size` bytes and a little, with CAUSE after three fifths; the number of its line."""
    order, written, number, at = random.Random(1), 0, 0, 0
    with file.open("w") as log:
        while written < size:
            if not at and written > size * 3 / 5:
                at = number + 1
                line = form(CAUSE, order)
            else:
                line = form(_line(order), order)
            written += log.write(line + "\n")
            number += 1
    return at
