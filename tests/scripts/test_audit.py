"""The audit with the real pip-audit, against a stand-in for OSV. Edge: OSV itself is not asked here."""

import pathlib
import runpy

import pytest

from tests.standin import StandIn, failure

ROOT = pathlib.Path(__file__).resolve().parents[2]
audit = runpy.run_path(str(ROOT / "scripts/audit.py"))["main"]
HASH = "sha256:" + "0" * 64
LOCK = f"numpy==2.3.0 \\\n    --hash={HASH}\nrich==14.0.0 \\\n    --hash={HASH}\n"


@pytest.fixture
def lock(tmp_path):
    path = tmp_path / "some.lock"
    path.write_text(LOCK)
    return path


def vulnerable(call):
    """OSV's answer: numpy is in trouble, nothing else is."""
    if call.body["package"]["name"] != "numpy":
        return {}
    events = {"events": [{"introduced": "0"}, {"fixed": "2.3.1"}], "type": "ECOSYSTEM"}
    affected = {"package": {"name": "numpy", "ecosystem": "PyPI"}, "ranges": [events]}
    return {
        "vulns": [{"id": "PYSEC-2026-1", "published": "2026-01-01T00:00:00Z", "summary": "bad", "affected": [affected]}]
    }


def test_a_vulnerable_package_is_named_with_the_version_that_mends_it(lock, capsys):
    with StandIn() as osv:
        osv.route("POST", "/v1/query", vulnerable)
        assert audit([str(lock), f"--osv_url={osv.address}/v1/query"]) == 1
        printed = capsys.readouterr().out
        assert "some.lock: 2 packages, 1 with" in printed
        assert "numpy 2.3.0  PYSEC-2026-1  fixed in 2.3.1" in printed
        assert audit([str(lock), f"--osv_url={osv.address}/v1/query", "--ignore=PYSEC-2026-1"]) == 0
    assert {call.body["package"]["name"] for call in osv.calls} == {"numpy", "rich"}


def test_a_database_that_does_not_answer_is_not_a_clean_bill(lock, capsys):
    with StandIn() as osv:
        osv.route("POST", "/v1/query", lambda call: failure(500, "INTERNAL", "down"))
        assert audit([str(lock), f"--osv_url={osv.address}/v1/query"]) == 2
    assert "could not be asked" in capsys.readouterr().err


@pytest.mark.slow
def test_a_lock_of_this_project_can_be_read(capsys):
    with StandIn() as osv:
        osv.route("POST", "/v1/query", lambda call: {})
        assert audit([str(ROOT / "requirements/tpu.lock"), f"--osv_url={osv.address}/v1/query"]) == 0
        asked = {call.body["package"]["name"] for call in osv.calls}
    assert {"tensorflow-tpu", "keras", "libtpu"} <= asked
