"""Tests of whether the domain of a story, or the agent, shifts the judgements as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import scipy

from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd

from .causal_answers import CELL, DIGITS, answers_by

DOMAINS, AGENTS = "domains within an agent", "agents within a domain"


def domain_differences(
    trials: Trials | pd.DataFrame, agent: str = "subject", *, matched: bool = False
) -> pd.DataFrame:
    """Test whether judgements differ across domains within agents, and across agents.

    As published, answers to all tasks are pooled, and the test is that of Kruskal and Wallis
    (1952). It treats the differences between tasks as noise, which hides shifts between domains, so
    that it rejects far too seldom. The matched form compares the same questions (sense, direction
    and task) instead, with Friedman's (1937) test, and with Wilcoxon's (1945) for two groups.

    Parameters
    ----------
    trials : Collider trials, or what `causal_answers` makes of them.
    agent : The column that tells agents apart.
    matched : Whether to compare item by item. Repeated answers to an item are then averaged.

    Returns
    -------
    DataFrame : One row per test of all groups: family, of (the agent or domain), groups, statistic,
        freedom, p_value, p_adjusted (Benjamini and Hochberg 1995, over the family), n and status.

    Raises
    ------
    ValueError : If there is no such column, or neither several domains nor several agents.
    """
    families: list[dict[str, Any]] = []
    for family, parts, across in _families(trials, agent):
        rows = [
            {"family": family, "of": name} | _all_groups(part, across, matched)
            for name, part in parts.items()
        ]
        adjust(rows)
        families += rows
    return pd.DataFrame(families)


def domain_pairs(trials: Trials | pd.DataFrame, agent: str = "subject") -> pd.DataFrame:
    """Compare agents within each domain, and domains within each agent, two by two, as published.

    The test is that of Mann and Whitney (1947), on the answers to all tasks.

    Returns
    -------
    DataFrame : One row per pair of groups: family, of, first, second, n_first, n_second, u, r
        (rank-biserial: positive where the first tends higher), p_value, p_adjusted (over the pairs
        of the same agent or domain) and status.

    Raises
    ------
    ValueError : As for `domain_differences`.
    """
    every: list[dict[str, Any]] = []
    for family, parts, across in _families(trials, agent):
        for name, part in parts.items():
            groups = dict(iter(part.groupby(across, sort=False)["answer"]))
            rows = [
                {"family": family, "of": name}
                | _pair(str(one), str(other), groups[one], groups[other])
                for one, other in combinations(groups, 2)
            ]
            adjust(rows)
            every += rows
    return pd.DataFrame(every)


def _families(
    trials: Trials | pd.DataFrame, agent: str
) -> Iterator[tuple[str, dict[str, pd.DataFrame], str]]:
    """Yield each family, its parts by name, and the column whose groups are compared in a part."""
    answers = answers_by(trials, agent)
    if max(answers[agent].nunique(), answers["domain"].nunique()) < 2:
        raise ValueError(
            "Differences need several domains or several agents; got answers of one agent in one "
            "domain."
        )
    answered = answers[answers["answer"].notna()].sort_values("domain", kind="stable")
    for family, of, across in ((DOMAINS, agent, "domain"), (AGENTS, "domain", agent)):
        if answers[across].nunique() > 1:
            parts = answered.groupby(of, sort=False)
            yield family, {str(name): part for name, part in parts}, across


def _all_groups(part: pd.DataFrame, across: str, matched: bool) -> dict[str, Any]:
    """Test all groups of a part at once."""
    row: dict[str, Any] = {"groups": part[across].nunique(), "statistic": np.nan}
    row |= {"freedom": max(row["groups"] - 1, 0), "p_value": np.nan, "p_adjusted": np.nan}
    if matched:  # mean answers to the items that all groups answered
        item = [name for name in CELL if name != across]
        means = part.groupby([*item, across], sort=False)["answer"].mean()
        table = means.unstack(across).dropna()
        samples = [table[name].to_numpy() for name in table]
    else:
        samples = [g["answer"].to_numpy() for _, g in part.groupby(across, sort=False)]
    row["n"] = int(sum(map(len, samples)))
    if len(samples) < 2:
        return row | {"status": "a single group"}
    if row["n"] == 0:
        return row | {"status": "no item that all answered"}
    samples = [np.round(sample, DIGITS) for sample in samples]
    same = np.ptp(np.concatenate(samples)) == 0
    if same or (matched and all((s == samples[0]).all() for s in samples)):
        return row | {"status": "all answers are the same"}
    result: Any
    if not matched:
        result = scipy.stats.kruskal(*samples)
    elif len(samples) == 2:
        result = _signed(*samples)
    else:
        result = scipy.stats.friedmanchisquare(*samples)
    return row | {
        "statistic": float(result.statistic), "p_value": float(result.pvalue), "status": "ok"
    }  # fmt: skip


def _pair(one: str, other: str, answers: pd.Series, others: pd.Series) -> dict[str, Any]:
    """Test a pair of groups."""
    first, second = (np.round(side.to_numpy(), DIGITS) for side in (answers, others))
    row = {"first": one, "second": other, "n_first": len(first), "n_second": len(second)}
    row |= {"u": np.nan, "r": 0.0, "p_value": np.nan, "p_adjusted": np.nan}
    if np.ptp(np.append(first, second)) == 0:
        return row | {"status": "all answers are the same"}
    result = scipy.stats.mannwhitneyu(first, second, alternative="two-sided")
    u = float(result.statistic)
    r = 2 * u / (len(first) * len(second)) - 1
    return row | {"u": u, "r": r, "p_value": float(result.pvalue), "status": "ok"}


def _signed(first: Array, second: Array) -> Any:
    """Return Wilcoxon's test of pairs; items answered alike count for both sides (Pratt 1959).

    Differences whose sizes differ by rounding alone count as equal.
    """
    difference = first - second
    options: Any = {"zero_method": "pratt", "method": "asymptotic"}
    return scipy.stats.wilcoxon(np.round(difference, DIGITS), **options)


def adjust(rows: list[dict[str, Any]]) -> None:
    """Adjust the p values of all tests that were possible (Benjamini and Hochberg 1995)."""
    made = [row for row in rows if np.isfinite(row["p_value"])]
    if made:
        adjusted = scipy.stats.false_discovery_control(
            [row["p_value"] for row in made], method="bh"
        )
        for row, p_value in zip(made, adjusted, strict=True):
            row["p_adjusted"] = float(p_value)
