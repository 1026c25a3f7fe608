"""The host's side of a checkpoint: epochs, best value, and what the Keras callbacks remember."""

import dataclasses
import io
from typing import Any

import keras
import numpy as np


@dataclasses.dataclass
class Progress:
    """What a checkpoint keeps besides variables; every field is plain JSON but for `arrays`."""

    epochs_ended: int = 0
    validation: dict[str, float] = dataclasses.field(default_factory=dict)
    train: dict[str, float] = dataclasses.field(default_factory=dict)
    epoch_measured: int = -1  # the epoch whose `train` is final though its evaluation isn't done
    callbacks: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    arrays: list[bytes] = dataclasses.field(default_factory=list)  # of the callbacks, which name them by number
    stop_training: bool = False
    best_value: float | None = None
    best_step: int = -1
    rewinds: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    curves: dict[str, int] = dataclasses.field(default_factory=dict)  # the last step of every curve


def callback_state(callback: keras.callbacks.Callback, arrays: list[bytes]) -> dict[str, Any]:
    """The values that a callback holds: counters, bests; arrays such as EarlyStopping's best weights join `arrays`."""
    packed = {}
    for name, value in vars(callback).items():
        if name in ("_model", "params"):
            continue
        there = len(arrays)
        try:
            packed[name] = _pack(value, arrays)
        except TypeError:  # functions, files, the model: the callback makes them again
            del arrays[there:]
    return packed


def restore_callback(callback: keras.callbacks.Callback, state: dict[str, Any], arrays: list[bytes]) -> None:
    """Give a callback back what `callback_state` took; call it after on_train_begin, which resets."""
    if getattr(callback, "monitor_op", "") is None and hasattr(callback, "_set_monitor_op"):
        callback._set_monitor_op()  # Keras would do so after the next epoch, and forget the best value with it
    for name, value in state.items():
        setattr(callback, name, _unpack(value, arrays))


def _pack(value: Any, arrays: list[bytes]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool | int | float | str | None):
        return value
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        buffer = io.BytesIO()
        np.save(buffer, value, allow_pickle=False)
        arrays.append(buffer.getvalue())
        return {"array": len(arrays) - 1}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_pack(item, arrays) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: _pack(item, arrays) for key, item in value.items()}}
    raise TypeError(type(value).__name__)


def _unpack(value: Any, arrays: list[bytes]) -> Any:
    if not isinstance(value, dict):
        return value
    (kind, content), *_ = value.items()
    if kind == "array":
        return np.load(io.BytesIO(arrays[content]), allow_pickle=False)
    if kind == "dict":
        return {key: _unpack(item, arrays) for key, item in content.items()}
    items = [_unpack(item, arrays) for item in content]
    return tuple(items) if kind == "tuple" else items


class Best:
    """Which epoch was the best by `rule`: a name of its logs, with min: or max: before it.

    Without one of these, a name that has acc, auc, precision, recall or f1 in it is better when larger.
    """

    def __init__(self, rule: str):
        way, colon, name = rule.rpartition(":")
        self.name = name
        grows = any(part in name for part in ("acc", "auc", "precision", "recall", "f1"))
        self.sign = 1 if (way == "max" or (not colon and grows)) else -1

    def improves(self, logs: dict[str, float], best: float | None) -> bool:
        """Whether `logs` beat `best`. Raises KeyError with the names there are where the rule's is not among them."""
        if self.name not in logs:
            raise KeyError(f"--keep_best={self.name} is not among what this model reports: {', '.join(logs)}")
        return best is None or self.sign * logs[self.name] > self.sign * best
