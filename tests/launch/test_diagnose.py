"""Every known message is diagnosed, alone and inside the log of a whole job, in whatever form the log comes."""

import gzip
import io
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from launch.diagnose import causes, patterns, report, source
from tests.launch import cost, job_log

DATA = Path(__file__).parent / "data"
SAMPLES = [json.loads(line) for line in (DATA / "log-samples.jsonl").read_text(encoding="utf-8").splitlines()]
SHOWING = [sample for sample in SAMPLES if sample["cause"] != "benign_noise"]
NOISE = [
    "2026-11-21 02:33:10.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You may see "
    "slightly different numerical results due to floating-point round-off errors from different computation orders.",
    "step 120/400  loss 0.1234  accuracy 0.9712  5120 examples/s",
    "Epoch 3/20",
    "1875/1875 - 4s - 2ms/step - accuracy: 0.9790 - loss: 0.0665 - val_accuracy: 0.9741 - val_loss: 0.0872",
    "Epoch 3: val_loss improved from inf to 0.08720, saving model to gs://bucket/jobs/a/checkpoints/best.keras",
    "W0000 00:00:1745040002.716147     960 cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to register "
    "factory for plugin cuDNN when one has already been registered",
    "2026-11-21 02:33:11.000001: W tensorflow/core/framework/local_rendezvous.cc:404] Local rendezvous is aborting "
    "with status: OUT_OF_RANGE: End of sequence",
    "INFO:root:global batch 64 = 2 workers x 2 replicas x 16 examples",
    "saved checkpoint 500 in 0.4 s",
    "Downloading data from the bucket took 3.2 s; 0 records skipped; memory 41% of 16 GB",
]
WRAPPER = "The replica workerpool0-0 exited with a non-zero status of 1. To find out more please check the logs"


def ids(log: str | bytes) -> list[str]:
    """The causes in a log, most likely first."""
    log = log if isinstance(log, bytes) else log.encode()
    return [finding.cause.id for finding in report.read(io.BytesIO(log)).findings]


def whole_job(middle: str, seed: int, end: str = "\n") -> str:
    """A job's log: noise, what went wrong, a little more noise, the wrapper."""
    order = random.Random(seed)
    lines = [*order.choices(NOISE, k=40), *middle.split("\n"), *order.choices(NOISE, k=3), WRAPPER]
    return end.join(lines) + end


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample['cause']}-{sample['source'][-18:]}")
def test_each_message_alone(sample):
    expected = [] if sample["cause"] == "benign_noise" else [sample["cause"]]
    assert ids(sample["text"])[:1] == expected


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
def test_each_message_inside_the_log_of_a_job(end):
    for seed, sample in enumerate(SHOWING[len(end) - 1 :: 3]):  # a third each: all of them stand alone above
        found = ids(whole_job(sample["text"], seed, end))
        assert found[:1] == [sample["cause"]], sample


def test_the_line_number_is_that_of_the_message():
    for seed, sample in enumerate(SHOWING[2::3]):
        log = whole_job(sample["text"], seed)
        first = report.read(io.BytesIO(log.encode())).findings[0]
        assert first.line in log.splitlines()[first.line_number - 1], sample
        assert first.line_number > 40


@pytest.mark.parametrize("form", ["textPayload", "jsonPayload", "message", "log"])
def test_structured_lines(form):
    for sample in SHOWING[len(form) % 4 :: 4]:
        text = {"jsonPayload": {"message": sample["text"], "levelname": "ERROR"}}.get(form, sample["text"])
        lines = [
            json.dumps({"severity": "INFO", "message": NOISE[1], "labels": {"ml.googleapis.com/tpu_worker_id": "0"}}),
            json.dumps({"insertId": "1x", form: text, "severity": "ERROR", "timestamp": "2026-11-21T02:33:10.5Z"}),
        ]
        found = report.read(io.BytesIO("\n".join(lines).encode())).findings
        assert [finding.cause.id for finding in found][:1] == [sample["cause"]], sample
        assert found[0].line_number == 2


@pytest.mark.parametrize("shape", ["json", "yaml"])
def test_what_gcloud_prints(shape):
    """`gcloud logging read --format=json` (an indented list, newest first), and its default, YAML."""
    import yaml

    entries = [
        {
            "insertId": str(seconds),
            "jsonPayload": {"message": message},
            "resource": {"labels": {"task_name": replica}},
            "timestamp": f"2026-11-21T02:33:{seconds}Z",
        }
        for seconds, replica, message in (
            (20, "workerpool0-0", "Socket closed"),
            (10, "workerpool1-2", "OOM when allocating tensor with shape[9] on /device:GPU:0 by allocator GPU_0_bfc"),
        )
    ]
    log = json.dumps(entries, indent=2) if shape == "json" else "---\n".join(yaml.safe_dump(e) for e in entries)
    first = report.read(io.BytesIO(log.encode())).findings[0]
    assert first.cause.id == "gpu_oom"
    assert first.replica == "workerpool1-2"


def test_colours():
    for sample in SHOWING[::4]:
        red = "\n".join(f"\x1b[1;31m{line}\x1b[0m" for line in sample["text"].split("\n"))
        assert ids(f"\x1b[32mINFO\x1b[0m start\n{red}\n")[:1] == [sample["cause"]], sample


def test_benign_noise_means_nothing_in_any_number():
    benign = [sample["text"] for sample in SAMPLES if sample["cause"] == "benign_noise"]
    assert ids("\n".join((NOISE + benign) * 50)) == []


def test_the_earliest_replica_is_the_root():
    entries = [
        ("2026-11-21T02:33:12Z", "workerpool0-0", "NotFoundError: /data/a.tfrecord; No such file or directory"),
        ("2026-11-21T02:33:09Z", "workerpool1-0", "InvalidArgumentError: Loss is inf or nan : Tensor had NaN values"),
        ("2026-11-21T02:33:11Z", "workerpool1-1", "UnavailableError: Socket closed"),
    ]
    log = "\n".join(
        json.dumps({"timestamp": when, "resource": {"labels": {"task_name": who}}, "textPayload": what})
        for when, who, what in entries
    )
    found = report.read(io.BytesIO(log.encode())).findings
    assert [finding.cause.id for finding in found] == ["nan_loss", "data_not_found", "distributed_peer_lost"]
    assert found[0].replica == "workerpool1-0"


def test_a_root_comes_before_its_consequence_and_the_wrapper_last():
    log = (
        f"UNAVAILABLE: Connection reset by peer\n{WRAPPER}\nOOM when allocating tensor with shape[9] on /device:GPU:0\n"
    )
    assert ids(log) == ["gpu_oom", "distributed_peer_lost", "user_code_error"]


def test_what_is_tried_again_comes_after_what_ended_the_run():
    log = "WARNING:root:503 from storage.googleapis.com for bucket x, retrying in 2 s\nLoss is inf or nan\n"
    assert ids(log)[0] == "nan_loss"


def test_no_cause_shows_the_traceback_and_where_to_look(capsys):
    from launch.diagnose import show

    show.show(report.read(io.BytesIO("\n".join(NOISE).encode())), "a.log", {})
    said = capsys.readouterr().out
    assert "No known cause in a.log" in said and "Where to look next" in said and "0 records skipped" in said


def test_an_unknown_exception_is_named_with_its_own_line():
    log = 'step 1\nTraceback (most recent call last):\n  File "a.py", line 3\n    g()\nmy.OddError: 7 is odd\nstep 2\n'
    found = report.read(io.BytesIO(log.encode()))
    assert [(f.cause.id, f.line, f.line_number) for f in found.findings] == [
        ("user_code_error", "my.OddError: 7 is odd", 5)
    ]
    assert found.traceback[-1] == "my.OddError: 7 is odd"


@pytest.mark.parametrize("kind", ["plain", "gzip", "utf-16", "pipe"])
def test_every_kind_of_file(tmp_path, kind):
    text = f"début\n{SHOWING[0]['text']}\n"
    file, pipe = tmp_path / "a.log", None
    if kind == "gzip":
        file.write_bytes(gzip.compress(text.encode()))
    elif kind == "utf-16":
        file.write_bytes(text.encode("utf-16"))
    else:
        file.write_bytes(text.encode())
    if kind == "pipe":
        pipe = io.BytesIO(text.encode())
    with source.opened("-" if pipe else str(file), pipe) as log:
        assert [finding.line_number for finding in report.read(log).findings] == [2]


def test_bytes_that_are_no_text():
    assert ids(bytes(range(256)) * 40 + b"\nLoss is inf or nan\n\xff\xfe\x00") == ["nan_loss"]


def test_a_line_without_end():
    log = b"x" * (2 << 20) + b" Loss is inf or nan " + b"y" * (2 << 20) + b"\nno space left on device\n"
    found = report.read(io.BytesIO(log)).findings
    assert [(finding.cause.id, finding.line_number) for finding in found] == [("nan_loss", 1), ("disk_full", 2)]
    assert len(found[0].line) < 20_000


def test_the_same_message_a_hundred_thousand_times_hides_no_other():
    log = b"step 3  loss: nan\n" * 100_000 + b"CUDA_ERROR_OUT_OF_MEMORY\n" + b"step 3  loss: nan\n" * 100_000
    found = report.read(io.BytesIO(log)).findings
    assert [(finding.cause.id, finding.line_number) for finding in found] == [("nan_loss", 1), ("gpu_oom", 100_001)]


def test_the_causes_file():
    known, signs, benign = causes.load()
    assert {sample["cause"] for sample in SHOWING} <= {cause.id for cause in known}
    assert len({cause.id for cause in known}) == len(known)
    for sign in signs:
        patterns.exact(sign.pattern)
        assert sign.advice.fixes and sign.advice.tip and sign.advice.explanation
    assert benign
    assert {cause.seven for cause in known} == {None, *causes.SEVEN}


@pytest.mark.parametrize("where", ["in the entry", "in its variant"])
def test_a_key_that_nothing_reads_is_told(tmp_path, where):
    entry = {"id": "full", "title": "t", "tip": "t", "explanation": "e", "fixes": ["f"], "patterns": "disk is full"}
    entry["variants"] = [{"tip": "It is full here.", "hints": "here"}]
    (entry if where == "in the entry" else entry["variants"][0])["prio"] = 3
    file = tmp_path / "causes.yaml"
    file.write_text(json.dumps({"causes": [entry], "benign": ""}))
    with pytest.raises(causes.CausesError, match="has prio; known are explanation, fixes"):
        causes.load(file)


def test_no_pattern_fits_an_ordinary_log():
    signs = causes.load()[1]
    ordinary = ("\n".join(NOISE[:5] + NOISE[7:])).encode()
    assert [sign.pattern for sign in signs if patterns.exact(sign.pattern).search(ordinary)] == []


def test_json_has_exactly_these_keys(tmp_path, capsys):
    from launch.__main__ import main

    file = tmp_path / "a.log"
    file.write_text("Loss is inf or nan\n")
    assert main(["diagnose", "--json", str(file)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["causes"]
    assert list(said["causes"][0]) == ["cause", "line", "line_number", "tip", "explanation", "fixes"]
    assert said["causes"][0]["line_number"] == 1 and said["causes"][0]["fixes"]


def test_a_missing_file_is_said_in_a_sentence(tmp_path, capsys):
    from launch.__main__ import main

    assert main(["diagnose", str(tmp_path / "none.log")]) == 2
    assert "No such file or directory. Expected: a log file" in capsys.readouterr().err


def test_the_commands_have_the_names_from_the_line(tmp_path, capsys):
    from launch.__main__ import main

    file = tmp_path / "a.log"
    file.write_text(
        "a-b@my-project.iam.gserviceaccount.com does not have storage.objects.get access to gs://my-data/x\n"
    )
    assert main(["diagnose", str(file)]) == 0
    said = capsys.readouterr().out
    assert "buckets add-iam-policy-binding gs://my-data --member=serviceAccount:a-b@my-project" in said
    assert "3, permissions" in said


@pytest.mark.slow
@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_hundred_megabytes_in_little_memory(tmp_path, form):
    """The peak is the whole process's, Python and libraries included; `make benchmark-launch` measures the time."""
    file = tmp_path / "big.log"
    number = job_log.write(file, 100_000_000, *([job_log.as_json] if form == "json" else []))
    command = [sys.executable, "-m", "launch", "diagnose", "--json", str(file)]
    measured = json.loads(subprocess.check_output([sys.executable, cost.__file__, *command]))
    assert measured["code"] == 0
    causes = json.loads(measured["said"])["causes"]
    assert [(cause["cause"], cause["line_number"]) for cause in causes] == [("gpu_oom", number)]
    assert measured["peak_mb"] < 200


WORDINGS = [json.loads(line) for line in (DATA / "wordings.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("sample", WORDINGS, ids=lambda sample: f"{sample['cause']}-{sample['source'][-18:]}")
def test_other_wordings(sample):
    expected = [] if sample["cause"] == "benign_noise" else [sample["cause"]]
    assert ids(sample["text"])[:1] == expected


def test_what_means_nothing_means_nothing_at_severity_error_either():
    """Vertex AI stores all that a program writes to stderr as errors."""
    wrong = {}
    for sample in WORDINGS:
        if sample["cause"] == "benign_noise":
            entry = {"jsonPayload": {"message": sample["text"], "levelname": "ERROR"}, "severity": "ERROR"}
            if found := ids(json.dumps(entry)):
                wrong[sample["text"]] = found
    assert not wrong
