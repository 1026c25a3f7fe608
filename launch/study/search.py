"""Which values the next trial gets: optuna's samplers under Vertex AI's names."""

import warnings
from collections.abc import Mapping, Sequence

import optuna

from launch.errors import LaunchError
from launch.study import choices, space
from launch.study.space import Parameter

ALGORITHMS = ("ALGORITHM_UNSPECIFIED", "RANDOM_SEARCH", "GRID_SEARCH")


def algorithm(study: Mapping) -> str:
    """studySpec.algorithm; "" is Bayesian. Raises LaunchError."""
    name = study.get("algorithm") or ALGORITHMS[0]
    if name not in ALGORITHMS:
        raise LaunchError(
            f"studySpec.algorithm is {name!r}; RANDOM_SEARCH, GRID_SEARCH or nothing (Bayesian) was expected"
        )
    return "" if name == ALGORITHMS[0] else name


def sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    """The sampler of an algorithm. A grid is queued (see `queue_grid`), so its sampler is never asked.

    Bayesian is TPE: parameters are modelled together, conditional ones in groups, and a trial that still runs
    counts as a bad one, so that parallel trials keep apart.
    """
    if name:
        return optuna.samplers.RandomSampler(seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(
            multivariate=True, group=True, constant_liar=True, n_startup_trials=8, seed=seed
        )


def queue_grid(study: optuna.Study, parameters: Sequence[Parameter], limit: int) -> int:
    """Queue the combinations of a grid that the study doesn't have yet; how many the whole grid has."""
    known = {one.name: one for one in space.everyone(parameters)}
    total = 0
    for values in choices.grid(parameters):
        total += 1
        if total <= limit:
            raw = {name: choices.encode(known[name], value) for name, value in values.items()}
            study.enqueue_trial(raw, skip_if_exists=True)
    return total
