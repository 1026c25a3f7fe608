"""What doesn't fit what is there is one sentence; what does is chosen."""

import pytest

from trainer.replicas.cluster import Cluster
from trainer.settings import Settings
from trainer.strategies import strategy
from trainer.strategies.communication import communication_options
from trainer.strategies.devices import Devices, StrategyError

ONE, FOUR = Devices("CPU", ("/cpu:0",)), Devices("GPU", tuple(f"/gpu:{i}" for i in range(4)))
WORKERS = {"chief": ["a:1"], "worker": ["b:1"]}
SERVERS = {**WORKERS, "ps": ["c:1"]}


@pytest.mark.parametrize(
    ("cluster", "devices", "name"),
    [
        (Cluster(), ONE, "one_device"),
        (Cluster(), FOUR, "mirrored"),
        (Cluster(addresses=WORKERS), FOUR, "multi_worker"),
        (Cluster(addresses=SERVERS), ONE, "parameter_server"),
        (Cluster(accelerator="TPU_V3", accelerator_count=8), ONE, "tpu"),
        (Cluster(role="evaluator", addresses=SERVERS), ONE, "one_device"),
        (Cluster(role="evaluator", addresses=WORKERS), FOUR, "mirrored"),
    ],
)
def test_auto_takes_what_is_there(cluster, devices, name):
    assert strategy.choose(Settings(), cluster, devices) == name


@pytest.mark.parametrize(
    ("asked", "addresses", "sentence"),
    [
        ("multi_worker", {}, "TF_CONFIG is not set"),
        ("multi_worker", SERVERS, "has no parameter servers, and the cluster has 1"),
        ("mirrored", WORKERS, "the cluster has 2 workers: use --strategy=multi_worker"),
        ("central_storage", SERVERS, "has no parameter servers"),
        ("parameter_server", WORKERS, "needs parameter servers (worker pool 2); there is {'chief': 1, 'worker': 1}"),
        ("parameter_server", {"chief": ["a:1"], "ps": ["c:1"]}, "workers (worker pool 1)"),
    ],
)
def test_what_does_not_fit_is_a_sentence(asked, addresses, sentence):
    with pytest.raises(StrategyError, match="--strategy=" + asked) as caught:
        strategy.choose(Settings(strategy=asked), Cluster(addresses=addresses), ONE)
    assert sentence in str(caught.value)


def test_nccl_needs_gpus_and_a_ring_needs_workers():
    with pytest.raises(StrategyError, match="nccl needs GPUs"):
        communication_options(Settings(communication="nccl"), ONE)
    with pytest.raises(StrategyError, match="ring goes from worker to worker"):
        strategy.make_strategy(Settings(communication="ring", strategy="mirrored"), Cluster(), ONE)


@pytest.mark.parametrize("role", ["worker", "ps"])
def test_workers_and_servers_of_an_asynchronous_job_serve(role):
    here = Cluster(role=role, addresses=SERVERS)
    assert strategy.needs_server(Settings(), here)
    assert not strategy.needs_server(Settings(), Cluster(role="worker", addresses=WORKERS))


def test_several_workers_say_that_one_stand_in_of_each_trains():
    four = Devices("CPU", tuple(f"/cpu:{i}" for i in range(4)))
    workers, alone = Cluster(addresses=WORKERS), Cluster()
    assert strategy.stand_in_note(Settings(), workers, four).endswith("one CPU device of each worker: 1 of 4")
    assert "1 of" not in strategy.stand_in_note(Settings(), alone, four)
