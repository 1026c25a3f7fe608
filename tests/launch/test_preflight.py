"""Preflight against a small cloud on loopback: all fine first, then one thing after the other wrong."""

import datetime
import json
import re
import subprocess
import sys

import pytest

from launch import project
from launch import rehearsed as rehearsals
from launch.preflight import (
    buckets,
    capacity,
    memory,
    numerics,
    packages,
    permissions,
    reservations,
    security,
    strategy,
)
from launch.preflight.cloud import Account, Trouble
from launch.preflight.job import Job
from launch.preflight.probe import run
from tests import google_world
from tests.google_world import AGENT, BUCKET, DENIED, NUMBER, PERIMETER_DENIAL, RUNS_AS, VARIABLES, Google, perimeter
from tests.shipped import CONFIGS
from tests.standin import APIS, Late, StandIn

HANG_S = 300
ONLINE = (packages, permissions, buckets, security, capacity, reservations)


@pytest.fixture
def google(monkeypatch):
    with StandIn() as api:
        monkeypatch.setenv("TRAINYARD_REGISTRY_ENDPOINT", api.address)
        yield Google(api)


def look(google, config, *rooms, timeout_s=HANG_S, path=None, **changed):
    """The findings of some rooms for one of the configs, as {name: check}; later ones of a name win if worse."""
    file = str(path or project.ROOT / "configs" / f"{config}.yaml")
    variables = {**project.variables(file, VARIABLES | changed)}
    overrides = dict.fromkeys(APIS, f"{google.api.address}/") if google else {}
    account = Account("token", "me@example.com", google_world.PROJECT, "", overrides)
    probes = [probe for room in rooms for probe in room.PROBES]
    checks = run(probes, lambda _: Job.read(file, variables), lambda _: account, timeout_s)
    order = ("ok", "unknown", "warning", "failure")
    found = {}
    for check in sorted(checks, key=lambda check: order.index(check.status)):
        found[check.name] = check
    return found


def bad(found):
    return {name: check.status for name, check in found.items() if check.status != "ok"}


def test_all_is_fine_where_all_is_there(google):
    found = look(google, "gpu", *ONLINE)
    assert bad(found) == {}, found
    assert {"image in registry", "act as", "bucket access", "perimeter", "quota nvidia_l4_gpus"} <= found.keys()
    assert not google.api.unexpected
    asked = (":testIamPermissions", ":getIamPolicy", ":getAncestry", ":generateAccessToken", "/entries:list")
    assert [call.path for call in google.api.calls if call.method != "GET" and not call.path.endswith(asked)] == []


# packages


def test_an_image_that_is_not_there(google):
    check = look(google, "gpu", packages, IMAGE=google_world.IMAGE[:-1] + "2")["image in registry"]
    assert (check.status, check.command) == ("failure", "make build-gpu push")


def test_nothing_built_yet_is_told_without_asking(google):
    file = str(project.ROOT / "configs" / "tpu.yaml")
    variables = {name: value for name, value in VARIABLES.items() if name != "IMAGE"}
    job = Job.read(file, variables)
    (check,) = packages.names(job)
    assert (check.status, check.command) == ("failure", "make build-tpu push")


def test_a_tag_may_move(google):
    google.platforms = ["amd64"]
    check = look(google, "gpu", packages, IMAGE="us-central1-docker.pkg.dev/yard/trainyard/digits:latest")["image"]
    assert check.status == "warning"


def test_an_arm_image(google):
    google.platforms = ["arm64"]
    assert look(google, "gpu", packages)["image platform"].status == "failure"


@pytest.mark.parametrize(
    ("config", "label", "status"), [("gpu", "cpu", "failure"), ("cpu", "gpu", "warning"), ("tpu", "gpu", "failure")]
)
def test_an_image_for_another_accelerator(google, config, label, status):
    google.labels["org.trainyard.accelerator"] = label
    assert look(google, config, packages)["image accelerator"].status == status


def test_another_tensorflow_than_the_lock(google):
    google.labels["org.trainyard.tensorflow"] = "2.19.0"
    check = look(google, "gpu", packages)["image TensorFlow"]
    assert check.status == "failure"
    assert packages.locked_tensorflow("gpu") in check.found


def test_somebody_elses_image_has_no_labels(google):
    google.labels = {}
    found = look(google, "gpu", packages)
    assert (found["image accelerator"].status, found["image TensorFlow"].status) == ("unknown", "unknown")


def test_a_reducers_image_is_googles_own(google):
    assert bad(look(google, "reduction_server", packages)) == {}


# permissions


def test_no_permission_to_submit(google):
    google.permissions.discard("aiplatform.customJobs.create")
    check = look(google, "gpu", permissions)["submit"]
    assert check.status == "failure"
    assert "--member=user:me@example.com --role=roles/aiplatform.user" in check.command
    assert look(google, "tune", permissions)["submit"].status == "ok"


def test_no_permission_to_act_as(google):
    google.act_as = []
    check = look(google, "gpu", permissions)["act as"]
    assert check.status == "failure"
    assert check.command.startswith(f"gcloud iam service-accounts add-iam-policy-binding {RUNS_AS} ")


def test_a_service_account_of_another_project_needs_more(google):
    found = look(google, "gpu", permissions, SERVICE_ACCOUNT="train@other.iam.gserviceaccount.com")
    check = found["service account's project"]
    assert check.status == "warning"
    assert "service-415104041262@gcp-sa-aiplatform.iam.gserviceaccount.com" in check.command
    assert "service account's project" not in look(google, "gpu", permissions)


def test_vertex_ais_own_agent_needs_no_act_as(google):
    assert look(google, "gpu", permissions, SERVICE_ACCOUNT="")["act as"].status == "ok"


def test_an_api_that_is_off(google):
    google.enabled.discard("aiplatform")
    check = look(google, "gpu", permissions)["APIs"]
    assert check.command == "gcloud services enable aiplatform.googleapis.com --project=yard"


def test_a_project_that_cant_be_seen(google):
    del google.policies["yard"]
    assert look(google, "gpu", permissions)["project"].status == "failure"


def test_logs_that_would_vanish(google):
    google.permissions.discard("logging.logEntries.create")
    check = look(google, "gpu", permissions)["log writing"]
    assert check.status == "failure"
    assert "tried as that account" in check.found
    assert "--role=roles/logging.logWriter" in check.command


def test_without_impersonation_the_policy_is_read_and_that_is_said(google):
    google.may_impersonate = False
    found = look(google, "gpu", permissions, buckets)
    assert found["log writing"].status == found["bucket access"].status == "failure"
    member = f"serviceAccount:{RUNS_AS}"
    google.policies["yard"] = {"bindings": [{"role": "roles/logging.logWriter", "members": [member]}]}
    google.bucket_policy = {"bindings": [{"role": "roles/storage.objectUser", "members": [member]}]}
    found = look(google, "gpu", permissions, buckets)
    assert "read from the project's IAM policy" in found["log writing"].found
    assert f"read from the IAM policy of gs://{BUCKET}" in found["bucket access"].found
    assert bad(found) == {}


def test_a_conditional_role_is_not_taken_for_the_role(google):
    google.may_impersonate = False
    binding = {
        "role": "roles/storage.admin",
        "members": [f"serviceAccount:{RUNS_AS}"],
        "condition": {"title": "nights"},
    }
    google.bucket_policy = {"bindings": [binding]}
    assert look(google, "gpu", buckets)["bucket access"].status == "failure"


def test_a_policy_that_cant_be_read_is_unknown_not_a_failure(google):
    google.may_impersonate = False
    google.api.route("GET", r"/storage/v1/b/[^/]+/iam", lambda call: DENIED)
    assert look(google, "gpu", buckets)["bucket access"].status == "unknown"


def test_read_only_where_the_job_writes(google):
    google.bucket_permissions = {"storage.objects.get", "storage.objects.list"}
    check = look(google, "gpu", buckets)["bucket access"]
    assert check.status == "failure"
    assert "storage.objects.create" in check.found
    assert check.command.endswith("--role=roles/storage.objectUser")


def test_a_bucket_that_does_not_exist(google):
    google.buckets = {}
    check = look(google, "gpu", buckets)["bucket"]
    assert check.command == f"gcloud storage buckets create gs://{BUCKET} --location=us-central1"


@pytest.mark.parametrize(
    ("location", "places", "status"),
    [("US", [], "ok"), ("NAM4", [], "ok"), ("US", ["US-CENTRAL1", "US-EAST1"], "ok"), ("EUROPE-WEST4", [], "warning")],
)
def test_where_a_bucket_is(google, location, places, status):
    google.buckets[BUCKET].update(location=location, customPlacementConfig={"dataLocations": places})
    assert look(google, "gpu", buckets)["bucket"].status == status


def test_an_image_of_another_project_needs_the_agents_access(google):
    google.policies["other"] = {"bindings": []}
    image = google_world.IMAGE.replace("/yard/", "/other/")
    check = look(google, "gpu", permissions, IMAGE=image)["image pull"]
    assert check.status == "failure"
    assert f"--project=other --location=us-central1 --member=serviceAccount:{AGENT}" in check.command
    reader = {"role": "roles/artifactregistry.reader", "members": [f"serviceAccount:{AGENT}"]}
    google.repository_policy = {"bindings": [reader]}
    assert look(google, "gpu", permissions, IMAGE=image)["image pull"].status == "ok"


def test_settings_without_a_value_are_named(google):
    file = str(project.ROOT / "configs" / "gpu.yaml")
    (check,) = permissions.filled_in(Job.read(file, {"IMAGE": "i", "JOB": "j", "NAME": "n", "SERVICE_ACCOUNT": ""}))
    assert check.status == "failure"
    assert "BUCKET" in check.found


# security


def ago(minutes):
    when = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=minutes)
    return when.isoformat().replace("+00:00", "Z")


def test_a_perimeter_that_changed_just_now(google):
    google.perimeters = [perimeter(NUMBER, updated=ago(5))]
    check = look(google, "gpu", security)["perimeter change"]
    assert check.status == "failure"
    assert check.fix.startswith(("wait 9 min", "wait 10 min"))
    assert check.command.startswith("sleep ")
    google.perimeters = [perimeter(NUMBER, updated=ago(16))]
    assert look(google, "gpu", security)["perimeter change"].status == "ok"


def test_a_change_is_looked_up_in_the_audit_log_where_the_perimeter_has_no_date(google):
    google.perimeters = [perimeter(NUMBER)]
    assert look(google, "gpu", security)["perimeter change"].status == "ok"
    name = "accessPolicies/1/servicePerimeters/fence"
    google.changes = [{"timestamp": ago(1), "protoPayload": {"resourceName": name}}]
    check = look(google, "gpu", security)["perimeter change"]
    assert (check.status, check.found.split()[0]) == ("failure", "fence")


def test_a_bucket_on_the_other_side(google):
    google.perimeters = [perimeter(NUMBER, updated=ago(600))]
    google.buckets[BUCKET]["projectNumber"] = "42"
    check = look(google, "gpu", security)["perimeter sides"]
    assert check.status == "failure"
    assert f"gs://{BUCKET} is outside" in check.found
    google.perimeters.append(perimeter(NUMBER, "42", title="bridge", kind="BRIDGE", updated=ago(600)))
    assert look(google, "gpu", security)["perimeter sides"].status == "ok"


def test_a_dry_run_of_a_perimeter_is_none(google):
    dry = perimeter(updated=ago(1))
    dry["spec"] = {"resources": [f"projects/{NUMBER}"], "restrictedServices": ["storage.googleapis.com"]}
    google.perimeters = [dry]
    google.buckets[BUCKET]["projectNumber"] = "42"
    assert look(google, "gpu", security)["perimeter sides"].status == "ok"


def test_what_a_job_needs_from_outside(google):
    google.perimeters = [perimeter(NUMBER, updated=ago(600))]
    assert look(google, "python_package", security)["egress"].status == "warning"
    assert "Reduction Server" in look(google, "reduction_server", security)["egress"].found
    assert look(google, "gpu", security)["egress"].status == "ok"


def test_perimeters_that_cant_be_seen(google):
    google.api.route("GET", "/v1/accessPolicies", lambda call: DENIED)
    check = look(google, "gpu", security)["perimeter"]
    assert (check.status, "accesscontextmanager.policyReader" in check.fix) == ("unknown", True)


def test_a_denial_by_the_perimeter_is_said_as_such(google):
    google.api.route("GET", "/storage/v1/b/.*", lambda call: PERIMETER_DENIAL)
    check = look(google, "gpu", buckets)["bucket"]
    assert check.status == "failure"
    assert "vpcServiceControlsUniqueIdentifier" in check.found
    assert "perimeter" in check.fix


# the file and its rehearsal (offline)


def test_a_file_that_validate_refuses(tmp_path):
    path = tmp_path / "gpu.yaml"
    text = (project.ROOT / "configs" / "gpu.yaml").read_text()
    path.write_text(text.replace("replicaCount", "replicaCuont").replace("--batch_size", "--bach_size"))
    (check,) = strategy.valid(Job.read(str(path), VARIABLES))
    assert check.status == "failure"
    assert check.command == f"python -m launch validate {path}"
    (good,) = strategy.valid(Job.read(str(project.ROOT / "configs" / "gpu.yaml"), VARIABLES))
    assert good.status == "ok"


@pytest.mark.parametrize(
    ("config", "flag", "fits"), [("multi_worker", "mirrored", "multi_worker"), ("tpu", "one_device", "tpu")]
)
def test_a_strategy_that_the_pools_dont_have(tmp_path, config, flag, fits):
    job = Job.read(str(job_file(tmp_path, config, strategy=flag)), VARIABLES)
    (check,) = strategy.shape(job)
    assert (check.status, f"--strategy={fits} " in check.fix) == ("failure", True)


def test_a_rehearsal_counts_for_its_file_and_commit(tmp_path):
    def git(*arguments):
        identity = ["-c", "user.name=n", "-c", "user.email=n@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def status():
        (check,) = strategy.rehearsed(job, tmp_path)
        return check.status, check.found

    job = Job.read(str(project.ROOT / "configs" / "gpu.yaml"), VARIABLES)
    git("init", "-q")
    (tmp_path / "code.py").write_text("a = 1")
    git("add", "code.py")
    git("commit", "-qm", "one")
    assert "never rehearsed" in status()[1]
    commit, dirty = rehearsals.state(tmp_path)
    (tmp_path / ".cache").mkdir()
    record = tmp_path / ".cache" / "rehearsed.json"
    record.write_text(json.dumps({"gpu.yaml": {"commit": commit, "dirty": dirty, "at": "2026-11-21T02:00:00Z"}}))
    assert status()[0] == "ok"
    (tmp_path / "project.env").write_text("PROJECT=mine")
    git("add", "project.env")
    assert status()[0] == "ok"
    (tmp_path / "code.py").write_text("a = 2")
    assert "uncommitted" in status()[1]
    git("commit", "-qam", "two")
    assert "last rehearsed on commit" in status()[1]
    record.write_text("not JSON")
    assert status()[0] == "warning"


def test_what_local_writes_down_is_what_preflight_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(project, "CACHE", tmp_path)
    rehearsals.remember("configs/gpu.yaml", "abc", False)
    rehearsals.remember("elsewhere/cpu.yaml", "def", True)
    assert {name: (one["commit"], one["dirty"]) for name, one in rehearsals.records().items()} == {
        "gpu.yaml": ("abc", False),
        "cpu.yaml": ("def", True),
    }


# memory and numbers (offline)


def job_file(tmp_path, config, **flags):
    """A config with other flags: changed where they stand, else added to the last pool's."""
    text = (project.ROOT / "configs" / f"{config}.yaml").read_text()
    for name, value in flags.items():
        text, changed = re.subn(rf"--{name}=.*", f"--{name}={value}", text)
        if not changed:
            text = text.replace("scheduling:\n", f"    - --{name}={value}\nscheduling:\n", 1)
    path = tmp_path / f"{config}.yaml"
    path.write_text(text)
    return path


def test_a_batch_that_does_not_divide(tmp_path):
    job = Job.read(str(job_file(tmp_path, "multi_gpu", batch_size=63)), VARIABLES)
    (check,) = memory.arithmetic(job)
    assert check.status == "failure"
    assert "--batch_size=64" in check.fix


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({"learning_rate": 0.5}, "learning rate"),
        ({"learning_rate": 1e-8}, "learning rate"),
        ({"batch_size": 4096, "warmup_steps": 0}, "warm-up"),
        ({"clip_norm": 0, "precision": "mixed_float16"}, "clipping"),
        ({"clip_norm": 1000}, "clipping"),
    ],
)
def test_numbers_out_of_their_usual_range_are_pointed_out(tmp_path, flags, name):
    found = {c.name: c.status for c in numerics.look(Job.read(str(job_file(tmp_path, "gpu", **flags)), VARIABLES))}
    assert found == {name: "warning"}


def test_a_precision_that_the_accelerator_has_not(tmp_path):
    path = job_file(tmp_path, "tpu_v3", precision="mixed_float16")
    (check,) = numerics.look(Job.read(str(path), VARIABLES))
    assert (check.name, "mixed_bfloat16" in check.command) == ("precision", True)


def test_usual_numbers_are_not_pointed_out(tmp_path):
    flags = {"learning_rate": 0.001, "batch_size": 256, "warmup_steps": 100, "clip_norm": 1, "precision": "float32"}
    (check,) = numerics.look(Job.read(str(job_file(tmp_path, "gpu", **flags)), VARIABLES))
    assert check.status == "ok"


def test_every_config_has_a_batch_and_a_strategy_that_fit_its_machines():
    for path in CONFIGS:
        assert next(iter(memory.arithmetic(Job.read(str(path), VARIABLES)))).status == "ok", path.stem
        assert next(iter(strategy.shape(Job.read(str(path), VARIABLES)))).status == "ok", path.stem


@pytest.mark.parametrize(("per_example", "status"), [(10**6, "ok"), (250 * 10**6, "warning"), (10**9, "failure")])
def test_the_estimate_against_the_accelerators_memory(monkeypatch, per_example, status):
    table = {str(n): 10**9 + n * per_example for n in (1, 2, 4, 128)}
    figures = {"parameters": 10**6, "gradient_bytes": 10**8, "bytes_by_batch": table, "unsized_tensors": 0}
    monkeypatch.setattr(memory, "estimate", lambda job: memory.Need.of(figures))
    job = Job.read(str(project.ROOT / "configs" / "gpu.yaml"), VARIABLES)
    (check,) = memory.fits(job)
    assert check.status == status
    if status == "failure":
        assert "--accumulate=8" in check.fix  # 64 examples in micro-batches of 8


def test_an_estimate_of_the_model_that_is_here(tmp_path):
    job = Job.read(str(project.ROOT / "configs" / "cpu.yaml"), VARIABLES)
    try:
        found = memory.estimate(job)
    except Trouble as trouble:
        pytest.fail(trouble.detail)
    assert found.parameters > 0
    assert found.bytes(1, False) >= 2 * 2 * found.parameters  # they and their gradients, in 16 bits at the least
    assert found.bytes(100, False) > found.bytes(10, False)


# capacity


def test_no_quota_and_where_there_is(google):
    google.limits = {
        "custom_model_training_nvidia_l4_gpus": {"us-central1": 2, "europe-west4": 16},
        "custom_model_training_preemptible_nvidia_l4_gpus": {"us-central1": 8},
        "custom_model_training_nvidia_t4_gpus": {"us-central1": 6},
        "custom_model_training_nvidia_a100_gpus": {"us-central1": 1},
    }
    check = look(google, "multi_worker", capacity)["quota nvidia_l4_gpus"]
    assert check.status == "failure"
    assert "6 needed in us-central1, 0 of 2 in use" in check.found
    assert "europe-west4" in check.fix
    assert "as Spot" in check.fix
    assert "NVIDIA_TESLA_T4" in check.fix
    assert "A100" not in check.fix


def test_quota_that_others_use_now(google):
    google.used = {"custom_model_training_nvidia_l4_gpus": 8}
    check = look(google, "gpu", capacity)["quota nvidia_l4_gpus"]
    assert (check.status, "8 of 8 in use" in check.found, "wait" in check.fix) == ("failure", True, True)


def test_running_jobs_count_before_monitoring_sees_them(google):
    machine = {"machineType": "g2-standard-8", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1}
    google.jobs = [{"jobSpec": {"workerPoolSpecs": [{"machineSpec": machine, "replicaCount": "8"}]}}]
    assert "8 of 8 in use" in look(google, "gpu", capacity)["quota nvidia_l4_gpus"].found


def test_spot_and_flex_start_have_a_quota_of_their_own(google):
    for config in ("spot", "flex_start"):
        job = Job.read(str(project.ROOT / "configs" / f"{config}.yaml"), VARIABLES)
        assert all("_preemptible_" in metric for metric in capacity.asked(job)), config


def test_trials_at_a_time_add_up():
    job = Job.read(str(project.ROOT / "configs" / "tune.yaml"), VARIABLES)
    assert capacity.asked(job) == {"custom_model_training_nvidia_l4_gpus": 4}


def test_a_quota_nobody_knows(google):
    google.limits = {}
    assert look(google, "gpu", capacity)["quota nvidia_l4_gpus"].status == "unknown"


def test_flex_starts_limits(tmp_path):
    good = Job.read(str(project.ROOT / "configs" / "flex_start.yaml"), VARIABLES)
    assert [check.status for check in capacity.flex_start(good)] == ["ok"]
    text = (project.ROOT / "configs" / "flex_start.yaml").read_text()
    path = tmp_path / "flex_start.yaml"
    path.write_text(
        text.replace("scheduling:\n", "scheduling:\n  timeout: 1209600s\n").replace("NVIDIA_L4", "NVIDIA_TESLA_T4")
    )
    lines = path.read_text().splitlines()
    keep = [i for i, line in enumerate(lines) if line.startswith("  timeout:")]
    path.write_text("\n".join(line for i, line in enumerate(lines) if i not in keep[1:]))
    (check,) = capacity.flex_start(Job.read(str(path), VARIABLES))
    assert check.status == "failure"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"reservationSharingPolicy": {"serviceShareType": "DISALLOW_ALL"}}, "not shared with Vertex AI"),
        ({"status": "CREATING"}, "not READY"),
        (
            {
                "specificReservation": {
                    "count": "1",
                    "inUseCount": "1",
                    "instanceProperties": {"machineType": "a3-highgpu-2g"},
                }
            },
            "0 of 1 are free",
        ),
        (
            {"specificReservation": {"count": "2", "instanceProperties": {"machineType": "a3-highgpu-8g"}}},
            "holds a3-highgpu-8g",
        ),
    ],
)
def test_a_reservation_that_does_not_fit(google, changed, told):
    google.reservations["two"] = google_world.reservation(**changed)
    check = look(google, "reserved", reservations)["reservation"]
    assert check.status == "failure"
    assert told in check.found


def test_a_reservation_elsewhere_or_of_somebody_else(google):
    elsewhere = "projects/yard/zones/europe-west4-a/reservations/two"
    assert "the job runs in" in look(google, "reserved", reservations, RESERVATION=elsewhere)["reservation"].found
    theirs = "projects/other/zones/us-central1-a/reservations/two"
    assert "doesn't share it" in look(google, "reserved", reservations, RESERVATION=theirs)["reservation"].found
    google.reservations["two"] = google_world.reservation(
        shareSettings={"shareType": "SPECIFIC_PROJECTS", "projectMap": {NUMBER: {"projectId": "yard"}}}
    )
    assert look(google, "reserved", reservations, RESERVATION=theirs)["reservation"].status == "ok"
    assert look(google, "reserved", reservations, RESERVATION=theirs[:-3] + "no")["reservation"].status == "failure"


# the whole


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
