"""A study narrowed around its best trials: ranges, lists, integers and conditions, and the file written from them."""

import json
import pathlib

import pytest
import yaml

from launch import __main__ as command_line
from launch.study import choices, narrow, space
from launch.study.narrow import Trial

CONDITIONAL = {
    "parameterId": "decay",
    "categoricalValueSpec": {"values": ["cosine", "none"]},
    "conditionalParameterSpecs": [
        {
            "parentCategoricalValues": {"values": ["cosine"]},
            "parameterSpec": {
                "parameterId": "warmup_steps",
                "scaleType": "UNIT_LINEAR_SCALE",
                "integerValueSpec": {"minValue": 0, "maxValue": 80},
            },
        }
    ],
}


def parameter(kind="double", low=0.0, high=1.0, scale="linear", values=()):
    return space.Parameter("p", kind, scale, low, high, tuple(values))


def refined(one, *values, accepts=lambda name, value: True):
    """The parameter after trials with these values, best first."""
    trials = [Trial(str(number), {"p": value}, -number) for number, value in enumerate(values)]
    (found,), (change,) = narrow.refine([one], trials, accepts)
    return found, change


def test_a_range_is_narrowed_and_rounded_where_the_best_lies_inside():
    found, change = refined(parameter(), 0.42, 0.45, 0.5, 0.9, 0.1)
    assert (found.low, found.high) == (0.32, 0.6)
    assert "narrowed" in change.why


def test_a_range_is_widened_where_the_best_lies_at_its_edge():
    found, change = refined(parameter(scale="log", low=0.001, high=0.1), 0.095, 0.06, 0.05, 0.002)
    assert found.high == 1.0  # half of two decades beyond
    assert 0.001 < found.low < 0.05
    assert "upper edge" in change.why


def test_what_was_never_negative_stays_so():
    found, _ = refined(parameter(low=0.1, high=1.0), 0.1, 0.15, 0.2)
    assert 0 <= found.low < 0.1


def test_a_bound_that_the_flag_refuses_is_not_written():
    found, change = refined(parameter(high=0.9), 0.9, 0.85, 0.8, accepts=lambda name, value: value < 1)
    assert 0.9 < found.high < 1
    found, change = refined(parameter(high=0.9), 0.9, 0.85, 0.8, accepts=lambda name, value: False)
    assert found.high == 0.9
    assert "takes no value" in change.why


def test_integers_stay_whole():
    found, _ = refined(parameter("integer", 8, 64, "log"), 64, 60, 50)
    assert found.high == 190  # 64 * sqrt(64 / 8) is 181, rounded outwards to two digits
    assert isinstance(found.high, int)
    assert isinstance(found.low, int)


def test_a_range_that_is_needed_whole_is_kept():
    found, change = refined(parameter(), 0.5, 0.01, 0.99)
    assert (found.low, found.high) == (0.0, 1.0)
    assert "kept" in change.why


def test_lists_keep_what_was_good_and_go_on_beyond_their_end():
    batch = parameter("discrete", values=(32, 64, 128))
    assert refined(batch, 128, 64, 128)[0].values == (64, 128, 256)
    assert refined(batch, 64, 64, 64)[0].values == (64,)
    assert refined(parameter("discrete", values=(0, 1, 2)), 0, 1, 1)[0].values == (0, 1)
    assert refined(parameter("categorical", values=("a", "b", "c")), "b", "a", "b")[0].values == ("a", "b")


def test_conditions_go_with_the_values_that_they_hang_on():
    decay = space.read({"parameters": [CONDITIONAL]})
    without = [
        Trial("1", {"decay": "none"}, 1.0),
        Trial("2", {"decay": "none"}, 0.5),
        Trial("3", {"decay": "none"}, 0.4),
    ]
    (found,), _ = narrow.refine(decay, without)
    assert (found.values, found.children) == (("none",), ())
    with_it = [Trial("1", {"decay": "cosine", "warmup_steps": 40}, 1.0)]
    (found,), changes = narrow.refine(decay, with_it)
    assert [change.name for change in changes] == ["decay", "warmup_steps"]
    assert found.children[0][1].low > 0


def test_a_grid_says_how_many_trials_it_takes():
    parameters = [parameter(), parameter("categorical", values=("a", "b"))]
    grid, count = narrow.gridded(parameters, points=3)
    assert count == 6
    assert grid[0].values == (0.0, 0.5, 1.0)


def test_a_parameter_is_written_as_it_was_read():
    spec = {
        "parameterId": "rate",
        "scaleType": "UNIT_LOG_SCALE",
        "doubleValueSpec": {"minValue": 0.001, "maxValue": 0.1},
    }
    for one in (spec, CONDITIONAL, {"parameterId": "b", "discreteValueSpec": {"values": [1, 2]}}):
        assert space.as_spec(space.read({"parameters": [one]})[0]) == one


@pytest.fixture
def finished(tmp_path):
    """study.json of configs/tune.yaml, as `gcloud ai hp-tuning-jobs describe` prints one."""
    job = yaml.safe_load(pathlib.Path("configs/tune.yaml").read_text())
    job["trials"] = [
        {
            "id": str(number),
            "state": "SUCCEEDED",
            "parameters": [
                {"parameterId": "learning_rate", "value": rate},
                {"parameterId": "dropout", "value": 0.59},
                {"parameterId": "width", "value": 32},
                {"parameterId": "batch_size", "value": 64},
                {"parameterId": "decay", "value": "cosine"},
                {"parameterId": "warmup_steps", "value": 40},
            ],
            "finalMeasurement": {"stepCount": "9", "metrics": [{"metricId": "val_accuracy", "value": 1 - rate}]},
        }
        for number, rate in enumerate((0.001, 0.002, 0.003, 0.02), 1)
    ]
    job["trials"].append({"id": "5", "state": "INFEASIBLE", "parameters": []})
    file = tmp_path / "describe.json"
    file.write_text(json.dumps(job))
    return file


def test_the_next_file_of_a_study_on_vertex_ai_is_valid(finished, tmp_path, capsys):
    assert command_line.main(["refine", str(finished)]) == 0
    file = finished.with_name("describe_2.yaml")
    assert file.read_text().startswith("# What it runs:")
    study = yaml.safe_load(file.read_text())["studySpec"]
    dropout = next(one for one in study["parameters"] if one["parameterId"] == "dropout")
    assert 0.6 < dropout["doubleValueSpec"]["maxValue"] < 1  # wider, and still what --dropout takes
    assert command_line.main(["validate", str(file)]) == 0, capsys.readouterr()


def test_the_next_file_can_be_a_grid(finished, tmp_path, capsys):
    output = tmp_path / "grid.yaml"
    assert command_line.main(["refine", str(finished), "--grid", "--points=2", f"--output={output}"]) == 0
    body = yaml.safe_load(output.read_text())
    assert body["studySpec"]["algorithm"] == "GRID_SEARCH"
    assert body["maxTrialCount"] == len(list(choices.grid(space.read(body["studySpec"]))))
    assert command_line.main(["validate", str(output)]) == 0, capsys.readouterr()


def test_nothing_is_overwritten_unasked(finished, tmp_path, capsys):
    output = tmp_path / "next.yaml"
    output.write_text("mine")
    assert command_line.main(["refine", str(finished), f"--output={output}"]) == 2
    assert output.read_text() == "mine"
    assert command_line.main(["refine", str(finished), f"--output={output}", "--force"]) == 0


def test_a_file_that_cannot_be_written_is_told(finished, tmp_path, capsys):
    output = tmp_path / "no-such-folder" / "next.yaml"
    assert command_line.main(["refine", str(finished), f"--output={output}"]) == 2
    assert f"{output} can't be written" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"studySpec": {}, "trialJobSpec": {}}'])
def test_what_is_no_study_is_told(content, tmp_path, capsys):
    file = tmp_path / "x.json"
    file.write_text(content)
    assert command_line.main(["refine", str(file)]) == 2
    assert capsys.readouterr().err.strip()


def test_a_study_that_is_not_there_is_told(tmp_path, capsys):
    assert command_line.main(["refine", str(tmp_path / "nowhere")]) == 2
    assert "launch tune" in capsys.readouterr().err
