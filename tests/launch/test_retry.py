"""submit --retry: the real gcloud against a stand-in API; only the waiting is the test's own."""

import functools

import pytest

from launch import __main__ as cli
from launch import preflight, project, remembered, retry, spec
from launch.checks import Check
from launch.errors import LaunchError
from launch.retry import places, reasons, waiting
from launch.vertex import request
from tests.google_world import NUMBER, PERIMETER_DENIAL, Google, ago, perimeter
from tests.standin import StandIn, failure

FILE = str(project.ROOT / "configs" / "gpu.yaml")
VALUES = {
    "PROJECT": "yard",
    "REGION": "us-central1",
    "BUCKET": "yard-bucket",
    "NAME": "digits",
    "JOB": "digits-job",
    "IMAGE": "us-central1-docker.pkg.dev/yard/trainyard/digits@sha256:" + "0" * 64,
    "SERVICE_ACCOUNT": "train@yard.iam.gserviceaccount.com",
    "TENSORBOARD": "projects/1/locations/us-central1/tensorboards/2",
    "RESERVATION": "projects/yard/zones/us-central1-a/reservations/two",
}
JOBS = r"/v1/projects/[^/]+/locations/(?P<region>[^/]+)/customJobs"
STOCKOUT = (
    "Resources are insufficient in region: us-central1. Please try a different region or use a different accelerator."
)
RATE = failure(429, "RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Job submission requests' and limit 'Job submission requests per minute per region' of service 'aiplatform.googleapis.com'")  # fmt: skip  # noqa: E501
QUOTA = failure(429, "RESOURCE_EXHAUSTED", "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_nvidia_l4_gpus")  # fmt: skip  # noqa: E501


@pytest.fixture
def api(tmp_path, monkeypatch):
    with StandIn() as server:
        for name in [*project.KNOWN, "MAKELEVEL", places.NAME]:
            monkeypatch.delenv(name, raising=False)
        for name, value in server.environment(tmp_path / "gcloud", project="yard").items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(remembered, "CACHE", tmp_path / "cache")
        monkeypatch.setattr(project, "ENV_FILE", tmp_path / "project.env")
        yield server


class Time(waiting.Clock):
    """A clock that moves when somebody sleeps."""

    def __init__(self):
        self.time, self.slept, self.told = 0.0, [], []
        super().__init__(lambda: self.time, self.pass_by, self.told.append)

    def pass_by(self, seconds):
        self.time += seconds
        self.slept.append(seconds)


def made(file=FILE):
    return request.make(spec.read(file, VALUES), VALUES)


def cloud(api, *tries):
    """Answers of create, one a try: a failure, or the states that the job goes through (FAILED: with a message)."""
    todo = list(tries)
    jobs: dict[str, list] = {}

    def created(call):
        came = todo.pop(0)
        if isinstance(came, tuple):
            return came
        number = str(len(jobs) + 1)
        jobs[number] = list(came)
        return {**call.body, "name": f"projects/1/locations/{call['region']}/customJobs/{number}"}

    def described(call):
        state, _, message = jobs[call["id"]].pop(0).partition(":")
        name = f"projects/1/locations/{call['region']}/customJobs/{call['id']}"
        return {
            "name": name,
            "state": f"JOB_STATE_{state}",
            **({"error": {"code": 8, "message": message}} if message else {}),
        }

    api.route("POST", JOBS, created)
    api.route("GET", JOBS, lambda call: {"customJobs": []})
    api.route("GET", JOBS + "/(?P<id>[0-9]+)", described)
    return todo


def created_in(api):
    return [call["region"] for call in api.calls if call.method == "POST" and call.path.endswith("/customJobs")]


def test_a_rate_limit_is_waited_out(api):
    cloud(api, RATE, ["RUNNING"])
    clock = Time()
    assert retry.submit(made(), clock=clock).region == "us-central1"
    assert created_in(api) == ["us-central1"] * 2
    assert 25 < clock.slept[0] < 35
    assert any("waiting" in line and "giving up in" in line for line in clock.told)


def test_a_stockout_goes_on_to_the_next_region_then_machine_then_waits(api, monkeypatch):
    monkeypatch.setenv(places.NAME, "us-east4, us-central1/n1-standard-8/NVIDIA_TESLA_T4")
    no = [f"FAILED:{STOCKOUT}"]
    todo = cloud(api, no, no, no, ["RUNNING"])
    clock = Time()
    job = retry.submit(made(), clock=clock)
    assert not todo
    assert job.region == "us-central1"
    assert created_in(api) == ["us-central1", "us-east4", "us-central1", "us-central1"]
    bodies = [call.body for call in api.calls if call.method == "POST"]
    machines = [body["jobSpec"]["workerPoolSpecs"][0]["machineSpec"] for body in bodies]
    assert machines[2] == {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}
    assert machines[0] == machines[1] == machines[3]
    assert "tensorboard" not in bodies[1]["jobSpec"]
    assert len({body["jobSpec"]["baseOutputDirectory"]["outputUriPrefix"] for body in bodies}) == 1
    assert max(clock.slept) >= 0.9 * retry.ROUND_WAIT_S  # after all three
    assert remembered.last_job() == job.name


@pytest.mark.parametrize(
    "answer",
    [
        QUOTA,
        failure(403, "PERMISSION_DENIED", "You do not have permission to act as service account: train@yard."),
    ],
)
def test_what_is_permanent_is_not_tried_again(api, answer):
    cloud(api, answer)
    clock = Time()
    with pytest.raises(LaunchError, match=r"not tried again \(try 1\)") as raised:
        retry.submit(made(), clock=clock)
    assert clock.slept == []
    assert raised.value.exit_code == 1
    assert len(created_in(api)) == 1


def test_a_job_that_failed_for_good_is_not_sent_again(api):
    cloud(api, ["FAILED:The replica workerpool0-0 exited with a non-zero status of 1."])
    with pytest.raises(LaunchError, match="not tried again"):
        retry.submit(made(), clock=Time())
    assert len(created_in(api)) == 1


def test_it_ends_at_its_bound(api):
    cloud(api, RATE)
    clock = Time()
    with pytest.raises(LaunchError, match=r"gave up after try 1"):
        retry.submit(made(), 20, clock)
    assert clock.time <= 20


def test_a_submission_without_an_answer_is_looked_up_before_it_is_repeated(api):
    there = {"name": "projects/1/locations/us-central1/customJobs/7", "state": "JOB_STATE_PENDING"}
    cloud(api, failure(400, "UNAVAILABLE", "The service is currently unavailable: backend error, try again."))
    api.route("GET", JOBS, lambda call: {"customJobs": [{**there, "displayName": "digits-job"}]})
    api.route("GET", JOBS + "/7", lambda call: {**there, "state": "JOB_STATE_RUNNING"})
    assert retry.submit(made(), clock=Time()).id == "7"
    assert len(created_in(api)) == 1


def test_a_perimeter_that_just_changed_is_waited_for_and_one_that_did_not_is_permanent(api):
    google = Google(api)
    google.perimeters = [perimeter(NUMBER, updated=ago(14))]
    todo = cloud(api, PERIMETER_DENIAL, ["RUNNING"])
    clock = Time()
    retry.submit(made(), clock=clock)
    assert not todo
    assert 0 < clock.slept[0] <= 60
    google.perimeters = [perimeter(NUMBER, updated=ago(60))]
    cloud(api, PERIMETER_DENIAL)
    with pytest.raises(LaunchError, match="none in the last 15 minutes"):
        retry.submit(made(), clock=clock)


def test_from_the_command_line(api, monkeypatch, capsys):
    monkeypatch.setattr(retry, "POLL_S", 0.01)
    cloud(api, ["PENDING", "RUNNING"])
    given = [f"--set={name}={value}" for name, value in VALUES.items()]
    assert cli.main(["submit", FILE, "--retry", "--retry_for=5m", "--no_preflight", *given]) == 0
    told = capsys.readouterr().out
    assert "us-central1: PENDING\nus-central1: RUNNING\n" in told
    assert cli.main(["submit", FILE, "--retry_for=soon", *given]) == 2


def test_what_preflight_says_of_a_fresh_change_is_waited_for_too():
    clock = Time()
    fresh = Check("perimeter change", "failure", "fence changed 5 min ago", "wait 10 min", "sleep 600")
    other = Check("act as", "failure", "user:me may not act as train@yard")
    assert retry.wait_for_perimeter([fresh, other], clock) == [other]
    assert clock.slept == [600]


def test_a_failure_that_preflight_finds_stops_the_submission(api, monkeypatch, capsys):
    google = Google(api)
    google.act_as = []
    monkeypatch.setenv("TRAINYARD_REGISTRY_ENDPOINT", api.address)
    # what waits here is the machine, not Google
    monkeypatch.setattr(preflight, "look", functools.partial(preflight.look, timeout_s=300))
    given = [f"--set={name}={value}" for name, value in VALUES.items()]
    assert cli.main(["submit", FILE, *given]) == 1
    told = capsys.readouterr().out
    assert "may not act as" in told and "Not submitted" in told
    assert created_in(api) == []


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("moon", "REGION/MACHINE"),
        ("us-east4/g2-standard-999", "no machine is called g2-standard-999"),
        ("us-east4/g2-standard-24", "can't have 1 x NVIDIA_L4"),
        ("us-east4/e2-standard-8", "needs a machine with accelerators"),
        ("us-east4/n1-standard-8", "can't have 1 x NVIDIA_L4"),
        ("us-east4/ct5lp-hightpu-4t", "name the region alone"),
    ],
)
def test_places_are_checked_before_the_first_try(api, monkeypatch, entry, told):
    monkeypatch.setenv(places.NAME, entry)
    with pytest.raises(LaunchError, match=told):
        retry.submit(made(), clock=Time())
    assert not api.calls


def test_a_reservation_stays_where_it_is(api, monkeypatch):
    monkeypatch.setenv(places.NAME, "us-east4")
    with pytest.raises(LaunchError, match="reservation"):
        retry.submit(made(str(project.ROOT / "configs" / "reserved.yaml")), clock=Time())


def test_places_are_read_from_project_env(api):
    project.ENV_FILE.write_text(f"{places.NAME}=us-east4 europe-west4/g2-standard-12\n")
    assert places.configured() == [places.Place("us-east4"), places.Place("europe-west4", "g2-standard-12")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (STOCKOUT, "stockout"),
        ("The zone 'us-central1-a' does not have enough resources available to fulfill the request.", "stockout"),
        (RATE[1]["error"]["message"], "limit"),
        (PERIMETER_DENIAL[1]["error"]["message"], "perimeter"),
        ("Internal error occurred for the current attempt", "passing"),
        (QUOTA[1]["error"]["message"], ""),
        ("ResourceExhaustedError: OOM when allocating tensor with shape[500,17,17,4032] and type float", ""),
        ("loss: nan", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_what_is_worth_another_try(text, kind):
    assert reasons.of(text).kind == kind


@pytest.mark.parametrize(("text", "s"), [("45s", 45), ("90m", 5400), ("6h", 21600), ("2d", 172800)])
def test_times(text, s):
    assert waiting.seconds(text) == s


@pytest.mark.parametrize("text", ["", "6", "h", "-1h", "nanh", "40d", "1e9d", "xm"])
def test_times_that_are_none(text):
    with pytest.raises(ValueError, match="a time such as 90m"):
        waiting.seconds(text)
