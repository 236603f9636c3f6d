"""Revealed beliefs by context: distances, mass on excluded outcomes, comparison with a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments import (
    ENVIRONMENTS,
    SCENARIOS,
    ContextGrid,
    further,
    session_stream,
    unknown,
)
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import t_tests

from .distribution_distance import distances_of
from .revealed_belief import RevealedBeliefs, context_name

DISTANCES = ("chebyshev", "manhattan", "kl_sum")
ABSENT = -1
REPLICATES = 400  # samples from the truth


def values_of_context(context: str) -> dict[str, int]:
    """Return the columns of a context by name, given the name that `context_name` made.

    Raises
    ------
    ValueError : If it is not the name of a context.
    """
    try:
        pairs = [part.rsplit(" ", 1) for part in context.split(", ")]
        return {name: int(value) for name, value in pairs}
    except ValueError:
        raise ValueError(
            "The name of a context tells its columns, as in 'options 4, kind 0, previous -1'; got "
            f"{context!r}."
        ) from None


def scenario_of(name: str) -> type[ContextGrid]:
    """Return the experiment of a scenario; ValueError if there is none of this name."""
    kind = ENVIRONMENTS.get(name)
    if kind is None or not issubclass(kind, ContextGrid):
        raise ValueError(unknown("scenario", name, (*SCENARIOS, *further())))
    return kind


def kind_of(scenario: str, context: str) -> str:
    """Return the kind of a context: single, independent, dependent, observation, ..."""
    return scenario_of(scenario).kind_names[values_of_context(context)["kind"]]


def baseline_of(scenario: str, context: str) -> str:
    """Return the name of the context without an earlier draw and without known facts."""
    values = values_of_context(context)
    plain = {name: ABSENT for name in values} | {"kind": 0}
    plain |= {name: values[name] for name in scenario_of(scenario).shared}
    return context_name(plain, list(plain.values()))


def context_table(beliefs: RevealedBeliefs, *, seed: int = 0) -> pd.DataFrame:
    """Return one row per context: distances of the normalised belief, and mass on the impossible.

    Parameters
    ----------
    seed : Seed of the samples from the truth.

    Returns
    -------
    DataFrame : Columns scenario, context, kind, draws, retained, flag; chebyshev, manhattan and
        kl_sum, each with NAME_noise, the mean distance of as many draws from the truth (0 where
        nothing was sampled); excluded, the share of the belief on impossible outcomes, and
        excluded_outcomes, their number (NaN and 0 where all are possible). Values are NaN in
        flagged contexts.
    """
    rows: list[dict[str, Any]] = []
    for belief in beliefs:
        p, impossible = belief.truth, belief.truth <= 0
        row: dict[str, Any] = {
            "scenario": belief.scenario, "context": belief.name,
            "kind": kind_of(belief.scenario, belief.name), "draws": belief.draws,
            "retained": belief.retained, "flag": belief.flag,
        }  # fmt: skip
        values: Mapping[str, Any] = dict.fromkeys(DISTANCES, np.nan)
        noise, excluded = np.full(3, np.nan), np.nan
        if not belief.flag:
            q = belief.normalised
            values = distances_of(p, q)
            noise = (
                _noise(tuple(p.tolist()), int(belief.count.sum()), seed)
                if belief.draws
                else np.zeros(3)
            )
            excluded = q[impossible].sum() if impossible.any() else np.nan
        for name, shown in zip(DISTANCES, noise, strict=True):
            row |= {name: float(values[name]), f"{name}_noise": shown}
        rows.append(row | {"excluded": excluded, "excluded_outcomes": int(impossible.sum())})
    return pd.DataFrame(rows)


@lru_cache(maxsize=20_000)
def _noise(truth: tuple[float, ...], n: int, seed: int) -> Array:
    """Return the mean of each distance over samples of n draws from the truth, [3]."""
    drawn = session_stream(seed, 23, n).multinomial(n, truth, size=REPLICATES) / n
    by_name = distances_of(np.array(truth), drawn)
    return np.array([by_name[name].mean() for name in DISTANCES])


def increases(table: pd.DataFrame, value: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """Return how much larger a value is in each context than in its baseline.

    Few draws are away from the truth by chance, the farther the more outcomes there are. Where the
    table says how far (VALUE_noise), this is subtracted from both.

    Parameters
    ----------
    table : Rows with scenario, context, kind and the value, as `context_table` makes them.
    value : The column of the value.
    by : Columns within which baselines are looked up, such as that of the participant.

    Returns
    -------
    DataFrame : The rows of contexts that are not baselines, with the columns baseline (its name),
        baseline_value (without its noise) and increase; NaN where either has no value or the
        baseline has no question.
    """
    keys = [*by, "scenario"]
    names = [baseline_of(s, c) for s, c in zip(table["scenario"], table["context"], strict=True)]
    rows = table.assign(baseline=names, increase=table[value] - table.get(f"{value}_noise", 0.0))
    plain = rows[rows["context"] == rows["baseline"]]
    means = plain.groupby([*keys, "context"], sort=False)["increase"].mean()
    others = rows[rows["context"] != rows["baseline"]]
    result = others.join(means.rename("baseline_value"), on=[*keys, "baseline"])
    return result.assign(increase=result["increase"] - result["baseline_value"])


# Values of contexts lie between these bounds, and so do intervals of their means.
BOUNDS = {
    "chebyshev": (0.0, 1.0),
    "manhattan": (0.0, 2.0),
    "kl_sum": (0.0, np.inf),
    "kl_truth_belief": (0.0, np.inf),
    "kl_belief_truth": (0.0, np.inf),
    "error": (0.0, 1.0),
    "excluded": (0.0, 1.0),
    "retained": (0.0, 1.0),
    "increase": (-1.0, 1.0),
    "likeliest": (-1.0, 1.0),
}
MEANS = ("value", "low", "high", "n", "standard_error", "freedom")


def context_means(
    rows: pd.DataFrame, value: str, keys: Sequence[str], shared: str = ""
) -> pd.DataFrame:
    """Return the mean of a column over the contexts of each group, with its t interval.

    Contexts with the same value of the column `shared` share an error, as those with the same
    baseline do. So the mean and its interval are over the means of each such value. If all values
    are equal, the interval is the mean itself.

    Returns
    -------
    DataFrame : The keys, value, low, high (95%), n (contexts, or values of `shared`, with a value),
        standard_error and freedom.
    """
    if shared:
        rows = rows.groupby([*keys, shared], sort=False)[value].mean().reset_index()
    result = []
    for key, group in rows.groupby(list(keys), sort=False):
        values = group[value].to_numpy(dtype=float)
        n = int(np.isfinite(values).sum())
        tests = t_tests(values[None], bounds=BOUNDS.get(value, (-np.inf, np.inf)))
        mean, error, low, high, *_ = tests.first.values()
        if n > 1 and not np.isfinite(low):
            low = high = mean
        row = (mean if n else np.nan, low, high, n, error, n - 1.0)
        result.append((*key, *row))
    return pd.DataFrame(result, columns=[*keys, *MEANS])
