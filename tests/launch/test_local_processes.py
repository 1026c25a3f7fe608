"""A replica as a process group: its end is told once, whatever is sent to it meanwhile."""

import os
import queue
import subprocess
import sys

import pytest

from launch.local import processes


@pytest.fixture
def start():
    """(its queue of exit codes, the replica) of a program."""
    begun = []

    def start(code):
        popen = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True
        )
        begun.append(popen)
        ended = queue.Queue()
        return ended, processes.Process(popen, lambda line: None, ended.put)

    yield start
    for popen in begun:
        popen.kill()
        popen.wait()
        popen.stdout.close()


def test_a_replica_that_ends_while_it_is_told_to_is_heard_of(start, monkeypatch):
    wait, handles = os.waitid, queue.Queue()

    def told_between(kind, pid, options):
        wait(kind, pid, options)  # it has ended, and nobody has reaped it
        handles.get().terminate()
        return wait(kind, pid, options)

    monkeypatch.setattr(processes.os, "waitid", told_between)
    ended, handle = start("raise SystemExit(7)")
    handles.put(handle)
    assert ended.get(timeout=60) == 7


def test_nothing_is_sent_to_a_process_id_that_may_be_another_s_by_now(start, monkeypatch):
    ended, handle = start("pass")
    assert ended.get(timeout=60) == 0
    sent = []
    monkeypatch.setattr(processes.os, "kill", lambda *what: sent.append(what))
    monkeypatch.setattr(processes.os, "killpg", lambda *what: sent.append(what))
    handle.terminate()
    handle.kill()
    assert sent == []


def test_a_signal_s_exit_code_is_the_shell_s(start):
    ended, handle = start("import time; time.sleep(3600)")
    handle.terminate()
    assert ended.get(timeout=60) == 143


def test_ports_are_free_and_differ():
    assert len(set(processes.free_ports(20))) == 20
