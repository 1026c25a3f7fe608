"""The two files that a fork replaces: more than images, and one sentence where something is missing."""

import json
import re
import types

import pytest

import trainer.data
import trainer.model
from tests.fork import EXAMPLES, make_fork, train
from trainer import contract
from trainer.input.sources import DataError

FLAGS = ("--epochs=2", "--batch_size=40", "--log_every_steps=10", "--warmup_steps=5")


@pytest.mark.parametrize(
    ("example", "more", "devices"),
    [
        ("tabular", ("--units=8",), "gpu:2"),
        ("two_heads", ("--odd_weight=0.25",), "gpu:2"),
        ("text", ("--heads=1", "--accumulate=2"), "gpu:1"),
    ],
)
def test_a_model_of_another_kind_trains_evaluates_and_exports(tmp_path, example, more, devices):
    fork = make_fork(tmp_path / "fork", example)
    done = train(fork, *FLAGS, *more, TRAINYARD_STAND_IN=devices)
    assert done.returncode == 0, done.stderr + done.stdout
    result = json.loads((fork / "jobs/default/result.json").read_text())
    assert result["metrics"]["train"]["loss"] > 0
    assert result["metrics"]["validation"]
    assert (fork / "jobs/default/model/saved_model.pb").exists()
    if example == "two_heads":
        assert "last_loss" in result["metrics"]["train"], "a value that only train_step returns is reported too"


def module(file: str, old: str = "", new: str = "") -> types.ModuleType:
    made = types.ModuleType(file)
    text = (EXAMPLES / "two_heads" / file).read_text()
    assert old in text
    exec(text.replace(old, new), made.__dict__)
    return made


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("data.py", "def parse", "def parse_it", "trainer/data.py defines no parse"),
        ("data.py", "def records", "def record", "trainer/data.py defines no records"),
        ("data.py", "def records(split: str, data_dir: str)", "def records(split: str)", "records(split: str)"),
        ("model.py", "def build_model", "def make_model", "trainer/model.py defines no build_model"),
    ],
)
def test_a_wrong_name_is_told_in_one_sentence(file, old, new, sentence):
    changed = module(file, old, new)
    data, model = (changed, module("model.py")) if file == "data.py" else (module("data.py"), changed)
    with pytest.raises(DataError, match=re.escape(sentence)) as told:
        contract.check(data, model)
    assert "\n" not in str(told.value)


def test_an_augment_that_takes_no_seed_by_name_is_told():
    data = module("data.py")
    data.augment = lambda features, label, rng: (features, label)
    with pytest.raises(DataError, match="has to be named seed"):
        contract.check(data, module("model.py"))


def test_the_examples_keep_the_contract():
    contract.check(module("data.py"), module("model.py"))
    contract.check(trainer.data, trainer.model)


def test_a_model_that_is_none_ends_with_a_sentence_and_no_traceback(tmp_path):
    fork = make_fork(tmp_path / "fork", "two_heads")
    path = fork / "trainer/model.py"
    path.write_text(path.read_text().replace("    return model", "    return None"))
    done = train(fork, *FLAGS)
    assert (done.returncode, done.stderr.strip()) == (
        2,
        "ERROR: trainer/model.py: build_model returned NoneType; a compiled keras.Model is expected",
    )
