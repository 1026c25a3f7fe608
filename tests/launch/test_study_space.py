"""The parameters of a study: their ranges and scales, conditions, the grid, and what can't be searched."""

import pytest

from launch.errors import LaunchError
from launch.study.choices import choose, decode, encode, grid, middle
from launch.study.space import everyone, read

STUDY = {
    "parameters": [
        {
            "parameterId": "rate",
            "scaleType": "UNIT_LOG_SCALE",
            "doubleValueSpec": {"minValue": 0.0001, "maxValue": 1.0},
        },
        {"parameterId": "layers", "integerValueSpec": {"minValue": "1", "maxValue": "3"}},
        {"parameterId": "batch", "discreteValueSpec": {"values": [32, 64, 128]}},
        {
            "parameterId": "decay",
            "categoricalValueSpec": {"values": ["cosine", "none"]},
            "conditionalParameterSpecs": [
                {
                    "parentCategoricalValues": {"values": ["cosine"]},
                    "parameterSpec": {"parameterId": "warmup", "integerValueSpec": {"minValue": 0, "maxValue": 2}},
                }
            ],
        },
    ]
}


def one(name, study=STUDY):
    return next(found for found in everyone(read(study)) if found.name == name)


def test_ranges_lists_and_conditions_are_read():
    rate, layers, batch, decay, warmup = everyone(read(STUDY))
    assert (rate.kind, rate.scale, rate.low, rate.high) == ("double", "log", 0.0001, 1.0)
    assert (layers.low, layers.high) == (1, 3)
    assert batch.values == (32, 64, 128)
    assert [child.name for child in decay.active_children("cosine")] == ["warmup"]
    assert not list(decay.active_children("none"))
    assert warmup.kind == "integer"


def test_a_conditional_parameter_is_chosen_only_under_its_parent():
    first = choose(read(STUDY), lambda one: one.values[0] if one.listed else one.low)
    last = choose(read(STUDY), lambda one: one.values[-1] if one.listed else one.high)
    assert "warmup" in first
    assert "warmup" not in last


@pytest.mark.parametrize("scale", ["UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"])
def test_unit_and_at_are_each_other_s_inverse(scale):
    bounds = {"minValue": 0.01, "maxValue": 0.99}
    study = {"parameters": [{"parameterId": "x", "scaleType": scale, "doubleValueSpec": bounds}]}
    x = one("x", study)
    for unit in (0, 0.25, 1):
        assert x.unit(x.at(unit)) == pytest.approx(unit)
        assert decode(x, encode(x, x.at(unit))) == pytest.approx(x.at(unit))
    assert x.at(0) == pytest.approx(0.01)


def test_a_reverse_logarithm_is_fine_near_its_upper_end():
    bounds = {"minValue": 0.01, "maxValue": 0.99}
    study = {"parameters": [{"parameterId": "x", "scaleType": "UNIT_REVERSE_LOG_SCALE", "doubleValueSpec": bounds}]}
    assert one("x", study).at(0.5) > 0.85


def test_the_middle_is_one_trial():
    assert middle(STUDY) == {"rate": 0.01, "layers": 2, "batch": 64, "decay": "cosine", "warmup": 1}


def test_a_grid_has_each_combination_once():
    study = {"parameters": [STUDY["parameters"][2], STUDY["parameters"][3]]}
    found = list(grid(read(study)))
    assert len(found) == 3 * (3 + 1)
    assert {"batch": 32, "decay": "none"} in found
    assert len({tuple(sorted(entry.items())) for entry in found}) == len(found)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ([], "at least one"),
        ([{"parameterId": "x"}], "exactly one"),
        ([{"parameterId": "x", "doubleValueSpec": {"minValue": "a"}}], "number"),
        ([{"parameterId": "x", "doubleValueSpec": {"minValue": 2, "maxValue": 1}}], "above"),
        ([{"parameterId": "x", "categoricalValueSpec": {}}], "empty"),
        ([{"parameterId": "x", "scaleType": "UNIT_LOG_SCALE", "doubleValueSpec": {"maxValue": 1}}], "above 0"),
        ([{"parameterId": "x", "scaleType": "LOG", "doubleValueSpec": {"maxValue": 1}}], "scaleType"),
        ([STUDY["parameters"][1]] * 2, "more than once"),
    ],
)
def test_what_cannot_be_searched_is_told(parameters, said):
    with pytest.raises(LaunchError, match=said):
        read({"parameters": parameters})


def test_a_double_has_no_grid():
    with pytest.raises(LaunchError, match="discreteValueSpec"):
        list(grid(read(STUDY)))
