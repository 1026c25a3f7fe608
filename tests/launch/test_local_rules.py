"""What the supervisor does when a replica ends: restarts, time-outs, preemptions asked for on the command line."""

import argparse

import pytest

from launch.local.plan import PlanError, replicas
from launch.local.preempt import Preemption, check, preemption
from launch.local.rules import Failure, decide, rules

CRASH = Failure("worker:1", 1)
TAKEN = Failure("worker:1", 143, preempted=True)


@pytest.mark.parametrize(
    ("scheduling", "failure", "before", "action"),
    [
        (None, CRASH, (0, 0), "replica"),
        (None, CRASH, (4, 0), "replica"),
        (None, CRASH, (5, 0), "job"),
        (None, CRASH, (5, 3), "fail"),
        ({"restartJobOnWorkerRestart": True}, CRASH, (0, 0), "job"),
        ({"restartJobOnWorkerRestart": True}, CRASH, (0, 3), "fail"),
        ({"disableRetries": True, "restartJobOnWorkerRestart": True}, CRASH, (0, 0), "fail"),
        (None, TAKEN, (0, 0), "replica"),
        ({"strategy": "SPOT"}, TAKEN, (0, 5), "job"),
        ({"strategy": "SPOT"}, TAKEN, (0, 6), "fail"),
        ({"restartJobOnWorkerRestart": True}, TAKEN, (0, 0), "job"),
        (None, Failure("chief", 2), (0, 0), "fail"),
        (None, Failure("chief", 127), (0, 0), "fail"),
        (None, Failure("chief", 1, again=True), (1, 0), "fail"),
        (None, Failure("chief", 139), (0, 0), "replica"),
    ],
)
def test_restarts_follow_scheduling(scheduling, failure, before, action):
    decided, sentence = decide(rules(scheduling), failure, *before)
    assert decided == action
    assert failure.name in sentence


def test_restarts_asked_for_replace_both_limits_and_the_doubt():
    patient = rules(None, restarts=1)
    assert decide(patient, Failure("chief", 1, again=True), 0, 0)[0] == "replica"
    assert decide(patient, Failure("chief", 1, again=True), 1, 1)[0] == "fail"


def test_a_timeout_is_in_seconds():
    assert rules({"timeout": "90s"}).timeout_s == 90
    with pytest.raises(PlanError, match="1h"):
        rules({"timeout": "1h"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("worker:1@20s", Preemption("worker:1", 20)),
        ("chief@2m", Preemption("chief", 120)),
        ("chief:0@1.5s", Preemption("chief", 1.5)),
        ("worker:0@500steps", Preemption("worker:0", step=500)),
    ],
)
def test_a_preemption_is_a_replica_and_a_time(text, expected):
    assert preemption(text) == expected


@pytest.mark.parametrize("text", ["worker@20s", "worker:1", "worker:1@20", "nobody:1@2s", ""])
def test_a_preemption_that_cannot_be_read_is_told(text):
    with pytest.raises(argparse.ArgumentTypeError, match="worker:1@20s"):
        preemption(text)


def test_a_preemption_of_nobody_is_told():
    everyone = replicas({"workerPoolSpecs": [{"replicaCount": 1, "containerSpec": {"imageUri": "x"}}]})
    with pytest.raises(PlanError, match="only chief"):
        check([Preemption("worker:1", 1)], everyone)
