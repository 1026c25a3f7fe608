"""The small cloud of tests/google_world.py, for the tests of preflight."""

import pytest

from tests.google_world import Google
from tests.standin import StandIn


@pytest.fixture
def google(monkeypatch):
    """That cloud, with an image registry on the same server."""
    with StandIn() as api:
        monkeypatch.setenv("TRAINYARD_REGISTRY_ENDPOINT", api.address)
        yield Google(api)
