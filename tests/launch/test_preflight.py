"""Preflight as a whole, against a small cloud on loopback: all fine, slow, without an account, from the shell."""

import json
import subprocess
import sys

from launch import project
from launch.preflight import numerics, strategy
from launch.preflight.job import Job
from launch.preflight.probe import run
from launch.preflight.request import Trouble
from tests import google_world
from tests.google_world import VARIABLES
from tests.launch.preflight_world import HANG_S, ONLINE, bad, look
from tests.standin import Late


def test_all_is_fine_where_all_is_there(google):
    found = look(google, "gpu", *ONLINE)
    assert bad(found) == {}, found
    assert {"image in registry", "act as", "bucket access", "perimeter", "quota nvidia_l4_gpus"} <= found.keys()
    assert not google.api.unexpected
    asked = (":testIamPermissions", ":getIamPolicy", ":getAncestry", ":generateAccessToken", "/entries:list")
    assert [call.path for call in google.api.calls if call.method != "GET" and not call.path.endswith(asked)] == []


def test_slow_answers_end_as_unknown_and_hold_up_nothing_else(google):
    google.api.route("GET", "/v1beta1/.*", lambda call: Late(HANG_S, {}))
    google.api.route("GET", "/storage/.*", lambda call: Late(HANG_S, {}))
    found = look(google, "gpu", *ONLINE, timeout_s=4)
    assert found["quota"].status == "unknown"
    assert found["bucket"].status == "unknown"
    assert found["submit"].status == "ok"


def test_answers_of_no_known_shape_are_unknown(google):
    for method in ("GET", "POST"):
        google.api.route(method, "/.*", lambda call: {"surprise": [1, None, {"a": "b"}]})
    found = look(google, "gpu", *ONLINE)
    assert "failure" not in {found[name].status for name in ("quota nvidia_l4_gpus", "perimeter") if name in found}


def test_without_an_account_the_offline_checks_are_there_and_the_way_to_sign_in(google):
    file = str(project.ROOT / "configs" / "gpu.yaml")

    def nobody(timeout_s):
        raise Trouble("credentials", "You do not currently have an active account selected.")

    probes = [probe for room in (numerics, strategy, *ONLINE) for probe in room.PROBES]
    checks = run(probes, lambda _: Job.read(file, VARIABLES), nobody, HANG_S)
    found = {check.name: check for check in checks}
    assert (found["account"].status, found["account"].command) == ("failure", "gcloud auth login")
    assert {"numbers", "strategy", "account"} <= found.keys()
    assert not google.api.calls


def test_the_verb_with_the_real_gcloud(google, tmp_path):
    """`python -m launch preflight FILE --json`: gcloud says who asks, the rest is asked over loopback."""
    environment = google.api.environment(tmp_path / "gcloud", google_world.PROJECT)
    environment["TRAINYARD_REGISTRY_ENDPOINT"] = google.api.address
    pairs = [f"--set={name}={value}" for name, value in VARIABLES.items()]
    command = [sys.executable, "-m", "launch", "preflight", "configs/gpu.yaml", "--json", "--timeout_s=300", *pairs]
    done = subprocess.run(command, cwd=project.ROOT, env=environment, capture_output=True, text=True, timeout=600)
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert done.returncode == 0, done.stdout
    assert checks["account"]["status"] == checks["quota nvidia_l4_gpus"]["status"] == "ok"
    assert checks["memory"]["status"] == "ok"
    assert {check["subject"] for check in checks.values()} == {
        "packages", "strategy", "permissions", "security", "memory", "numerics", "capacity",
    }  # fmt: skip
    assert not google.api.unexpected


def test_a_file_that_is_none_is_exit_code_2(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("{")
    command = [sys.executable, "-m", "launch", "preflight", str(path), "--offline"]
    done = subprocess.run(command, cwd=project.ROOT, capture_output=True, text=True, timeout=600)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
