"""Ctrl-C, SIGTERM and a closed terminal, as a call: a job stops gently at the first, at once at the second."""

import contextlib
import signal
from collections.abc import Callable, Iterator

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def calling(stop: Callable[[str], None]) -> Iterator[None]:
    """Within it, each of these signals calls `stop` with the reason, in the main thread."""

    def handle(number: int, frame: object) -> None:
        stop(f"stopped by {signal.Signals(number).name}")

    before = {number: signal.signal(number, handle) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
