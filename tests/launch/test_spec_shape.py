"""A file that isn't validated first: what runs or rewrites it says where a list or a mapping is missing."""

import json
import random

import pytest

from launch import __main__ as cli
from launch import fill, spec
from launch.errors import LaunchError
from launch.local import environment
from launch.local.rehearsal import Rehearsal
from launch.spec import shape
from launch.study import choices, search, space, stopping
from tests.launch.mutants import mutant
from tests.shipped import CONFIGS

POOLS = "workerPoolSpecs:\n- containerSpec:\n    imageUri: x\n"
VALUES = dict.fromkeys(("PROJECT", "REGION", "REPOSITORY", "BUCKET", "NAME", "IMAGE", "PACKAGE", "RESERVATION"), "x")


@pytest.mark.parametrize("verb", ["local", "fill"])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("workerPoolSpecs: 5\n", "1:18: workerPoolSpecs: the number 5. Expected: a list"),
        ("workerPoolSpecs: [x]\n", "1:19: workerPoolSpecs[0]: the text 'x'. Expected: a mapping"),
        (f"{POOLS}    args: --epochs=1\n", "4:11: workerPoolSpecs[0].containerSpec.args: the text '--epochs=1'"),
        (f"{POOLS}    env: [A=1]\n", "4:11: workerPoolSpecs[0].containerSpec.env[0]: the text 'A=1'"),
        (f"{POOLS}scheduling: 1h\n", "4:13: scheduling: the text '1h'. Expected: a mapping"),
    ],
)
def test_the_place_and_what_came_are_told(verb, text, told, tmp_path, capsys):
    file = tmp_path / "job.yaml"
    file.write_text(text)
    assert cli.main([verb, str(file)]) == 2
    said = capsys.readouterr().err
    assert f"{file}:{told}" in said and f"launch validate {file}" in said


def test_a_study_without_its_job_is_told(tmp_path, capsys):
    file = tmp_path / "study.yaml"
    file.write_text("studySpec: {parameters: [x]}\n")
    assert cli.main(["tune", str(file), f"--output={tmp_path}"]) == 2
    assert "studySpec and trialJobSpec were expected" in capsys.readouterr().err
    file.write_text("studySpec: {parameters: [x]}\ntrialJobSpec: {scheduling: {}}\n")
    assert cli.main(["tune", str(file), f"--output={tmp_path}"]) == 2
    assert f"{file}:1:26: studySpec.parameters[0]: the text 'x'. Expected: a mapping" in capsys.readouterr().err


def test_the_json_of_a_study_is_looked_at_too(tmp_path, capsys):
    file = tmp_path / "study.json"
    file.write_text(json.dumps({"studySpec": {"parameters": {}}, "trialJobSpec": {}}))
    assert cli.main(["refine", str(file)]) == 2
    assert "studySpec.parameters is a mapping, no list" in capsys.readouterr().err


def rehearsed(job: spec.JobFile, folder) -> None:
    """All of `launch local` up to the first process."""
    shape.check(job)
    tuning = job.kind == "tuning"
    extra = choices.flags(space.read(job.study), choices.middle(job.study)) if tuning else []
    rehearsal = Rehearsal(spec=job.job, output=folder, extra_args=extra, trial="1" if tuning else "")
    everyone = rehearsal.replicas()
    rehearsal.job(lambda name, line: None)
    rehearsal.notes()
    addresses = {one.name: "127.0.0.1:2222" for one in everyone}
    for one in everyone:
        environment.of_replica(one, spec=job.job, addresses=addresses, everyone=everyone, output=folder)
    if tuning:
        search.algorithm(job.study)
        stopping.rule(job.study)


def test_mutants_can_be_run_or_are_told(tmp_path):
    rng = random.Random(7)
    texts = [path.read_text() for path in CONFIGS]
    seen = {"ran": 0, "told": 0}
    for number in range(300):
        path = tmp_path / f"{number}.yaml"
        path.write_bytes(mutant(rng, rng.choice(texts)))
        for use in (
            lambda file: rehearsed(spec.read(file, {}), tmp_path / "out"),
            lambda file: fill.filled(file, VALUES, ["--epochs=1"]),
        ):
            try:
                use(str(path))
                seen["ran"] += 1
            except LaunchError as error:
                assert str(error)
                seen["told"] += 1
    assert seen["ran"] > 150 and seen["told"] > 50, seen
