"""The other workers: one that is gone or hangs, one that is slower than the rest, and stopping together."""

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable

import tensorflow as tf

from trainer.input.share import Share
from trainer.saving.state import State

EVERY = 10  # steps of an evaluation between two looks at whether somebody was told to stop
SLOW = 1.5  # times the others' median from which a worker is named


STORAGE = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError, tf.errors.AbortedError)
LOST = (
    *STORAGE,
    tf.errors.CancelledError,
    tf.errors.InternalError,
    tf.errors.FailedPreconditionError,
    tf.errors.UnknownError,
)  # what a collective operation fails with where a worker is gone


_leaving = threading.Lock()


def leave(code: int, say: Callable[[], None] = lambda: None) -> None:
    """Say why, and end this process at once. Where two threads come to it, the first one's word counts."""
    with _leaving:
        say()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def linger(until: Callable[[], bool], limit_s: float) -> None:
    """Stay until the chief is done: it may still have to fetch from here what it needs of the last collective."""
    end = time.monotonic() + limit_s
    while not until() and time.monotonic() < end:
        time.sleep(0.2)


def explain(said: str, peer_timeout_s: float) -> str:
    """One sentence for a peer that was lost, from what was seen of it."""
    return (
        f"another worker is gone or has not answered for --peer_timeout_s={peer_timeout_s:g} seconds ({said}); "
        "its own log says why. All workers must start again: the same command goes on from the last checkpoint "
        "(on Vertex AI: scheduling.restartJobOnWorkerRestart: true)"
    )


class Watch:
    """Called after every step of an evaluation; whether to stop it, the same at all workers.

    Steps of an evaluation wait for nobody, so the time that a worker takes for them is its own speed.
    """

    def __init__(self, state: State, share: Share, asked: Callable[[], bool]):
        self.state, self.share, self.asked = state, share, asked
        self.own_s, self._since, self._step = 0.0, time.monotonic(), 0

    def __call__(self, last: bool = False) -> bool:
        """`last`: after the last step."""
        if self.share.workers == 1:
            return self.asked()
        self._step += 1
        if self._step % EVERY and not last:
            return False
        self.own_s += time.monotonic() - self._since
        stop = self.state.gather(float(self.asked()), self.share)
        self._since = time.monotonic()
        return max(stop) > 0

    def warn_of_slow(self, warn: Callable[[str], None]) -> None:
        """Name the workers that hold the others back. Every worker calls it."""
        if self.share.workers == 1:
            return
        seconds = self.state.gather(self.own_s, self.share)
        slow = slow_workers(seconds)
        for index in slow:
            others = statistics.median(s for other, s in enumerate(seconds) if other not in slow)
            warn(
                f"worker {index} (0 is the chief) took {seconds[index]:.1f} s for its share of the evaluation, the "
                f"others {others:.1f} s: every step waits for it. Look at its machine: another type, a busy "
                "neighbour, a slower disk or network"
            )


def slow_workers(seconds: list[float]) -> list[int]:
    """The workers that took SLOW times the median of the others and half a second more."""
    found = []
    for index, own in enumerate(seconds):
        others = statistics.median(seconds[:index] + seconds[index + 1 :])
        if own > SLOW * others and own > others + 0.5:
            found.append(index)
    return found
