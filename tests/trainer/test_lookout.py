"""A process that listens is there; one that stops is noticed."""

import socket
import threading

from trainer.replicas import lookout

HANG_S = 120


def test_an_address_answers_while_somebody_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert lookout.answers(address)
    assert lookout.answers(address) is False


def test_a_peer_that_goes_is_named_and_one_that_never_came_is_not():
    server = socket.create_server(("127.0.0.1", 0))
    with socket.create_server(("127.0.0.1", 0)) as other:
        never = f"127.0.0.1:{other.getsockname()[1]}"
    here = f"127.0.0.1:{server.getsockname()[1]}"
    lost, names, seen = threading.Event(), [], threading.Event()

    def accept():
        server.accept()[0].close()
        seen.set()

    threading.Thread(target=accept, daemon=True).start()
    watch = lookout.Watch({"chief": here, "never": never}, 30, lambda name: (names.append(name), lost.set())).start()
    assert seen.wait(HANG_S)
    server.close()
    assert lost.wait(HANG_S)
    assert names == ["chief"]
    watch.close()


def test_a_peer_known_to_have_been_there_is_missed_though_it_never_answered():
    with socket.create_server(("127.0.0.1", 0)) as ended:
        address = f"127.0.0.1:{ended.getsockname()[1]}"
    lost = threading.Event()
    watch = lookout.Watch({"chief": address}, 30, lambda _: lost.set(), were_there=True).start()
    assert lost.wait(HANG_S)
    watch.close()


def test_a_stand_answers_at_its_address():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    lookout.stand_at(address)
    assert lookout.answers(address)
