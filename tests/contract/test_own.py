"""The contract of trainer/model.py and trainer/data.py, whosever they are: what the trainer needs of them, they do.

A fork runs these on its own two files. No figure of any model stands here.
"""

import base64
import json
import math
import subprocess
import sys

import jobs
import pytest
import tensorflow as tf

from tests.contract.conftest import FLAGS, ROOT, own_environment

# the exported model follows from the weights, and its check in a fresh process takes longer than the training
NO_EXPORT = "import trainer.export; trainer.export.export = lambda *_: None"


def python(*arguments, answer=""):
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=own_environment(), input=answer, capture_output=True, text=True, timeout=900
    )


def test_its_hyperparameters_are_flags_and_their_defaults_are_taken(known):
    schema = json.loads(python("trainer.settings", "--schema").stdout)["flags"]
    model = {flag["name"].removeprefix("--"): flag for flag in schema if flag["group"] == "Model"}
    assert list(model) == list(known["hyperparameters"])
    args = [f"--{name}={value}" for name, value in known["hyperparameters"].items() if isinstance(value, int | float)]
    assert json.loads(python("trainer.settings", "--check", answer=json.dumps([{"args": args}])).stdout) == [[]]


def test_a_job_file_that_sets_none_of_its_flags_is_fine_for_it():
    done = python("launch", "validate", "configs/cpu.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_trains_evaluates_and_exports(trained, known):
    result = json.loads((trained / "result.json").read_text())
    assert result["steps"] == 6
    assert {"train", *known["counts"]} <= result["metrics"].keys()
    assert all(math.isfinite(value) for values in result["metrics"].values() for value in values.values())
    assert (trained / "model/saved_model.pb").exists()


def test_a_finished_job_says_so(trained, own):
    again = own.start([*FLAGS, "--epochs=2", f"--job_dir={trained}"], trained / "again.txt")
    assert (again.wait(), again.text.split(" (")[0]) == (0, "this job is finished"), again.text


def test_every_example_is_evaluated_once_whatever_the_replicas(trained, known):
    assert known["evaluated"].keys() == known["counts"].keys()
    for name, (kept, streamed) in known["evaluated"].items():
        # the process looks at its own share: all of it, or half where there are two workers
        for alone, replicas, half in (kept, streamed):
            assert alone == replicas == known["counts"][name]
            assert abs(half - alone / 2) <= 8


def test_a_job_in_two_parts_ends_with_the_same_bits_as_one_in_one(trained, own, known, tmp_path):
    if known["random_ops"]:
        pytest.skip(
            f"trainer/data.py's parse is random ({', '.join(known['random_ops'])}): docs/contract.md on augment"
        )
    for part in (1, 2):
        flags = [*FLAGS, f"--epochs={part}", f"--job_dir={tmp_path}"]
        job = own.start(flags, tmp_path / f"{part}.txt", setup=NO_EXPORT)
        assert job.wait() == 0, job.text
    whole, parts = (jobs.final_state(folder / "checkpoints") for folder in (trained, tmp_path))
    assert jobs.differences(whole, parts) == []


def test_two_replicas_and_micro_batches_train_it(trained, own, tmp_path):
    flags = [*FLAGS, "--epochs=1", "--accumulate=2", f"--job_dir={tmp_path}"]
    job = own.start(flags, tmp_path / "log.txt", {"TRAINYARD_STAND_IN": "gpu:2"}, NO_EXPORT)
    assert job.wait() == 0, job.text
    assert "global batch 8 = 1 workers x 2 replicas x 4 = 2 x 2" in job.text


def test_the_exported_model_answers_batches_of_any_size(trained, known):
    signature = tf.saved_model.load(str(trained / "model")).signatures["serving_default"]
    inputs = signature.structured_input_signature[1]
    assert sorted([spec.shape.as_list()[1:], spec.dtype.name] for spec in inputs.values()) == sorted(known["features"])
    for rows in (1, 3):
        answers = signature(**{k: tf.zeros([rows, *spec.shape[1:]], spec.dtype) for k, spec in inputs.items()})
        assert answers and all(answer.shape[0] == rows for answer in answers.values())


def test_raw_bytes_are_served_where_they_can_be_decoded(trained, known):
    signatures = tf.saved_model.load(str(trained / "model")).signatures
    assert ("raw" in signatures) == known["raw_signature"]
    if known["raw_example"]:
        raw = tf.constant([base64.b64decode(known["raw_example"])] * 2)
        assert all(answer.shape[0] == 2 for answer in signatures["raw"](raw).values())


def test_its_memory_can_be_estimated(trained):
    done = python("trainer.estimate")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["parameters"] > 0
