"""The search is worth having: on a standard function it beats random search."""

import itertools
import math
import statistics

import optuna
import pytest

from launch.errors import LaunchError
from launch.study import choices, search, space

# Branin (minimum 0.398) over a logarithmic and a linear parameter, and a choice that adds to it.
STUDY = {
    "metrics": [{"metricId": "loss", "goal": "MINIMIZE"}],
    "parameters": [
        {
            "parameterId": "rate",
            "scaleType": "UNIT_LOG_SCALE",
            "doubleValueSpec": {"minValue": 0.00001, "maxValue": 1.0},
        },
        {"parameterId": "x", "doubleValueSpec": {"minValue": 0.0, "maxValue": 15.0}},
        {"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b", "c"]}},
    ],
}


def branin(rate, x, kind):
    first = 3 * math.log10(rate) + 10  # 1e-5 to 1 as -5 to 10
    curve = x - 5.1 / (4 * math.pi**2) * first**2 + 5 / math.pi * first - 6
    value = curve**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(first) + 10
    return value + {"a": 0.0, "b": 5.0, "c": 10.0}[kind]


def curve_of(algorithm, seed, trials=30):
    """The best value after each trial of one study."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="minimize", sampler=search.sampler(algorithm, seed))
    parameters = space.read(STUDY)
    study.optimize(lambda trial: branin(**choices.propose(trial, parameters)), n_trials=trials)
    return list(itertools.accumulate((trial.value for trial in study.trials), min))


def best_of(algorithm, seed, trials=30):
    return curve_of(algorithm, seed, trials)[-1]


def test_the_median_best_of_20_seeds_beats_random_search():
    bayesian = statistics.median(best_of("", seed) for seed in range(20))
    random = statistics.median(best_of("RANDOM_SEARCH", seed) for seed in range(20))
    assert bayesian < random


def test_a_grid_is_queued_once_and_up_to_the_limit():
    parameters = space.read(
        {
            "parameters": [
                {"parameterId": "batch", "discreteValueSpec": {"values": [32, 64, 128]}},
                {"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b"]}},
            ]
        }
    )
    study = optuna.create_study(sampler=search.sampler("GRID_SEARCH", 0))
    assert search.queue_grid(study, parameters, limit=5) == 6
    assert search.queue_grid(study, parameters, limit=6) == 6
    found = []
    study.optimize(lambda trial: found.append(choices.propose(trial, parameters)) or 0.0, n_trials=6)
    assert found == list(choices.grid(parameters))


def test_an_algorithm_that_is_none_is_told():
    with pytest.raises(LaunchError, match="GRID_SEARCH"):
        search.algorithm({"algorithm": "TPE"})
