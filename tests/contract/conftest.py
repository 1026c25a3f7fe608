"""The model and the data that lie in trainer/, whosever they are: jobs of them, and what is known about them."""

import json
import os
import pathlib

import pytest
from forkserver import ForkServer

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Steps and batches small enough for any data; every update the same bits, so that jobs can be compared.
FLAGS = ["--deterministic", "--steps_per_epoch=3", "--batch_size=8", "--warmup_steps=0", "--decay=none"]


def own_environment() -> dict[str, str]:
    """This process's environment without the model that the other tests train."""
    return {name: value for name, value in os.environ.items() if name != "TRAINYARD_EXAMPLE"}


@pytest.fixture(scope="session")
def own():
    """Starts jobs of trainer/model.py and trainer/data.py."""
    with ForkServer(own_environment()) as server:
        yield server


@pytest.fixture(scope="session")
def known(own, tmp_path_factory) -> dict:
    """What tests/contract/probe.py finds out."""
    folder = tmp_path_factory.mktemp("probe")
    setup = f"from tests.contract import probe; probe.main({str(folder / 'known.json')!r}); raise SystemExit(0)"
    job = own.start([], folder / "log.txt", setup=setup)
    assert job.wait() == 0, job.text
    return json.loads((folder / "known.json").read_text())


@pytest.fixture(scope="session")
def trained(own, known, tmp_path_factory) -> pathlib.Path:
    """The folder of a job of two epochs; skips where its data can't be read from here."""
    if known["unreachable"]:
        pytest.skip(f"trainer/data.py's data can't be read here: {known['unreachable']}")
    folder = tmp_path_factory.mktemp("trained")
    job = own.start([*FLAGS, "--epochs=2", f"--job_dir={folder}"], folder / "log.txt")
    assert job.wait() == 0, job.text
    return folder
