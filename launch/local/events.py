"""What happens to a job, one thing at a time: what threads and signal handlers put in, and timers."""

import heapq
import itertools
import queue
import time
from collections.abc import Callable


class Events:
    """A queue with timers. `put` may be called from anywhere, `after` and `next` from one thread."""

    def __init__(self):
        self._queue: queue.SimpleQueue[tuple] = queue.SimpleQueue()  # put() is safe in a signal handler
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()  # two timers of one moment are never compared themselves

    def put(self, *event: object) -> None:
        """Something happened."""
        self._queue.put(event)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Call `action` in so many seconds, from within `next`."""
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), action))

    def next(self) -> tuple | None:
        """Wait for the next event; None where a timer's moment came instead."""
        wait_s = self._timers[0][0] - time.monotonic() if self._timers else None
        if wait_s is not None and wait_s <= 0:  # before events: a chatty replica must not hold a timer up
            heapq.heappop(self._timers)[2]()
            return None
        try:
            return self._queue.get(timeout=wait_s)
        except queue.Empty:
            return None
