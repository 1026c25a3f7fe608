"""Waiting, told in a line: for what, how long, until when."""

import dataclasses
import random
import re
import time
from collections.abc import Callable, Iterator


@dataclasses.dataclass
class Clock:
    """Time, and how waiting is told; tests bring their own."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = lambda text: print(text, flush=True)


def wait(clock: Clock, seconds: float, why: str, left: float | None = None) -> None:
    """Sleep, with one line that says what for and until when."""
    more = f", giving up in {span(left)}" if left is not None else ""
    clock.say(f"{why}: waiting {span(seconds)}, until {time.strftime('%H:%M:%S', _clock_time(seconds))}{more}")
    clock.sleep(seconds)


def seconds(text: str) -> float:
    """`90m`, `6h`, `45s` or `2d` in seconds. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)([smhd])", text)
    found = float(match[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]] if match else 0.0
    if not 0 < found <= 30 * 86400:
        raise ValueError(f"{text!r} came; a time such as 90m or 6h is expected, at most 30d")
    return found


def growing(first: float, longest: float) -> Iterator[float]:
    """Twice as long each time, and never quite the same: jobs that failed together don't come back together."""
    while True:
        yield first * random.uniform(0.9, 1.1)
        first = min(longest, 2 * first)


def span(seconds: float) -> str:
    """`45 s`, `5 min 0 s`, `1 h 30 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min" if whole >= 3600 else f"{whole // 60} min {whole % 60} s"


def _clock_time(seconds: float) -> time.struct_time:
    return time.localtime(time.time() + seconds)
