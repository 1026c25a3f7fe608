import pytest
from forkserver import ForkServer


@pytest.fixture(scope="session")
def forks():
    with ForkServer() as server:
        yield server
