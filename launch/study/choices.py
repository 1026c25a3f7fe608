"""Values for the parameters of a study: proposed through optuna, one for a rehearsal, or all of a grid."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from launch.errors import LaunchError
from launch.study.space import Parameter, Value, everyone, read

if TYPE_CHECKING:
    import optuna


def propose(trial: "optuna.trial.BaseTrial", parameters: Sequence[Parameter]) -> dict[str, Value]:
    """A value for every active parameter, as optuna's sampler chooses.

    optuna knows no reverse logarithm and no order among choices: the first is asked for mirrored, a discrete
    value by its place in the list.
    """
    return choose(parameters, lambda one: decode(one, _suggest(trial, one)))


def _suggest(trial: "optuna.trial.BaseTrial", one: Parameter) -> Value:
    if one.kind == "categorical":
        return trial.suggest_categorical(one.name, one.values)
    if one.kind == "discrete":
        return trial.suggest_int(one.name, 0, len(one.values) - 1)
    log = one.scale != "linear"
    if one.kind == "integer":
        return trial.suggest_int(one.name, int(one.low), int(one.high), log=log)
    return trial.suggest_float(one.name, one.low, one.high, log=log)


def decode(one: Parameter, raw: Value) -> Value:
    """What the trainer gets for what optuna holds."""
    if one.kind == "discrete":
        return one.values[raw]
    return one.high + one.low - raw if one.scale == "reverse_log" and not one.listed else raw


def encode(one: Parameter, value: Value) -> Value:
    """What optuna holds for a value: the inverse of `decode`."""
    if one.kind == "discrete":
        return one.values.index(value)
    return one.high + one.low - value if one.scale == "reverse_log" and not one.listed else value


def choose(parameters: Sequence[Parameter], pick: Callable[[Parameter], Value]) -> dict[str, Value]:
    """{name: value} of every parameter that is active, given how one is picked."""
    chosen: dict[str, Value] = {}
    for one in parameters:
        value = chosen[one.name] = pick(one)
        chosen |= choose(list(one.active_children(value)), pick)
    return chosen


def flags(parameters: Sequence[Parameter], values: Mapping[str, Value]) -> list[str]:
    """The flags that the service appends to args; a discrete value comes as a double there: 16.0."""
    discrete = {one.name for one in everyone(parameters) if one.kind == "discrete"}
    return [f"--{name}={float(value) if name in discrete else value}" for name, value in values.items()]


def middle(study: Mapping) -> dict[str, Value]:
    """One trial in the middle of every range, for a rehearsal."""

    def pick(one: Parameter) -> Value:
        if one.listed:
            return one.values[(len(one.values) - 1) // 2]
        value = one.at(0.5)
        return round(value) if one.kind == "integer" else float(f"{value:.4g}")

    return choose(read(study), pick)


def grid(parameters: Sequence[Parameter]) -> Iterator[dict[str, Value]]:
    """Every combination, the last parameter changing fastest; a double has no grid and raises LaunchError."""
    choices = [list(_choices(one)) for one in parameters]
    for combination in itertools.product(*choices):
        yield {name: value for part in combination for name, value in part.items()}


def _choices(one: Parameter) -> Iterator[dict[str, Value]]:
    """One parameter's values, each with every combination of the children that are active for it."""
    if one.kind == "double":
        raise LaunchError(f"{one.name}: GRID_SEARCH takes no double; list its values (discreteValueSpec)")
    for value in one.values if one.listed else range(int(one.low), int(one.high) + 1):
        for rest in grid(list(one.active_children(value))):
            yield {one.name: value, **rest}
