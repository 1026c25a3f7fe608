"""Signals and time as requests."""

import ctypes
import os
import signal
import subprocess
import sys
import time

import pytest

from trainer.replicas.interrupt import PAUSE, STOP, Interrupt


class Request:
    """Stands where training has a variable."""

    value = 0.0

    def assign(self, value: float) -> None:
        self.value = value


def until(condition) -> None:
    while not condition():
        time.sleep(0.005)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_becomes_a_request_to_stop_while_the_main_thread_is_busy(number):
    with Interrupt() as interrupt:
        interrupt.attach(request := Request())
        os.kill(os.getpid(), number)
        until(lambda: request.value == STOP)
        assert interrupt.asked_to_stop
        interrupt.saved()
        assert request.value == STOP


def test_a_handler_that_native_code_put_in_its_place_is_replaced():
    ignore = ctypes.c_void_p(1)
    with Interrupt() as interrupt:
        ctypes.CDLL(None).signal(int(signal.SIGTERM), ignore)  # as TensorFlow does when it joins a cluster
        interrupt.listen()
        interrupt.attach(request := Request())
        os.kill(os.getpid(), signal.SIGTERM)
        until(lambda: request.value == STOP)


def test_time_becomes_a_request_to_save_again_and_again():
    with Interrupt() as interrupt:
        interrupt.attach(request := Request(), every_s=0.1)
        until(lambda: request.value == PAUSE)
        interrupt.saved()
        assert request.value == 0
        until(lambda: request.value == PAUSE)


def test_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    with Interrupt():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


PROGRAM = """
import sys, time
from trainer.replicas.interrupt import Interrupt
class Request:
    def assign(self, value): print("asked", value, flush=True)
with Interrupt() as interrupt:
    if "attach" in sys.argv: interrupt.attach(Request())
    print("ready", flush=True)
    time.sleep(600)
"""


def started(*arguments: str) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while process.stdout.readline().strip() != "ready":
        assert process.poll() is None
    return process


def test_before_training_a_signal_ends_the_process_with_143():
    process = started()
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 143
    assert "told to stop before training began" in process.stderr.read()


def test_a_second_ctrl_c_ends_at_once():
    process = started("attach")
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == f"asked {STOP}\n"
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert "the same command goes on" in process.stderr.read()
