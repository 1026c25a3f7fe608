"""Early stopping: is this trial worth its time, given those that have ended?

Definitions: google.cloud.aiplatform.v1.StudySpec.MedianAutomatedStoppingSpec and DecayCurveAutomatedStoppingSpec.
"""

import math
import statistics
from collections.abc import Mapping, Sequence

from launch.study.measurements import Measurement

LEAST_CURVES = 3  # ended trials before anything is stopped
LEAST_CHANCE = 0.05  # of beating the best; under it a trial is stopped


def rule(study: Mapping) -> tuple[str, bool]:
    """("median" | "decay" | "", whether time counts instead of steps) of a studySpec."""
    for key, name in {"medianAutomatedStoppingSpec": "median", "decayCurveStoppingSpec": "decay"}.items():
        if key in study:
            return name, bool((study[key] or {}).get("useElapsedDuration"))
    return "", False


def should_stop(
    name: str, curve: Sequence[Measurement], ended: Sequence[Sequence[Measurement]], maximize: bool, by_time: bool
) -> str:
    """The reason to stop a trial now, or "". `ended` holds the curves of trials that went to their end."""
    if not name or not curve or len(ended) < LEAST_CURVES:
        return ""
    sign = 1.0 if maximize else -1.0
    points = [_points(one, sign, by_time) for one in (curve, *ended)]
    mine, others = points[0], [one for one in points[1:] if one]
    return {"median": _median, "decay": _decay}[name](mine, others)


def _points(curve: Sequence[Measurement], sign: float, by_time: bool) -> list[tuple[float, float]]:
    """(step or seconds, value with its sign so that more is better), in order."""
    return sorted((one.elapsed_s if by_time else one.step, sign * one.value) for one in curve)


def _until(points: Sequence[tuple[float, float]], x: float) -> list[float]:
    return [value for place, value in points if place <= x]


def _median(mine: Sequence[tuple[float, float]], others: Sequence[Sequence[tuple[float, float]]]) -> str:
    """The trial's best so far is below the median of the others' running averages up to here."""
    here = mine[-1][0]
    averages = [statistics.fmean(values) for one in others if (values := _until(one, here))]
    if len(averages) < LEAST_CURVES:
        return ""
    best, median = max(value for _, value in mine), statistics.median(averages)
    return f"its best, {abs(best):.4g}, is behind the median of the others, {abs(median):.4g}" if best < median else ""


def _decay(mine: Sequence[tuple[float, float]], others: Sequence[Sequence[tuple[float, float]]]) -> str:
    """How much others still gained from here on says, as a normal distribution, what this trial may reach."""
    here, now = mine[-1]
    gains = [one[-1][1] - values[-1] for one in others if (values := _until(one, here)) and one[-1][0] > here]
    if len(gains) < LEAST_CURVES:
        return ""
    best = max(value for one in others for _, value in one)
    # A floor under the spread: curves that happen to agree are no certainty.
    spread = max(statistics.stdev(gains), 0.1 * abs(statistics.fmean(gains)), 1e-12)
    missing = best - now - statistics.fmean(gains)
    chance = 0.5 * math.erfc(missing / spread / math.sqrt(2))
    if chance >= LEAST_CHANCE:
        return ""
    return f"its chance to beat {abs(best):.4g} is {chance:.1%}, going by how the others went on from here"
