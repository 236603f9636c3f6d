"""Scores on the scale from random answers, 0, to a reference such as people, 1."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.agents.play import simulate_sessions
from knownminds.environments import ENVIRONMENTS, Environment, Trials, unknown
from knownminds.inference import MEASURES
from knownminds.inference.performance import performance

# The ten of CogBench, in its order.
METRICS = (
    "prior_weighting",
    "likelihood_weighting",
    "directed_exploration",
    "random_exploration",
    "meta_cognition",
    "learning_rate",
    "optimism_bias",
    "model_basedness",
    "temporal_discounting",
    "risk",
)
RELEASED = "_released"
PERFORMANCE = "_performance"  # follows the name of an experiment: the mean of its performance
NULL_AGENTS = ("random_responder", "random_rater", "random_responder_confidence")
SESSIONS = 1000  # of the null agent
# Slopes of regressions on what was shown, which random answers do not follow: exactly 0.
ZERO = ("prior_weighting", "likelihood_weighting", "directed_exploration", "random_exploration",
        "model_basedness")  # fmt: skip
SAME = 1e-12
NORMAL = 1.96  # errors to either side of a 95% interval
SCALE = (
    "Normalised: (value - random) / (reference - random), which keeps its sign: who deviates from "
    "random answers the other way lies below 0. Random answers are those of the null agent in the "
    "same design: 0 exactly for slopes, else simulated, with an error that the interval has beside "
    "the measure's. The reference is taken as known."
)
UNSIGNED = "As in the published code, normalised scores are without sign."


def scaled(frame: pd.DataFrame, unsigned: bool = False) -> pd.DataFrame:
    """Return scores with their position on the scale.

    Parameters
    ----------
    frame
        Columns value, standard_error, low, high, random, random_error and reference.
    unsigned
        Whether normalised scores lose their sign, as in CogBench's code; the interval then goes
        from 0 where both signs are possible.

    Returns
    -------
    The frame with normalised, normalised_error, normalised_low and normalised_high; NaN where
    there is no scale, that is where reference and random answers are the same.
    """
    zero, one = (frame[name].to_numpy(dtype=float) for name in ("random", "reference"))
    apart = np.abs(one - zero) > SAME * np.maximum(np.abs(one), np.abs(zero))
    distance = np.where(apart, one - zero, np.nan)
    value, first, second = (
        (frame[name].to_numpy(dtype=float) - zero) / distance for name in ("value", "low", "high")
    )
    # d normalised / d random = (normalised - 1) / distance
    of_random = np.abs((value - 1.0) / distance) * frame["random_error"].to_numpy(dtype=float)
    low = value - np.hypot(value - np.minimum(first, second), NORMAL * of_random)
    high = value + np.hypot(np.maximum(first, second) - value, NORMAL * of_random)
    if unsigned:
        nearest = np.where((low < 0) & (high > 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        value, low, high = np.abs(value), nearest, np.maximum(np.abs(low), np.abs(high))
    error = np.hypot(frame["standard_error"].to_numpy(dtype=float) / distance, of_random)
    return frame.assign(
        normalised=value, normalised_error=error, normalised_low=low, normalised_high=high
    )


def metric_of(experiment: str, measure: str) -> str:
    """Return the name of a measure in a reference: of a performance with its experiment."""
    return f"{experiment}{PERFORMANCE}" if measure.startswith("performance") else measure


def with_random(
    scores: pd.DataFrame, designs: Mapping[str, Environment], seed: int
) -> pd.DataFrame:
    """Return scores with the columns random and random_error, see `random_score`.

    Parameters
    ----------
    scores
        Columns experiment and metric.
    designs
        The design of each experiment, by name; NaN stands where there is none.
    """
    keys = list(zip(scores["experiment"], scores["metric"], strict=True))
    zero = {
        (name, metric): random_score(metric, designs[name], SESSIONS, seed)
        for name, metric in dict.fromkeys(keys)
        if name in designs
    }
    pairs = [zero.get(key, (np.nan, np.nan)) for key in keys]
    return scores.assign(random=[one for one, _ in pairs], random_error=[e for _, e in pairs])


def random_score(
    metric: str, environment: Environment, sessions: int, seed: int
) -> tuple[float, float]:
    """Return what the null agent scores on average in so many sessions, and its error."""
    if metric.removesuffix(RELEASED) in ZERO:
        return 0.0, 0.0
    settings = json.dumps(environment.settings)
    trials = _played_at_random(ENVIRONMENTS[environment.name], settings, sessions, seed)
    if metric.endswith(PERFORMANCE):
        estimate = performance(trials, environment)
    else:
        estimate = MEASURES[metric].estimate(trials)
    return estimate.value, float(np.nan_to_num(estimate.standard_error))


@lru_cache(maxsize=16)  # several metrics are read off the same experiment
def _played_at_random(kind: type[Environment], settings: str, sessions: int, seed: int) -> Trials:
    environment = kind(**json.loads(settings))
    able = [model for model in NULL_AGENTS if model in AGENTS and AGENTS[model].plays(environment)]
    if not able:
        raise ValueError(f"No null agent ({', '.join(NULL_AGENTS)}) plays {kind.name}.")
    model = AGENTS[able[0]]
    theta = np.tile(model.parameters.constrain(model.parameters.mean), (sessions, 1))
    return simulate_sessions(model, theta, environment, seed).to_trials()


def read_csv(what: str, file: str | os.PathLike[str], columns: Sequence[str]) -> pd.DataFrame:
    """Read a CSV file that must have some columns; ValueError says what it is for."""
    path, rule = Path(file), f"{what} is a CSV file with the columns {', '.join(columns)}"
    try:
        table = pd.read_csv(path)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{rule}; {path.name} cannot be read: {error}") from None
    missing = [name for name in columns if name not in table]
    if missing:
        raise ValueError(
            f"{rule}; {path.name} has {', '.join(map(str, table.columns))}. Rename or add "
            f"{missing[0]!r}."
        )
    return table


def read_reference(file: str | os.PathLike[str]) -> dict[str, float]:
    """Return reference values by metric from a CSV file with the columns metric and value."""
    table, name = read_csv("A reference", file, ("metric", "value")), Path(file).name
    check_metrics(dict.fromkeys(table["metric"].astype(str), 0.0), name)
    doubled = table["metric"][table["metric"].duplicated()]
    if len(doubled):
        raise ValueError(
            f"A metric has one reference value; {name} has several of {doubled.iloc[0]!r}. "
            "Leave one."
        )
    value = pd.to_numeric(table["value"], errors="coerce")
    wrong = value.isna() & table["value"].notna()
    if wrong.any():
        row = table[wrong].iloc[0]
        raise ValueError(
            f"A reference value is a number; {row['metric']} has {row['value']!r} in {name}. "
            "Leave it empty if there is none."
        )
    return dict(zip(table["metric"].astype(str), value.astype(float), strict=True))


def check_metrics(values: Mapping[str, float], where: str) -> None:
    """Raise ValueError at a name that is neither a measure nor an experiment's performance."""
    known = [*MEASURES, *(f"{name}{PERFORMANCE}" for name in ENVIRONMENTS)]
    for name in values:
        if name not in known:
            raise ValueError(f"{unknown('metric', name, known)} It stands in {where}.")
