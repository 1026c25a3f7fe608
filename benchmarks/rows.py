"""A comparison is a row: name, ratio, what is wanted of it, and whether it holds."""

import dataclasses
import json
import pathlib
import random
import statistics
from collections.abc import Callable, Mapping

LATEST = pathlib.Path(__file__).with_name("latest.json")


@dataclasses.dataclass(frozen=True)
class Row:
    """`ratio` is ours over the other's; `at_least` says from which side `wanted` bounds it."""

    name: str
    ratio: float
    wanted: float
    at_least: bool = True
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether the wanted ratio is reached."""
        return self.ratio >= self.wanted if self.at_least else self.ratio <= self.wanted

    def line(self) -> str:
        """One line of the printed table."""
        sign = ">=" if self.at_least else "<="
        mark = "ok  " if self.ok else "MISS"
        return f"{mark}  {self.ratio:7.3f}  {sign} {self.wanted:<5}  {self.name:58} {self.detail}"


def interleaved(contenders: Mapping[str, Callable[[], float]], repeats: int = 5) -> dict[str, list[float]]:
    """Each contender's figure, `repeats` times, in turn: a machine that slows down slows all of them.

    The order is another each time, since who comes after whom matters too.
    """
    figures: dict[str, list[float]] = {name: [] for name in contenders}
    order, shuffled = list(contenders), random.Random(0)
    for _ in range(repeats):
        shuffled.shuffle(order)
        for name in order:
            figures[name].append(contenders[name]())
    return figures


def ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios of neighbouring runs."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def save(rows: list[Row]) -> None:
    """Merge the rows into latest.json by name."""
    known = {row["name"]: row for row in json.loads(LATEST.read_text())} if LATEST.exists() else {}
    for row in rows:
        known[row.name] = {"name": row.name, "ratio": round(row.ratio, 4), "wanted": row.wanted, "ok": row.ok}
    LATEST.write_text(json.dumps(list(known.values()), indent=1) + "\n")
