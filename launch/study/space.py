"""The parameters of a studySpec, read and written.

Field semantics: google.cloud.aiplatform.v1.StudySpec.ParameterSpec.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from launch.errors import LaunchError

Kind = Literal["double", "integer", "categorical", "discrete"]
Value = float | int | str
_KINDS = {f"{kind}ValueSpec": kind for kind in ("double", "integer", "categorical", "discrete")}
_PARENTS = ("parentCategoricalValues", "parentDiscreteValues", "parentIntValues")
_SCALES = {
    "UNIT_LINEAR_SCALE": "linear",
    "UNIT_LOG_SCALE": "log",
    "UNIT_REVERSE_LOG_SCALE": "reverse_log",
    "SCALE_TYPE_UNSPECIFIED": "linear",
}


@dataclass(frozen=True)
class Parameter:
    """One parameter. `values` are those of a categorical or discrete one, `low` and `high` the range of the others.

    `children` are (values of this parameter, parameter) pairs: the second is used where this one has one of the first.
    """

    name: str
    kind: Kind
    scale: str = "linear"
    low: float = 0.0
    high: float = 0.0
    values: tuple[Value, ...] = ()
    children: tuple[tuple[tuple[Value, ...], "Parameter"], ...] = ()

    @property
    def listed(self) -> bool:
        """Whether it takes one of a list of values."""
        return self.kind in ("categorical", "discrete")

    def active_children(self, value: Value) -> Iterator["Parameter"]:
        """The parameters that are used where this one is `value`."""
        return (child for parents, child in self.children if value in parents)

    def unit(self, value: float) -> float:
        """Where `value` lies in the range, 0 to 1, as its scale counts."""
        if self.high == self.low:
            return 0.5
        if self.scale == "linear":
            return (value - self.low) / (self.high - self.low)
        if self.scale == "log":
            return math.log(value / self.low) / math.log(self.high / self.low)
        return 1 - math.log((self.high + self.low - value) / self.low) / math.log(self.high / self.low)

    def at(self, unit: float) -> float:
        """The value at a place of the range, 0 to 1: the inverse of `unit`."""
        if self.scale == "linear":
            return self.low + unit * (self.high - self.low)
        if self.scale == "log":
            return self.low * (self.high / self.low) ** unit
        return self.high + self.low - self.low * (self.high / self.low) ** (1 - unit)


def read(study: Mapping) -> list[Parameter]:
    """The parameters of a studySpec, conditional ones inside their parents. Raises LaunchError."""
    specs = study.get("parameters")
    if not isinstance(specs, list) or not specs:
        raise LaunchError("studySpec.parameters is empty: a tuning job needs at least one parameter")
    found = [_parameter(spec, f"studySpec.parameters[{place}]") for place, spec in enumerate(specs)]
    names = [one.name for one in everyone(found)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise LaunchError(f"studySpec.parameters has {', '.join(sorted(twice))} more than once; each needs its own id")
    return found


def _parameter(spec: Mapping, where: str) -> Parameter:
    kinds = [key for key in _KINDS if isinstance(spec, Mapping) and key in spec]
    if len(kinds) != 1 or not spec.get("parameterId"):
        raise LaunchError(f"{where}: a parameterId and exactly one of {', '.join(_KINDS)} were expected; {spec!r} came")
    name, kind, body = str(spec["parameterId"]), _KINDS[kinds[0]], spec[kinds[0]] or {}
    where = f"{where} ({name})"
    scale = _SCALES.get(spec.get("scaleType") or "UNIT_LINEAR_SCALE")
    if scale is None:
        raise LaunchError(f"{where}: scaleType is {spec['scaleType']!r}; one of {', '.join(_SCALES)} was expected")
    children = tuple(_child(child, where) for child in spec.get("conditionalParameterSpecs") or ())
    if kind in ("categorical", "discrete"):
        values = tuple(body.get("values") or ())
        if kind == "discrete":
            values = tuple(sorted(_number(value, where) for value in values))
        if not values:
            raise LaunchError(f"{where}: {kinds[0]}.values is empty")
        return Parameter(name, kind, scale, values=values, children=children)
    low, high = (_number(body.get(key, 0), where) for key in ("minValue", "maxValue"))
    if low > high:
        raise LaunchError(f"{where}: minValue {low:g} is above maxValue {high:g}")
    if scale != "linear" and low <= 0:
        raise LaunchError(f"{where}: a logarithmic scale needs minValue above 0; {low:g} came")
    return Parameter(name, kind, scale, low, high, children=children)


def _child(spec: Mapping, where: str) -> tuple[tuple[Value, ...], Parameter]:
    parents = [key for key in _PARENTS if key in spec]
    if len(parents) != 1:
        raise LaunchError(f"{where}: a condition needs exactly one of {', '.join(_PARENTS)}")
    values = tuple((spec[parents[0]] or {}).get("values") or ())
    if parents[0] != "parentCategoricalValues":
        values = tuple(_number(value, where) for value in values)
    return values, _parameter(spec.get("parameterSpec") or {}, f"{where}.conditionalParameterSpecs")


def _number(value: object, where: str) -> float:
    """A number, integers in a string too: JSON writes an int64 so."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise LaunchError(f"{where}: {value!r} came where a number was expected")
    return int(number) if number.is_integer() and not isinstance(value, float) else number


def everyone(parameters: Sequence[Parameter]) -> Iterator[Parameter]:
    """All parameters, conditional ones after their parents."""
    for one in parameters:
        yield one
        yield from everyone([child for _, child in one.children])


def as_spec(one: Parameter) -> dict:
    """A parameter as the API writes it: the inverse of `read`."""
    spec: dict = {"parameterId": one.name}
    if not one.listed:
        spec["scaleType"] = next(name for name, scale in _SCALES.items() if scale == one.scale)
    number = int if one.kind == "integer" else float
    body = {"values": list(one.values)} if one.listed else {"minValue": number(one.low), "maxValue": number(one.high)}
    spec[f"{one.kind}ValueSpec"] = body
    if one.children:
        parent = {"categorical": _PARENTS[0], "discrete": _PARENTS[1], "integer": _PARENTS[2]}[one.kind]
        spec["conditionalParameterSpecs"] = [
            {
                parent: {"values": [value for value in parents if not one.listed or value in one.values]},
                "parameterSpec": as_spec(child),
            }
            for parents, child in one.children
        ]
    return spec
