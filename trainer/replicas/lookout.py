"""The other processes of a job: wait until they are there, notice when one is gone.

A process of a TensorFlow cluster listens on its address as long as it lives, so a refused connection says that it has
ended, and no answer at all that its machine is gone. That is seen in seconds and needs no port of its own; TensorFlow's
own collectives may wait for a lost peer for ever.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence

LOOK_EVERY_S = 1.0


def answers(address: str, timeout_s: float = 5.0) -> bool | None:
    """Whether host:port accepts a connection: False where it is refused, None where nothing answers at all."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout_s):
            return True
    except ConnectionRefusedError:
        return False
    except OSError:
        return None


def wait_for(addresses: Sequence[str], say: Callable[[str], None] = print, every_s: float = 30.0) -> None:
    """Until every address answers; says now and then which doesn't."""
    said = time.monotonic()
    while missing := [address for address in addresses if not answers(address)]:
        if time.monotonic() - said > every_s:
            said = time.monotonic()
            say(f"waiting for {', '.join(missing[:3])}{' and more' if len(missing) > 3 else ''} to start")
        time.sleep(LOOK_EVERY_S)


class Watch:
    """A thread that calls `lost(name)` once a peer that was there has gone.

    Args:
        peers: name -> host:port of those to look after.
        timeout_s: how long one may give no answer; one that refuses two connections in a row has ended.
        lost: told the name; by default nothing more is done.
        were_there: the peers are known to have been there, whether or not they answer a first time.
    """

    def __init__(
        self, peers: dict[str, str], timeout_s: float, lost: Callable[[str], None], *, were_there: bool = False
    ):
        self.peers, self.timeout_s, self.lost = peers, timeout_s, lost
        self._seen = dict.fromkeys(peers, time.monotonic()) if were_there else {}  # name -> when it last answered
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look, name="peers", daemon=True)

    def start(self) -> "Watch":
        """Begin to look."""
        self._thread.start()
        return self

    def close(self) -> None:
        """From now on peers may go."""
        self._closed.set()

    def _look(self) -> None:
        seen = self._seen
        refused: dict[str, int] = {}
        while not self._closed.wait(LOOK_EVERY_S):
            for name, address in self.peers.items():
                answer = answers(address, min(5.0, self.timeout_s))
                now = time.monotonic()
                if answer:
                    seen[name], refused[name] = now, 0
                elif name in seen:
                    refused[name] = refused.get(name, 0) + 1 if answer is False else 0
                    if (refused[name] >= 2 or now - seen[name] > self.timeout_s) and not self._closed.is_set():
                        self.lost(name)
                        return


_stands: list[socket.socket] = []


def stand_at(address: str) -> None:
    """Answer on this process's own address until it ends, where TensorFlow doesn't listen there itself."""
    if answers(address):
        return
    port = address.rpartition(":")[2]
    listener = socket.create_server(("", int(port)), reuse_port=False)
    listener.listen(128)
    _stands.append(listener)
    threading.Thread(target=_answer, args=(listener,), name="lookout", daemon=True).start()


def _answer(listener: socket.socket) -> None:
    while True:
        try:
            listener.accept()[0].close()
        except OSError:
            return
