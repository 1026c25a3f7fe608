"""The server that starts each test's jobs: TensorFlow is imported once, not for every job."""

import pytest
from forkserver import ForkServer


@pytest.fixture(scope="session")
def forks():
    with ForkServer() as server:
        yield server
