"""The stand-in for Google's APIs: its routes, what it keeps of calls, and a real gcloud that talks to it."""

import json
import shutil
import subprocess
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.standin import StandIn, failure


def ask(api, method, path, body=None):
    sent = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(api.address + path, sent, method=method)) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        return error.code, json.load(error)


def test_routes_see_the_call_and_newer_ones_win():
    with StandIn() as api:
        api.route("POST", "/v1/(?P<name>[a-z]+)", lambda call: failure(409, "ALREADY_EXISTS", "there"))
        api.route("POST", "/v1/(?P<name>[a-z]+)", lambda call: {"name": call["name"], "sent": call.body})
        assert ask(api, "POST", "/v1/things?size=2", {"a": 1}) == (200, {"name": "things", "sent": {"a": 1}})
    assert api.calls[0].query == {"size": ["2"]}
    assert not api.unexpected


def test_a_call_without_a_route_is_refused_and_kept():
    with StandIn() as api:
        status, answer = ask(api, "GET", "/v1/nothing")
    assert status == 400
    assert "GET /v1/nothing" in answer["error"]["message"]
    assert [call.path for call in api.unexpected] == ["/v1/nothing"]


@pytest.mark.skipif(not shutil.which("gcloud"), reason="gcloud is not installed")
def test_a_real_gcloud_talks_to_it(tmp_path):
    with StandIn() as api:
        api.route("GET", "/v1/projects/(?P<id>[a-z]+)", lambda call: {"projectNumber": "7"})
        done = subprocess.run(
            ["gcloud", "projects", "describe", "mine", "--format=value(projectNumber)"],
            env=api.environment(tmp_path),
            capture_output=True,
            text=True,
        )
    assert (done.stdout.strip(), done.returncode) == ("7", 0), done.stderr
    assert not api.unexpected
    assert not api.writes()
