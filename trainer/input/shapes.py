"""What parse, augment and decode give, in words, and whether they agree; found out by tracing, before any training."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import tensorflow as tf

from trainer.guard import own
from trainer.input.sources import DataError


def words(spec: Any) -> str:
    """`{"image": float32 [8, 8, 1]}` of tensors or their specs, which may be nested."""
    if isinstance(spec, dict):
        return "{" + ", ".join(f'"{name}": {words(part)}' for name, part in spec.items()) + "}"
    if isinstance(spec, tuple | list):
        return "(" + ", ".join(map(words, spec)) + ")"
    return f"{spec.dtype.name} {spec.shape}" if hasattr(spec, "dtype") else type(spec).__name__


def example(spec: Any) -> str:
    """An example of data.parse, part by part."""
    parts = spec if isinstance(spec, tuple | list) else (spec,)
    named = [f"{name} {words(part)}" for name, part in zip(("features", "label", "weight"), parts, strict=False)]
    return ", ".join(named if len(parts) > 1 else [*named, "no label"])


def check(data: ModuleType, element: Any) -> None:
    """Raises DataError where `augment` or `decode` give something else than `parse`, whose spec is `element`."""
    if getattr(data, "augment", None):
        parts = element if isinstance(element, tuple | list) else (element,)
        seed = tf.TensorSpec([2], tf.int32, name="seed")
        _same("augment", lambda *args: data.augment(*args[:-1], seed=args[-1]), (*parts, seed), tuple(parts))
    if getattr(data, "decode", None):
        features = element[0] if isinstance(element, tuple | list) else element
        _same("decode", data.decode, (tf.TensorSpec([], tf.string, name="raw"),), features)


def _same(name: str, function: Callable, given: tuple, wanted: Any) -> None:
    try:
        came = tf.function(lambda *args: function(*args)).get_concrete_function(*given).structured_outputs
    except Exception as error:  # whatever it is, the function is the fork's
        raise DataError(f"data.{name} can't be traced on {words(given)}: {own.told(error)}") from error
    if isinstance(wanted, tuple) and isinstance(came, list):
        came = tuple(came)
    if not _fits(came, wanted):
        of = " as features; make them agree, or leave decode out" if name == "decode" else ""
        raise DataError(f"data.{name} gives {words(came)}; {words(wanted)} is expected, as data.parse gives{of}")


def _fits(came: Any, wanted: Any) -> bool:
    try:
        tf.nest.assert_same_structure(came, wanted, check_types=False)
    except (TypeError, ValueError):
        return False
    pairs = zip(tf.nest.flatten(came), tf.nest.flatten(wanted), strict=True)
    return all(
        isinstance(one, tf.Tensor) and one.dtype == other.dtype and one.shape.is_compatible_with(other.shape)
        for one, other in pairs
    )
