"""Who waits for ever gives up with what was seen; who goes on doesn't."""

import socket
import threading

from trainer.replicas.cluster import Cluster
from trainer.replicas.watchdog import FIRST, Watchdog

HANG_S = 120


class Heard:
    """Notes what a watchdog gives up with."""

    def __init__(self):
        self.said, self.event = [], threading.Event()

    def __call__(self, text):
        self.said.append(text)
        self.event.set()


def pair(**kwargs):
    """The chief of two workers, and the socket that its peer listens at."""
    peer = socket.create_server(("127.0.0.1", 0))
    addresses = {"chief": ["127.0.0.1:1"], "worker": [f"127.0.0.1:{peer.getsockname()[1]}"]}
    return Cluster(addresses=addresses, **kwargs), peer


def test_a_peer_that_ends_is_named():
    here, peer = pair()
    heard = Heard()
    watchdog = Watchdog(here, 60, heard).start()
    peer.close()
    assert heard.event.wait(HANG_S)
    assert heard.said[0].startswith("worker:0 has ended")
    watchdog.dismiss()


def test_a_wait_without_progress_is_given_up_and_one_that_goes_on_is_not():
    here, peer = pair()
    heard, steps = Heard(), iter(range(10**9))
    with peer:
        watchdog = Watchdog(here, 0.2, heard)
        watchdog._watch = None  # the peer listens but accepts nobody; here it is about the waits
        watchdog.start()
        threading.Thread(target=watchdog._look, daemon=True).start()
        watchdog.progress = lambda: next(steps)
        with watchdog.waits("train"):
            assert not heard.event.wait(0.2 * FIRST + 1)
        watchdog.progress = lambda: -1
        with watchdog.waits("train"):
            assert heard.event.wait(HANG_S)
        assert heard.said[0] == "nothing went on for 0.2 seconds"
        watchdog.dismiss()


def test_the_chief_may_take_its_time_to_save():
    here, peer = pair()
    heard = Heard()
    with peer:
        watchdog = Watchdog(here, 0.1, heard)
        threading.Thread(target=watchdog._look, daemon=True).start()
        with watchdog.waits("save"):
            assert not heard.event.wait(0.1 * FIRST + 1)
        watchdog.dismiss()


def test_after_the_end_peers_may_go():
    here, peer = pair()
    heard = Heard()
    watchdog = Watchdog(here, 60, heard).start()
    watchdog.dismiss()
    peer.close()
    assert not heard.event.wait(3)


def test_one_alone_looks_at_nobody():
    heard = Heard()
    watchdog = Watchdog(Cluster(), 0.01, heard).start()
    with watchdog.waits("train"):
        assert not heard.event.wait(1)


def test_a_worker_looks_at_the_chief():
    here, peer = pair()
    peer.close()
    assert set(Watchdog(here, 1, print)._watch.peers) == {"worker:0"}
    there = Cluster(role="worker", addresses=here.addresses)
    assert set(Watchdog(there, 1, print)._watch.peers) == {"chief:0"}
