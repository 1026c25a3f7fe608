"""The command line: which flags there are, and that each mistake is one sentence."""

import io
import json
import pathlib
import subprocess
import sys

import pytest

from trainer import flags, yours
from trainer.settings import Settings

FROZEN = pathlib.Path(__file__).with_name("flags.txt")
MODEL = """
import keras
import tensorflow as tf
from pydantic import BaseModel, Field
DEFAULT = 3
class Hyperparameters(BaseModel):
    layers: int = Field(DEFAULT, ge=1, description="how deep")
    activation: str = "relu"
class Net(keras.Model):
    pass
"""


def told(*arguments: str, replicas: int | None = None) -> list[str]:
    return [problem.message for problem in flags.examine(list(arguments), replicas)[2]]


def test_the_set_of_flags_is_frozen():
    """A new flag is a decision: add its line to flags.txt."""
    assert sorted(Settings.model_fields) == FROZEN.read_text().split()


def test_every_flag_says_what_it_is_and_stands_in_a_group():
    for name, field in flags.known_flags(flags.hyperparameters_class()).items():
        assert field.get("group"), name
        assert field.get("description") or field["group"] == "Model", name


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--lerning_rate=1"], "--lerning_rate is not a flag of this trainer; did you mean --learning_rate?"),
        (["--learning-rate=1"], "did you mean --learning_rate?"),
        (["--epochs"], "--epochs came without a value"),
        (["--epochs=many"], "--epochs=many: should be a valid integer"),
        (["--epochs=0"], "--epochs=0: should be greater than or equal to 1"),
        (["epochs=3"], "'epochs=3' came where a flag such as --epochs=3 was expected"),
        (["--decay=linear"], "--decay=linear: should be 'cosine' or 'none'"),
        (["--checkpoint_every=5"], "--checkpoint_every=5: expected 60s or 500steps"),
        (["--profile_steps=9:3"], "--profile_steps=9:3 ends before it begins"),
        (["--steps_per_epoch=4", "--epochs=2", "--warmup_steps=8"], "--warmup_steps=8 is not shorter than the run"),
        (["--steps_per_epoch=4", "--examples_per_epoch=256"], "say the same: give one of them"),
        (["--batch_size=10", "--accumulate=4"], "--batch_size=10 doesn't divide over 1 replicas x 4 micro-batches"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, sentence):
    messages = told(*arguments)
    assert len(messages) == 1
    assert sentence in messages[0]
    assert "\n" not in messages[0]


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ((), 50),
        (("--steps_per_epoch=1", "--epochs=1"), 0),
        (("--steps_per_epoch=20", "--epochs=1"), 4),
        (("--examples_per_epoch=640", "--epochs=10"), 20),
        (("--steps_per_epoch=100", "--epochs=3"), 50),
        (("--steps_per_epoch=20", "--epochs=1", "--warmup_steps=19"), 19),
    ],
)
def test_the_default_warm_up_is_at_most_a_fifth_of_the_run(arguments, steps):
    assert flags.parse(list(arguments))[0].warmup_steps == steps


def test_a_warm_up_of_fifty_that_was_given_is_still_too_long_for_twenty_steps():
    assert "--warmup_steps=50 is not shorter" in told("--steps_per_epoch=20", "--epochs=1", "--warmup_steps=50")[0]


def test_a_batch_that_replicas_do_not_divide_names_ones_that_they_do():
    assert told("--batch_size=100", replicas=8) == ["--batch_size=100 doesn't divide over 8 replicas; try 96 or 104"]
    assert told("--batch_size=4", replicas=8) == ["--batch_size=4 doesn't divide over 8 replicas; try 8"]


def test_all_mistakes_are_told_at_once():
    assert len(told("--epochs=0", "--nonsense", "--seed=-1")) == 3


def test_the_later_value_wins_and_both_spellings_of_a_value_are_taken():
    settings, _ = flags.parse(["--epochs=3", "--epochs", "5", "--jit", "--batch_size=16.0"])
    assert (settings.epochs, settings.jit, settings.batch_size) == (5, True, 16)


def test_a_models_own_hyperparameters_are_read_without_importing_it(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    found = flags.hyperparameters_class(tmp_path / "model.py")
    assert found(layers=4).layers == 4
    assert flags.known_flags(found)["layers"]["group"] == "Model"


def test_a_hyperparameter_may_not_take_a_flags_name(tmp_path):
    (tmp_path / "model.py").write_text(MODEL.replace("layers", "epochs"))
    with pytest.raises(flags.FlagError, match=r"Hyperparameters.epochs has the name of one of the trainer's own"):
        flags.known_flags(flags.hyperparameters_class(tmp_path / "model.py"))


def test_no_class_of_that_name_is_told(tmp_path):
    (tmp_path / "model.py").write_text("x = 1\n")
    with pytest.raises(flags.FlagError, match="defines no class Hyperparameters"):
        flags.hyperparameters_class(tmp_path / "model.py")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("class Hyperparameters(:\n", "trainer/model.py, line 1: "),
        ("class Hyperparameters:\n    x: int = 1 / 0\n", "Hyperparameters can't be made: division by zero"),
        (None, "trainer/model.py can't be read"),
    ],
)
def test_a_model_py_that_is_no_python_is_one_sentence(tmp_path, text, sentence):
    if text is not None:
        (tmp_path / "model.py").write_text(text)
    with pytest.raises(flags.FlagError, match=sentence) as told:
        flags.hyperparameters_class(tmp_path / "model.py")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(("text", "found"), [('DATA_DIR = "a"', "a"), ('DATA_DIR: str = "b"', "b"), ("x = 1", None)])
def test_data_py_says_where_the_data_lies(tmp_path, text, found):
    (tmp_path / "data.py").write_text(text)
    assert yours.data_dir(tmp_path / "data.py") == found


def test_a_data_dir_that_is_computed_is_one_sentence(tmp_path):
    (tmp_path / "data.py").write_text("import os\nDATA_DIR = os.getcwd()\n")
    with pytest.raises(flags.FlagError, match=r"trainer/data\.py, line 2: DATA_DIR has to be a plain string"):
        yours.data_dir(tmp_path / "data.py")


def test_the_default_of_data_dir_is_data_pys(monkeypatch):
    monkeypatch.setattr(flags, "data_dir", lambda: "gs://mine")
    assert flags.parse([])[0].data_dir == "gs://mine"
    assert flags.parse(["--data_dir=here"])[0].data_dir == "here"
    assert "[gs://mine]" in flags.help_text()


def test_help_groups_every_flag():
    text = flags.help_text()
    assert all(f"--{name}=" in text for name in Settings.model_fields)
    assert text.index("\nTraining\n") < text.index("\nHardware\n") < text.index("\nModel\n")


def test_the_launcher_can_ask_about_job_arguments(monkeypatch, capsys):
    jobs = [{"args": ["--epochs=3", "--seed=x"]}, {"args": [], "replicas": 3}]
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(jobs)))
    assert flags.answer(["--check"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert [(p["flag"], p["arg_index"]) for p in first] == [("--seed", 1)]
    assert [p["flag"] for p in second] == ["--batch_size"]


def test_a_wrong_flag_ends_the_trainer_before_tensorflow_is_imported():
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "trainer.task", "--epochs=0"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "--epochs=0: should be greater than or equal to 1" in done.stderr
    assert "tensorflow" not in done.stderr


def test_hyperparameters_of_a_plain_class_are_told_in_a_line(tmp_path):
    path = tmp_path / "model.py"
    path.write_text("class Hyperparameters:\n    width: int = 3\n")
    with pytest.raises(flags.FlagError, match=r"a dataclass or pydantic model .* is expected") as caught:
        flags.known_flags(yours.hyperparameters_class(path))
    assert "\n" not in str(caught.value)
