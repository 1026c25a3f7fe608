"""Ends a worker of a synchronous job that would wait for ever: for a peer that is gone, or for one that hangs.

TensorFlow's collectives have a time-out of their own, which isn't used: each collective then keeps a thread asleep
until its time is over, thousands of them in a fast loop (BaseCollectiveExecutor::ExecuteAsync schedules a closure that
sleeps), and the processes starve. Here one thread looks at the peers' addresses and another at the waits.
"""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator

from trainer.replicas import lookout
from trainer.replicas.cluster import Cluster

FIRST = 10  # times the time-out: what a first wait of its kind may take, which is traced and compiled
PATIENT = ("save",)  # the chief writes a checkpoint, however large: the others wait as long as it is there


class Watchdog:
    """Looks after the waits of one worker for the others.

    Args:
        here: this replica; alone in its job, it waits for nobody and nothing is looked at.
        timeout_s: how long a peer may give no answer, and a wait may take.
        give_up: called by a thread, once, with what was seen; it ends the process.
    """

    def __init__(self, here: Cluster, timeout_s: float, give_up: Callable[[str], None]):
        self.timeout_s, self._give_up = timeout_s, give_up
        self.progress: Callable[[], int] = lambda: 0  # what changes during a wait shows that it goes on
        self._known: set[str] = set()
        self._waiting: tuple[float, float] | None = None  # since when, for how long at most
        self._closed, self._lock = threading.Event(), threading.Lock()
        self._watch: lookout.Watch | None = None
        if here.workers > 1:
            self._watch = lookout.Watch(_peers(here), timeout_s, self._gone, were_there=True)

    def start(self) -> "Watchdog":
        """Begin to look: all peers are there."""
        if self._watch:
            self._watch.start()
            threading.Thread(target=self._look, name="watchdog", daemon=True).start()
        return self

    def dismiss(self) -> None:
        """From now on peers may go."""
        self._closed.set()
        if self._watch:
            self._watch.close()

    @contextlib.contextmanager
    def waits(self, kind: str) -> Iterator[None]:
        """Around what needs all workers to go on."""
        self._wait(math.inf if kind in PATIENT else self.timeout_s * (1 if kind in self._known else FIRST))
        try:
            yield
        finally:
            with self._lock:
                self._waiting = None
            self._known.add(kind)

    def _wait(self, limit_s: float) -> None:
        with self._lock:
            self._waiting = time.monotonic(), limit_s

    def _look(self) -> None:
        seen = self.progress()
        while not self._closed.wait(min(lookout.LOOK_EVERY_S, self.timeout_s / 4)):
            now = self.progress()
            with self._lock:
                if self._waiting is None:
                    continue
                since, limit = self._waiting
                if now != seen:
                    seen, self._waiting = now, (time.monotonic(), self.timeout_s)
                    continue
            if time.monotonic() - since > limit and not self._closed.is_set():
                self._give_up(f"nothing went on for {limit:g} seconds")

    def _gone(self, name: str) -> None:
        self._give_up(f"{name} has ended or its machine gives no answer")


def _peers(here: Cluster) -> dict[str, str]:
    """name -> address: all others for the chief, the chief for each other. Who loses one tells the rest by ending."""
    everyone = [
        (f"{role}:{index}", host)
        for role in ("chief", "worker")
        for index, host in enumerate(here.addresses.get(role, []))
    ]
    return dict(everyone[1:] if here.is_chief else everyone[:1])
