"""validate: every mistake gets a finding at its line and column, all of them at once, and good files get none."""

import json
import pathlib
import re

import pytest

from launch import __main__ as cli
from launch import project, spec, validate
from tests.shipped import CONFIGS as SHIPPED

CONFIGS = project.ROOT / "configs"
REDUCER = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"


def edited(tmp_path: pathlib.Path, config: str, *changes: tuple[str, str]) -> pathlib.Path:
    """A copy of a config with each (old, new) text put in once."""
    text = (CONFIGS / f"{config}.yaml").read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = tmp_path / f"{config}.yaml"
    path.write_text(text)
    return path


def place(path: pathlib.Path, where: str) -> tuple[int, int]:
    """Line and column of the first `where` below the header; a ^ in it marks the column meant."""
    text = path.read_text()
    header = re.match("(#.*\n)*", text).end()
    index = text.index(where.replace("^", ""), header) + max(0, where.find("^"))
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


# config, [(old, new)], where the finding stands in the changed file (see place), words of the finding
MISTAKES = [
    # keys and types
    ("cpu", [("replicaCount", "replicaCuont")], "replicaCuont", "write replicaCount"),
    ("cpu", [("workerPoolSpecs:", "worker_pool_specs:")], "worker_pool_specs", "camelCase"),
    ("cpu", [("  replicaCount: 1", "  replicaCount: 1\n  replicaCount: 2")], "replicaCount: 2", "second time"),
    (
        "cpu",
        [("replicaCount: 1", "machineType: e2-standard-8")],
        "machineType: e2-standard-8\n  containerSpec",
        "machineSpec",
    ),
    ("cpu", [("- --epochs=20", "- 5")], "5", 'write "5" in quotes'),
    ("cpu", [("replicaCount: 1", 'replicaCount: "1"')], '"1"', "without quotes"),
    ("cpu", [("timeout: 3600s", "timeout: 3600")], "3600", "write 3600s"),
    ("cpu", [("timeout: 3600s", "timeout: 1h")], "1h", "write 3600s"),
    ("cpu", [("timeout: 3600s", "timeout: 2 days")], "2 days", "write 172800s"),
    ("cpu", [("timeout: 3600s", "timeout:")], "timeout:^", "without a value"),
    ("spot", [("strategy: SPOT", "strategy: spot")], "spot", "write SPOT"),
    ("cpu", [("scheduling:", "enableWebAccess: 'true'\nscheduling:")], "'true'", "write true"),
    ("cpu", [("scheduling:", "state: JOB_STATE_PENDING\nscheduling:")], "state", "no such field"),
    ("tune", [("maxTrialCount: 24", "maxTrialCount: 24\nstate: 4")], "state", "API answers"),
    ("cpu", [("    imageUri: ${IMAGE}\n", "")], "containerSpec", "imageUri, which is required"),
    ("cpu", [("workerPoolSpecs:", "displayName: x\nworkerPoolSpecs:")], "displayName", "submit names"),
    (
        "python_package",
        [("  pythonPackageSpec:", "  containerSpec: {imageUri: a}\n  pythonPackageSpec:")],
        "pythonPackageSpec",
        "keep one",
    ),
    # variables
    ("cpu", [("${BUCKET}", "${BUKCET}")], "gs://", "write ${BUCKET}"),
    ("cpu", [("${BUCKET}", "$BUCKET")], "gs://", "${NAME}"),
    ("cpu", [("${BUCKET}", "${BUCKET:-x}")], "gs://", "${NAME}"),
    # machines
    ("cpu", [("e2-standard-8", "e2-standard-9")], "e2-standard-9", "write e2-standard-8"),
    (
        "gpu",
        [("acceleratorCount: 1", "acceleratorCount: 2")],
        "acceleratorCount: ^2",
        "acceleratorCount 1 on g2-standard-8",
    ),
    ("gpu", [("NVIDIA_L4", "NVIDIA_TESLA_T4")], "NVIDIA_TESLA_T4", "NVIDIA_L4 on g2-standard-8"),
    ("gpu", [("g2-standard-8", "n2-standard-8")], "NVIDIA_L4", "no accelerator on n2-standard-8"),
    (
        "gpu",
        [("    acceleratorType: NVIDIA_L4\n    acceleratorCount: 1\n", "")],
        "g2-standard-8",
        "acceleratorType: NVIDIA_L4",
    ),
    ("gpu", [("    acceleratorCount: 1\n", "")], "NVIDIA_L4", "acceleratorCount"),
    ("cpu", [("  replicaCount: 1", "  replicaCount: 1\n  diskSpec:\n    bootDiskSizeGb: 50")], "50", "100 to 64000"),
    ("cpu", [("replicaCount: 1", "replicaCount: 2")], "replicaCount: ^2", "one chief"),
    # TPUs
    ("tpu", [("2x2", "2x3")], "2x3", "one of 2x2, 2x4"),
    ("tpu", [("    tpuTopology: 2x2\n", "")], "ct5lp-hightpu-4t", "without tpuTopology"),
    (
        "tpu",
        [("tpuTopology: 2x2", "tpuTopology: 2x2\n    acceleratorType: TPU_V3")],
        "acceleratorType",
        "tpuTopology alone",
    ),
    ("tpu_v3", [("acceleratorCount: 8", "acceleratorCount: 16")], "16", "32"),
    ("tpu_v3", [("TPU_V3", "NVIDIA_L4")], "NVIDIA_L4", "TPU_V2 or TPU_V3"),
    ("tpu", [("replicaCount: 1", "replicaCount: 2")], "replicaCount: ^2", "tpuTopology"),
    # scheduling
    ("multi_worker", [("  restartJobOnWorkerRestart: true\n", "")], "scheduling", "restartJobOnWorkerRestart: true"),
    (
        "multi_worker",
        [("restartJobOnWorkerRestart: true", "disableRetries: true\n  restartJobOnWorkerRestart: true")],
        "disableRetries",
        "turns",
    ),
    ("spot", [("baseOutputDirectory:\n  outputUriPrefix: gs://${BUCKET}/${NAME}/${JOB}\n", "")], "SPOT", "checkpoints"),
    ("flex_start", [("timeout: 3600s", "timeout: 700000s")], "700000s", "at most 7 days"),
    (
        "flex_start",
        [("a3-highgpu-1g", "n1-standard-8"), ("NVIDIA_H100_80GB", "NVIDIA_TESLA_V100")],
        "machineSpec",
        "L4, A100, H100",
    ),
    ("reserved", [("scheduling:", "scheduling:\n  strategy: FLEX_START")], "reservationAffinity", "one of the two"),
    ("reserved", [("- ${RESERVATION}", "- my-reservation")], "my-reservation", "full path"),
    ("reserved", [("key: compute.googleapis.com/reservation-name", "key: name")], "name", "reservation-name"),
    (
        "reduction_server",
        [("scheduling:", "scheduling:\n  strategy: FLEX_START")],
        "machineSpec:\n    machineType: n1",
        "FLEX_START",
    ),
    ("reduction_server", [("    - --communication=nccl\n", "")], "args", "nccl"),
    ("cpu", [("timeout: 3600s", "maxWaitDuration: 60s")], "maxWaitDuration", "FLEX_START"),
    (
        "cpu",
        [('tensorboard: "${TENSORBOARD}"', "tensorboard: projects/1/locations/r/tensorboards/2")],
        "tensorboard",
        "serviceAccount",
    ),
    ("cpu", [("gs://${BUCKET}", "s3://${BUCKET}")], "s3://", "gs://BUCKET/FOLDER"),
    (
        "cpu",
        [("gs://${BUCKET}", "gs://gs://my-bucket")],
        "gs://gs://",
        "BUCKET in project.env is written without gs://",
    ),
    # shapes that don't go together
    ("tpu", [("2x2", "4x4"), ("scheduling:", "scheduling:\n  strategy: SPOT")], "SPOT", "over several machines"),
    (
        "tpu",
        [("scheduling:", "- {machineSpec: {machineType: e2-standard-8}, containerSpec: {imageUri: x1}}\nscheduling:")],
        "{machineSpec",
        "one worker pool",
    ),
    (
        "multi_worker",
        [
            ("scheduling:", "scheduling:\n  strategy: FLEX_START"),
            ("g2-standard-24", "g2-standard-48"),
            ("acceleratorCount: 2", "acceleratorCount: 4"),
        ],
        "machineSpec:\n    machineType: g2-standard-24",
        "same machineSpec",
    ),
    (
        "parameter_server",
        [
            (
                "    imageUri: ${IMAGE}\n    args:\n    - --strategy=parameter_server",
                f"    imageUri: {REDUCER}\n    args:\n    - --strategy=parameter_server",
            )
        ],
        "us-docker",
        "the third pool",
    ),
    ("multi_worker", [("# The workers", "- {}\n# The workers")], "{}", "gcloud refuses empty ones"),
    ("multi_gpu", [("workerPoolSpecs:\n", "workerPoolSpecs:\n- {}\n- {}\n- {}\n- {}\n")], "machineSpec", "at most 4"),
    ("tune", [("config: tune", "config: Tune It")], "Tune It", "a-z"),
    (
        "tune",
        [("parameterId: dropout", "parameterId: learning_rate")],
        "learning_rate\n    scaleType: UNIT_LINEAR_SCALE",
        "each parameter once",
    ),
    ("tune", [("parentCategoricalValues", "parentIntValues")], "parentIntValues", "parentCategoricalValues"),
    (
        "tune",
        [("    categoricalValueSpec:", "    scaleType: UNIT_LINEAR_SCALE\n    categoricalValueSpec:")],
        "UNIT_LINEAR_SCALE\n    categorical",
        "remove scaleType",
    ),
    ("tune", [("goal: MAXIMIZE", "goal: maximise")], "maximise", "write MAXIMIZE"),
    # the trainer's flags
    ("cpu", [("--epochs=20", "--epohcs=20")], "--epohcs=20", "--epochs"),
    ("cpu", [("--epochs=20", "--epochs=many")], "--epochs=many", "integer"),
    ("multi_gpu", [("--batch_size=256", "--batch_size=255")], "--batch_size=255", "4 replicas"),
    ("multi_worker", [("--batch_size=384", "--batch_size=256")], "--batch_size=256", "6 replicas"),
    # the study
    ("tune", [("metricId: val_accuracy", "metricId: accuracy")], "accuracy", "the one metric that the trainer reports"),
    ("tune", [("parameterId: learning_rate", "parameterId: learningrate")], "0.0003", "not a flag"),
    ("tune", [("maxValue: 0.6", "maxValue: 1.6")], "1.6", "dropout"),
    ("tune", [("minValue: 0.0003", "minValue: 0.0")], "0.0", "more than 0"),
    ("tune", [("maxValue: 0.03", "maxValue: 0.0001")], "0.0001", "minValue < maxValue"),
    ("tune", [("[32, 64, 128]", "[64, 32]")], "[64, 32]", "increasing"),
    ("tune", [("        values: [cosine]", "        values: [linear]")], "linear", "the parent's values"),
    ("tune", [("parallelTrialCount: 4", "parallelTrialCount: 40")], "40", "no more at once"),
    ("tune", [("parallelTrialCount: 4\n", "")], "displayName", "parallelTrialCount, which is required"),
    ("tune", [("--epochs=10", "--dropout=0.1")], "dropout\n", "one of them"),
    (
        "tune_grid",
        [
            (
                "discreteValueSpec:\n      values: [0.0005, 0.001, 0.002, 0.004]",
                "doubleValueSpec: {minValue: 0.1, maxValue: 1}",
            )
        ],
        "doubleValueSpec",
        "GRID_SEARCH",
    ),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> list[tuple[pathlib.Path, list]]:
    """(file, findings) of every mistake, all files checked together: the trainer is asked once."""
    paths = [edited(tmp_path_factory.mktemp("job"), config, *changes) for config, changes, _, _ in MISTAKES]
    told = validate.findings([spec.read(str(path), {}) for path in paths])
    return [(path, [one for one in told if one.file == str(path)]) for path in paths]


@pytest.mark.parametrize("number", range(len(MISTAKES)), ids=lambda number: MISTAKES[number][3])
def test_a_mistake_is_found_where_it_stands(found, number):
    _, _, where, words = MISTAKES[number]
    path, findings = found[number]
    hits = [one for one in findings if words in str(one)]
    told = [str(one) for one in findings]
    assert place(path, where) in [(one.mark.line, one.mark.column) for one in hits], told


def test_all_findings_come_at_once(tmp_path):
    path = edited(
        tmp_path,
        "gpu",
        ("replicaCount", "replicaCuont"),
        ("NVIDIA_L4", "NVIDIA_TESLA_T4"),
        ("timeout: 3600s", "timeout: 1h"),
        ("--epochs=20", "--epohcs=20"),
        ("${BUCKET}", "${BUKCET}"),
    )
    found = validate.findings([spec.read(str(path), {})])
    assert len({one.mark.line for one in found}) == 5
    assert [one.mark for one in found] == sorted(one.mark for one in found)


def test_every_config_is_fine_and_the_exit_code_says_so(capsys):
    assert cli.main(["validate", *map(str, SHIPPED)]) == 0
    assert "14 fine" in capsys.readouterr().out


def test_findings_exit_with_1_as_text_and_as_json(tmp_path, capsys):
    path = edited(tmp_path, "cpu", ("timeout: 3600s", "timeout: 1h"))
    assert cli.main(["validate", str(path)]) == 1
    line, column = place(path, "1h")
    assert f"{path}:{line}:{column}: scheduling.timeout" in capsys.readouterr().out
    assert cli.main(["validate", "--json", str(path)]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["findings"][0] | {"line": line, "column": column, "fix": "write 3600s"} == answer["findings"][0]


UNREADABLE = {
    "empty": b"",
    "a list": b"- a\n- b\n",
    "not YAML": b"a: [1, 2\nb: 3\n",
    "a tab": b"a:\n\tb: 1\n",
    "binary": bytes(range(256)),
    "two documents": b"a: 1\n---\nb: 2\n",
    "an unknown alias": b"a: *b\n",
    "10 MB": b"a: " + b"x" * 10_000_000,
    "deep": b"a: " + b"[" * 100_000,
    "an alias bomb": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 9)) for c in range(ord("b"), ord("k"))),
    "a ring of aliases": b"a: &a [*a]\n",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_one_sentence_and_exit_code_2(tmp_path, capsys, name):
    path = tmp_path / "job.yaml"
    path.write_bytes(UNREADABLE[name])
    assert cli.main(["validate", str(path)]) == 2
    said = capsys.readouterr().err
    assert "Expected:" in said and str(path) in said and len(said) < 400


@pytest.mark.parametrize("name", ["missing.yaml", "", "."])
def test_no_file_is_exit_code_2(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["validate", name]) == 2
    assert "can't be read" in capsys.readouterr().err


def test_an_unreadable_file_hides_no_other(tmp_path, capsys):
    path = edited(tmp_path, "cpu", ("timeout: 3600s", "timeout: 1h"))
    assert cli.main(["validate", str(tmp_path / "missing.yaml"), str(path)]) == 2
    said = capsys.readouterr()
    assert "timeout" in said.out and "missing.yaml" in said.err


def test_a_trainer_that_cannot_say_its_flags_is_a_finding(monkeypatch):
    monkeypatch.setattr(project, "ROOT", pathlib.Path("/"))
    found = validate.findings([spec.read(str(CONFIGS / "cpu.yaml"), {})])
    assert any("can't be checked" in one.came for one in found)


def test_aliases_that_stay_small_are_welcome(tmp_path):
    path = edited(
        tmp_path,
        "multi_worker",
        ("- machineSpec:\n", "- machineSpec: &machine\n"),
        (
            "- machineSpec:\n    machineType: g2-standard-24\n    acceleratorType: NVIDIA_L4\n"
            "    acceleratorCount: 2\n",
            "- machineSpec: *machine\n",
        ),
    )
    job = spec.read(str(path), {})
    assert validate.findings([job]) == []
    assert job.pools[1].machine == job.pools[0].machine
