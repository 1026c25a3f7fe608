"""The parameters of a study: ranges that hold something, values in order, conditions that can be met."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

from launch.spec.document import Document, Path, dig, show

KINDS = ("doubleValueSpec", "integerValueSpec", "discreteValueSpec", "categoricalValueSpec")
CONDITIONS = {
    "parentCategoricalValues": "categoricalValueSpec",
    "parentDiscreteValues": "discreteValueSpec",
    "parentIntValues": "integerValueSpec",
}
LOG_SCALES = ("UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE")
MAX_DISCRETE = 1000


class Parameters:
    """The parameters of a study, conditional ones within their parents."""

    def __init__(self, document: Document, grid: bool, given: Mapping[str, str]):
        self.document = document
        self.grid = grid
        self.given = given
        self.seen: dict[str, Path] = {}

    def check(self, base: Path, entries: list) -> None:
        """Note what no search can work with in the list of parameters that stands at `base`."""
        for place, entry in enumerate(entries):
            if isinstance(entry, dict):
                self._one((*base, place), entry)

    def _one(self, path: Path, entry: dict) -> None:
        name = dig(entry, "parameterId", kind=str, default="")
        self._name(path, name)
        kind = next((kind for kind in KINDS if kind in entry), None)
        if kind is None:
            self.document.find(path, f"parameter {name or '?'} without values", f"one of {', '.join(KINDS)}")
        else:
            self._values(path, entry, kind)
        for place, child in enumerate(dig(entry, "conditionalParameterSpecs", kind=list, default=[])):
            child_path = (*path, "conditionalParameterSpecs", place)
            if isinstance(child, dict):
                self._condition(child_path, child, entry, name)
                parameter = dig(child, "parameterSpec", kind=dict, default=None)
                if parameter is not None:
                    self._one((*child_path, "parameterSpec"), parameter)

    def _name(self, path: Path, name: str) -> None:
        if not name:
            return
        place = (*path, "parameterId")
        if name in self.seen and path[:2] == self.seen[name][:2] and len(path) == len(self.seen[name]) == 3:
            self.document.find(place, f"parameterId {name} a second time", "each parameter once")
        self.seen[name] = path
        if name in self.given:
            fix = f"remove --{name} from args, or the parameter from the study"
            self.document.find(place, f"{name} as a parameter and in args", "one of them: the study's value wins", fix)

    def _values(self, path: Path, entry: dict, kind: str) -> None:
        place = (*path, kind)
        spec_ = dig(entry, kind, kind=dict, default={})
        scale = dig(entry, "scaleType", kind=str, default="")
        if kind in ("doubleValueSpec", "integerValueSpec"):
            low, high = (_number(spec_.get(end)) for end in ("minValue", "maxValue"))
            if low is not None and high is not None and low >= high:
                self.document.find(
                    (*place, "maxValue"), f"minValue {low:g} and maxValue {high:g}", "minValue < maxValue"
                )
            if low is not None and low <= 0 and scale in LOG_SCALES:
                fix = "take a small number, or UNIT_LINEAR_SCALE"
                self.document.find((*place, "minValue"), f"minValue {low:g} with {scale}", "more than 0", fix)
            if self.grid and kind == "doubleValueSpec":
                fix = "list the values to try under discreteValueSpec"
                self.document.find(
                    place, "a double range with GRID_SEARCH", "integer, discrete or categorical", fix, key=True
                )
            return
        values = dig(spec_, "values", kind=list, default=[])
        if "values" in spec_ and not values:
            self.document.find((*place, "values"), "an empty list of values", "at least one")
        if kind == "categoricalValueSpec":
            if scale:
                fix = "remove scaleType"
                self.document.find((*path, "scaleType"), f"scaleType: {scale} of a categorical parameter", "none", fix)
            if len({str(value) for value in values}) < len(values):
                self.document.find((*place, "values"), "a value a second time", "each value once")
            return
        numbers = [_number(value) for value in values]
        known = [number for number in numbers if number is not None]
        if any(second <= first for first, second in itertools.pairwise(known)):
            self.document.find((*place, "values"), f"values {_list(values)}", "increasing values, each once")
        if len(values) > MAX_DISCRETE:
            self.document.find((*place, "values"), f"{len(values)} values", f"at most {MAX_DISCRETE}")
        if known and known[0] <= 0 and scale in LOG_SCALES:
            self.document.find((*place, "values", 0), f"{known[0]:g} with {scale}", "values over 0")

    def _condition(self, path: Path, child: dict, parent: dict, name: str) -> None:
        given = [key for key in CONDITIONS if key in child]
        if not given:
            self.document.find(path, f"a condition under {name} without a value", f"one of {', '.join(CONDITIONS)}")
            return
        key = given[0]
        wanted = CONDITIONS[key]
        if wanted not in parent:
            has = next((kind for kind in KINDS if kind in parent), "nothing")
            match = next((condition for condition, kind in CONDITIONS.items() if kind == has), "no condition")
            self.document.find((*path, key), f"{key} under {name}, which has {has}", match, key=True)
            return
        self._reachable((*path, key, "values"), dig(child, key, "values", kind=list, default=[]), parent, wanted)

    def _reachable(self, path: Path, values: list, parent: dict, kind: str) -> None:
        spec_ = dig(parent, kind, kind=dict, default={})
        for place, value in enumerate(values):
            if kind == "integerValueSpec":
                low, high, number = (_number(one) for one in (spec_.get("minValue"), spec_.get("maxValue"), value))
                fits = None in (low, high, number) or low <= number <= high
                allowed = f"{spec_.get('minValue')} to {spec_.get('maxValue')}"
            else:
                choices = dig(spec_, "values", kind=list, default=[])
                fits = value in choices
                allowed = f"one of the parent's values, {_list(choices)}"
            if not fits:
                self.document.find((*path, place), f"{show(path[-2:])}: {value!r:.60}", allowed)


def _number(value: Any) -> float | None:
    """A number as it stands, or as YAML 1.1 leaves `1e-4`: as text. None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _list(values: list) -> str:
    text = ", ".join(str(value)[:20] for value in values[:8])
    return text + (", ..." if len(values) > 8 else "")
