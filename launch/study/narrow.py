"""Where to search next: each parameter's range or list, given what the trials of a study reached.

A range is widened where the best trial lies at its edge, because the best may lie beyond; elsewhere it is narrowed to
where the better quarter of the trials lies, and rounded outwards to two digits.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

from launch.study import choices
from launch.study.space import Parameter, Value

EDGE = 0.1  # of the range, as its scale counts: so near the end is "at the edge"
MARGIN = 0.1  # kept around the better trials
LEAST_WIDTH = 0.25  # a range is not narrowed to less of what it was
WIDENINGS = (0.5, 0.25, 0.1)  # how far beyond the edge, tried in this order until the trainer accepts it


@dataclasses.dataclass(frozen=True)
class Trial:
    """What a trial tried, and what it reached."""

    number: str
    values: Mapping[str, Value]
    score: float


@dataclasses.dataclass(frozen=True)
class Change:
    """What became of one parameter, and why."""

    name: str
    before: str
    after: str
    why: str


def refine(
    parameters: Sequence[Parameter],
    trials: Sequence[Trial],
    accepts: Callable[[str, Value], bool] = lambda name, value: True,
) -> tuple[list[Parameter], list[Change]]:
    """The parameters of the next study; `trials` best first, `accepts(name, value)` asks whether a flag takes it."""
    changes: list[Change] = []

    def visit(one: Parameter) -> Parameter:
        active = [trial for trial in trials if one.name in trial.values]
        better = [trial.values[one.name] for trial in active[: max(3, math.ceil(len(active) / 4))]]
        found, why = _refined(one, better, accepts)
        changes.append(Change(one.name, describe(one), describe(found), why))
        children = [
            (parents, child) for parents, child in one.children if not one.listed or set(parents) & {*found.values}
        ]
        return dataclasses.replace(found, children=tuple((parents, visit(child)) for parents, child in children))

    return [visit(one) for one in parameters], changes


def describe(one: Parameter) -> str:
    """A range or list, short."""
    if one.listed:
        return ", ".join(map(str, one.values))
    return f"{one.low:g} to {one.high:g}"


def _refined(one: Parameter, better: Sequence[Value], accepts: Callable[[str, Value], bool]) -> tuple[Parameter, str]:
    if not better or (not one.listed and one.low == one.high):
        return one, "no trial had it" if not better else "a single value"
    if one.kind == "categorical":
        kept = tuple(value for value in one.values if value in better)
        return dataclasses.replace(one, values=kept), "those of the better trials"
    if one.kind == "discrete":
        return _list(one, better, accepts)
    return _range(one, [float(value) for value in better], accepts)


def _range(one: Parameter, better: Sequence[float], accepts: Callable[[str, Value], bool]) -> tuple[Parameter, str]:
    best, units = one.unit(better[0]), [one.unit(value) for value in better]
    low, high = max(0.0, min(units) - MARGIN), min(1.0, max(units) + MARGIN)
    if high - low < LEAST_WIDTH:
        low = min(max(0.0, best - LEAST_WIDTH / 2), 1 - LEAST_WIDTH)
        high = low + LEAST_WIDTH
    why = "narrowed to the better trials"
    bounds = [_round(one, one.at(low), down=True), _round(one, one.at(high), down=False)]
    for side, at_edge in enumerate((best <= EDGE, best >= 1 - EDGE)):
        if at_edge:
            wider = _beyond(one, side, accepts)
            bounds[side] = wider if wider is not None else (one.low, one.high)[side]
            end = ("lower", "upper")[side]
            why = f"widened: the best is at the {end} edge"
            if wider is None:
                why = f"the best is at the {end} edge, beyond which the flag takes no value"
    if tuple(bounds) == (one.low, one.high) and why.startswith("narrowed"):
        why = "kept: the better trials are all over it"
    return dataclasses.replace(one, low=bounds[0], high=bounds[1]), why


def _beyond(one: Parameter, side: int, accepts: Callable[[str, Value], bool]) -> float | None:
    """A bound further out on that side; what was never negative stays so."""
    edge = (one.low, one.high)[side]
    for step in WIDENINGS:
        value = _round(one, one.at(1 + step if side else -step), down=not side)
        if one.kind == "integer" and value == edge:
            value += 1 if side else -1
        if one.low >= 0:
            value = max(value, 1 if one.kind == "integer" and one.scale != "linear" else 0)
        if one.scale != "linear" and value <= 0:
            continue
        if value != edge and accepts(one.name, value):
            return value
    return None


def _list(one: Parameter, better: Sequence[Value], accepts: Callable[[str, Value], bool]) -> tuple[Parameter, str]:
    """The values from the lowest to the highest of the better trials, and one more where the best ends the list."""
    places = [one.values.index(value) for value in better if value in one.values]
    if not places:
        return one, "no trial had one of its values"
    best, kept = places[0], list(one.values[min(places) : max(places) + 1])
    why = "those of the better trials"
    for at_edge, end in ((best == 0, 0), (best == len(one.values) - 1, -1)):
        more = _continued(one.values[::-1] if end == 0 else one.values) if at_edge and len(one.values) > 1 else None
        if more is not None and accepts(one.name, more):
            kept = [more, *kept] if end == 0 else [*kept, more]
            why = f"widened: the best is the {'first' if end == 0 else 'last'} of the list"
    return dataclasses.replace(one, values=tuple(kept)), why


def _continued(values: Sequence[float]) -> float | None:
    """The value after the last: by the ratio of the last two where all have one sign, else by their difference."""
    last, before = values[-1], values[-2]
    positive = min(values) > 0
    value = last * last / before if positive else 2 * last - before
    if all(isinstance(one, int) for one in values):
        value = round(value)
    else:
        value = float(f"{value:.2g}")
    return None if value == last or (positive and value <= 0) or (min(values) >= 0 and value < 0) else value


def _round(one: Parameter, value: float, *, down: bool) -> float:
    """Two digits, outwards; an integer stays whole."""
    outwards = math.floor if down else math.ceil
    if value == 0 or (one.kind == "integer" and abs(value) < 100):
        return outwards(value)
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    near = round(value / unit)  # 0.30000000000000004 is 0.3, not 0.31
    whole = near if math.isclose(near, value / unit, rel_tol=1e-9) else outwards(value / unit)
    rounded = float(f"{whole * unit:.6g}")
    return int(rounded) if one.kind == "integer" else rounded


def gridded(parameters: Sequence[Parameter], points: int) -> tuple[list[Parameter], int]:
    """The same as a grid of at most `points` values for each parameter, and the number of its trials."""

    def visit(one: Parameter) -> Parameter:
        children = tuple((parents, visit(child)) for parents, child in one.children)
        if one.listed:
            return dataclasses.replace(one, children=children)
        count = points if one.kind == "double" else min(points, int(one.high - one.low) + 1)
        places = [one.at(step / (count - 1)) for step in range(count)] if count > 1 else [one.at(0.5)]
        values = {round(value) if one.kind == "integer" else float(f"{value:.2g}") for value in places}
        return Parameter(one.name, "discrete", values=tuple(sorted(values)), children=children)

    grid = [visit(one) for one in parameters]
    return grid, sum(1 for _ in choices.grid(grid))
