"""The client: what each of Google's answers means, and that none of them holds it up."""

import json
import time

import pytest

from launch.preflight.account import Account
from launch.preflight.cloud import Cloud, override
from launch.preflight.request import Trouble
from tests.google_world import PERIMETER_DENIAL, RATE_LIMIT
from tests.standin import Late, StandIn, failure

FOREVER_S = 600


@pytest.fixture
def api():
    with StandIn() as api:
        yield api


def cloud(api: StandIn, for_s: float = FOREVER_S) -> Cloud:
    overrides = dict.fromkeys(("storage", "serviceusage", "aiplatform"), f"{api.address}/")
    return Cloud(Account("token", "me@example.com", "yard", "", overrides), time.monotonic() + for_s, "us-central1")


def trouble(api: StandIn, for_s: float = FOREVER_S) -> Trouble:
    with pytest.raises(Trouble) as raised:
        cloud(api, for_s).get("storage", "b/one")
    return raised.value


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (failure(401, "UNAUTHENTICATED", "Request had invalid authentication credentials."), "credentials"),
        (failure(403, "PERMISSION_DENIED", "me@example.com does not have storage.buckets.get access"), "denied"),
        (PERIMETER_DENIAL, "perimeter"),
        (failure(403, "PERMISSION_DENIED", "403: Request violates VPC Service Controls."), "perimeter"),
        (failure(404, "NOT_FOUND", "The specified bucket does not exist."), "missing"),
        (RATE_LIMIT, "limited"),
        (failure(500, "INTERNAL", "Internal error encountered."), "other"),
        ((502, ["not", "an", "object"]), "other"),
    ],
)
def test_an_error_of_googles_is_told_apart(api, answer, kind):
    api.route("GET", "/storage/v1/b/one", lambda call: answer)
    assert trouble(api).kind == kind


def test_an_api_that_is_off_is_told_by_its_reason(api):
    status, body = failure(403, "PERMISSION_DENIED", "Cloud Storage API is off")
    body["error"]["details"] = [{"reason": "SERVICE_DISABLED", "domain": "googleapis.com"}]
    api.route("GET", "/storage/v1/b/one", lambda call: (status, body))
    assert trouble(api).kind == "disabled"


def test_an_answer_that_is_no_object_is_trouble_not_a_crash(api):
    api.route("GET", "/storage/v1/b/one", lambda call: (200, ["a", "list"]))
    assert "no object" in trouble(api).detail


def test_a_rate_limit_is_tried_once_more(api):
    answers = [RATE_LIMIT, (200, {"name": "one"})]
    api.route("GET", "/storage/v1/b/one", lambda call: answers.pop(0))
    assert cloud(api).get("storage", "b/one") == {"name": "one"}


def test_a_slow_answer_is_not_waited_for(api):
    api.route("GET", "/storage/v1/b/one", lambda call: Late(FOREVER_S, {}))
    assert trouble(api, for_s=1).kind == "late"


def test_nothing_is_asked_after_the_deadline(api):
    assert trouble(api, for_s=0).kind == "late"
    assert not api.calls


def test_nobody_there_is_unreachable():
    with StandIn() as api:
        pass
    assert trouble(api).kind == "unreachable"


def test_the_same_is_asked_once_and_errors_are_remembered_too(api):
    api.route("GET", "/storage/v1/b/one", lambda call: failure(404, "NOT_FOUND", "no"))
    asking = cloud(api)
    for _ in range(3):
        with pytest.raises(Trouble):
            asking.get("storage", "b/one")
    assert len(api.calls) == 1


def test_overrides_work_as_gcloud_has_them():
    storage = "https://storage.googleapis.com/storage/v1/"
    assert override(storage, "") == storage
    assert override(storage, "http://127.0.0.1:1/") == "http://127.0.0.1:1/storage/v1/"
    assert override(storage, "http://127.0.0.1:1/other/v1") == "http://127.0.0.1:1/other/v1/"


def test_jobs_are_asked_of_their_region(api):
    plain = Cloud(Account("t", "", "yard", "", {}), time.monotonic(), "europe-west4")
    assert plain.url("aiplatform", "v1/x") == "https://europe-west4-aiplatform.googleapis.com/v1/x"
    assert cloud(api).url("aiplatform", "v1/x", {"a": ["b", "c"], "d": None}) == f"{api.address}/v1/x?a=b&a=c"


def test_a_question_is_posted_as_json(api):
    api.route("POST", "/v1/x", lambda call: {"got": call.body})
    assert cloud(api).post("serviceusage", "v1/x", {"a": 1}) == {"got": {"a": 1}}
    assert json.loads(json.dumps(api.calls[0].body)) == {"a": 1}
