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
from knownminds.inference import MEASURES, FittedMeasure
from knownminds.inference.bandits.released_code import released_performance
from knownminds.inference.performance import performance, performance_of

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
BARE = ("performance", "performance_released")  # as a table of measures calls them
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
    frame : Columns value, standard_error, low, high, random, random_error and reference.
    unsigned : Whether normalised scores lose their sign, as in CogBench's code; the interval then
        goes from 0 where both signs are possible.

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
    return f"{experiment}_{measure}" if measure.startswith("performance") else measure


def with_random(
    scores: pd.DataFrame, designs: Mapping[str, Environment], seed: int
) -> pd.DataFrame:
    """Return scores with the columns random and random_error, see `random_score`.

    Parameters
    ----------
    scores : Columns experiment and metric.
    designs : The design of each experiment, by name; NaN stands where there is none.
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
    elif metric.endswith(PERFORMANCE + RELEASED):
        released = released_performance(environment) or performance_of(environment)
        estimate = released.estimate(trials)
    else:
        measure = MEASURES[metric]
        # Random answers are of no group: what is fitted is fitted to each session.
        if isinstance(measure, FittedMeasure):
            estimate = measure.over_subjects(measure.values(trials))
        else:
            estimate = measure.estimate(trials)
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
    named = f" with the columns {', '.join(columns)}" if columns else ""
    path, rule = Path(file), f"{what} is a CSV file{named}"
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


def read_reference(
    file: str | os.PathLike[str], scored: Mapping[str, str]
) -> tuple[dict[str, float], list[str]]:
    """Return reference values by metric, and the names that are of no use here.

    A CSV file has the columns metric (or measure) and value. Names are those that `score` prints;
    a performance is told by its experiment, before it or in a column.

    Parameters
    ----------
    scored : The metrics that have a scale, with their experiments.

    Raises
    ------
    ValueError : If a name is no measure or the other definition of one that is scored, a value is
        no number, or none of the metrics has a value.
    """
    name, table = Path(file).name, read_csv("A reference", file, ("value",))
    column = "measure" if "measure" in table and "metric" not in table else "metric"
    if column not in table:
        raise ValueError(
            f"A reference has the columns metric and value, or is a file of trials; {name} has "
            f"{', '.join(map(str, table.columns))}. Rename or add 'metric'."
        )
    experiment = table.get("experiment", pd.Series("", table.index)).fillna("").astype(str)
    table = table.assign(metric=[
        _whole_name(metric, where, scored, name)
        for metric, where in zip(table[column].astype(str), experiment, strict=True)
    ])  # fmt: skip
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
    values = dict(zip(table["metric"], value.astype(float), strict=True))
    unused = [metric for metric in values if metric not in scored]
    if len(unused) == len(values):
        raise ValueError(
            f"A reference has values of what is scored, {', '.join(scored)}; {name} has "
            f"{', '.join(unused) or 'no row'}. Add one of these."
        )
    return {metric: value for metric, value in values.items() if metric in scored}, unused


def _whole_name(metric: str, experiment: str, scored: Mapping[str, str], file: str) -> str:
    """Return a metric's name with its experiment; ValueError if it can be of no use."""
    if metric in BARE:
        of = [where for name, where in scored.items() if name == metric_of(where, metric)]
        if not experiment and len(of) != 1:
            places = f"of {', '.join(of)}" if of else "of no experiment"
            raise ValueError(
                f"A performance is that of an experiment; {file} has {metric!r}, and the scores "
                f"have it {places}. Write "
                f"EXPERIMENT_{metric}, or name the experiment in a column."
            )
        metric = metric_of(experiment or of[0], metric)
    known = [*MEASURES, *(metric_of(name, bare) for name in ENVIRONMENTS for bare in BARE)]
    if metric not in known:
        raise ValueError(f"{unknown('metric', metric, known)} It stands in {file}.")
    bare = metric.removesuffix(RELEASED)
    other = bare if metric != bare else bare + RELEASED
    if metric not in scored and other in scored:
        raise ValueError(
            f"A reference is of the measure as it is defined; {file} has {metric}, and scored is "
            f"{other}. {'Leave --released out' if metric == bare else 'Add --released'}, or give "
            f"the value of {other}."
        )
    return metric
