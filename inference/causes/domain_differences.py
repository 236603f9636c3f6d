"""Whether the domain of a story, or who answers, shifts the judgements as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy

from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.ties import tied

from .causal_answers import CELL, answers_by

DOMAINS, AGENTS = "domains within an agent", "agents within a domain"


@dataclass(frozen=True)
class DomainDifferences(Result):
    """Tests of domains within each agent and of agents within each domain.

    Parameters
    ----------
    omnibus : One row per test of all groups: family, of (the agent or domain), groups, statistic,
        freedom, p_value, p_adjusted (Benjamini and Hochberg 1995, over the family), n and status.
    pairs : One row per pair of groups: family, of, first, second, n_first, n_second, u, r
        (rank-biserial: positive where the first tends higher), p_value, p_adjusted (over the pairs
        of the same agent or domain) and status.
    matched : Whether answers were compared item by item.
    excluded : Trials without an answer.
    """

    omnibus: pd.DataFrame
    pairs: pd.DataFrame
    matched: bool
    excluded: int

    def to_frame(self) -> pd.DataFrame:
        """One row per test of all groups."""
        return self.omnibus.copy()


def domain_differences(
    trials: Trials | pd.DataFrame,
    agent: str = "subject",
    *,
    matched: bool = False,
    pairs: bool = True,
) -> DomainDifferences:
    """Test whether judgements differ across domains within agents, and across agents.

    As published, answers to all tasks are pooled, and the test is that of Kruskal and Wallis
    (1952), with Mann and Whitney's (1947) for the pairs. It then sees tasks that are far apart as
    noise, and rejects far less often than it might: the spread between tasks hides shifts between
    domains. The matched form compares the same questions (sense, direction and task) instead:
    Friedman's (1937) test, and Wilcoxon's (1945) for the pairs.

    Parameters
    ----------
    trials
        Collider trials, or what `causal_answers` makes of them.
    agent
        The column that tells agents apart.
    matched
        Whether to compare item by item. Repeated answers to an item are averaged then.
    pairs
        Whether to compare agents, or domains, two by two as well.

    Raises
    ------
    ValueError
        If there is no such column, or neither several domains nor several agents.
    """
    answers = answers_by(trials, agent)
    if max(answers[agent].nunique(), answers["domain"].nunique()) < 2:
        raise ValueError(
            "Differences need several domains or several agents; got answers of one agent in one "
            "domain."
        )
    held = answers[answers["answer"].notna()].sort_values("domain", kind="stable")
    omnibus: list[dict[str, Any]] = []
    compared: list[dict[str, Any]] = []
    for family, of, across in ((DOMAINS, agent, "domain"), (AGENTS, "domain", agent)):
        if answers[across].nunique() < 2:
            continue
        rows: list[dict[str, Any]] = []
        for name, part in held.groupby(of, sort=False):
            row = {"family": family, "of": str(name)}
            rows.append(row | _all_groups(part, across, matched))
            if pairs:
                result = [row | pair for pair in _pairs(part, across, matched)]
                adjust(result)
                compared += result
        adjust(rows)
        omnibus += rows
    return DomainDifferences(
        pd.DataFrame(omnibus), pd.DataFrame(compared), matched, int(len(answers) - len(held))
    )


def _all_groups(part: pd.DataFrame, across: str, matched: bool) -> dict[str, Any]:
    """Test all groups of a part at once."""
    row: dict[str, Any] = {"groups": part[across].nunique(), "statistic": np.nan}
    row |= {"freedom": max(row["groups"] - 1, 0), "p_value": np.nan, "p_adjusted": np.nan}
    if matched:
        table = _items(part, across)
        samples = [table[name].to_numpy() for name in table]
    else:
        samples = [g["answer"].to_numpy() for _, g in part.groupby(across, sort=False)]
    row["n"] = int(sum(map(len, samples)))
    values = np.concatenate(samples) if samples else np.zeros(0)
    if len(samples) < 2:
        return row | {"status": "a single group"}
    if len(values) == 0:
        return row | {"status": "no item that all answered"}
    samples = list(tied(*samples))
    values = np.concatenate(samples)
    if (values == values[0]).all() or (matched and all((s == samples[0]).all() for s in samples)):
        return row | {"status": "all answers are the same"}
    result: Any
    if not matched:
        result = scipy.stats.kruskal(*samples)
    elif len(samples) == 2:
        result = _signed(samples[0], samples[1])
    else:
        result = scipy.stats.friedmanchisquare(*samples)
    return row | {
        "statistic": float(result.statistic), "p_value": float(result.pvalue), "status": "ok"
    }  # fmt: skip


def _pairs(part: pd.DataFrame, across: str, matched: bool) -> Iterable[dict[str, Any]]:
    """Test each pair of groups of a part."""
    groups = {name: group for name, group in part.groupby(across, sort=False)}
    for one, other in combinations(groups, 2):
        if matched:  # the items that both answered, whoever else did
            table = _items(pd.concat([groups[one], groups[other]]), across)
            first, second = (table[name].to_numpy() for name in (one, other))
        else:
            first, second = (groups[name]["answer"].to_numpy() for name in (one, other))
        first, second = tied(first, second)
        row: dict[str, Any] = {"first": str(one), "second": str(other)}
        row |= {"n_first": len(first), "n_second": len(second), "u": np.nan, "r": np.nan}
        row |= {"p_value": np.nan, "p_adjusted": np.nan, "status": "ok"}
        if len(first) == 0:
            row["status"] = "no item that both answered"
        elif (first == second).all() if matched else np.ptp(np.append(first, second)) == 0:
            row |= {"r": 0.0, "status": "all answers are the same"}
        elif matched:
            row |= {"r": _matched_r(first, second), "p_value": float(_signed(first, second).pvalue)}
        else:
            result = scipy.stats.mannwhitneyu(first, second, alternative="two-sided")
            row |= {"u": float(result.statistic), "p_value": float(result.pvalue)}
            row["r"] = 2 * row["u"] / (len(first) * len(second)) - 1
        yield row


def _items(part: pd.DataFrame, across: str) -> pd.DataFrame:
    """Return the mean answer to each item that all groups answered, [items, groups]."""
    item = [name for name in CELL if name != across]
    means = part.groupby([*item, across], sort=False)["answer"].mean()
    return means.unstack(across).dropna()


def _signed(first: Array, second: Array) -> Any:
    """Wilcoxon's test of pairs; items answered alike count for both sides (Pratt 1959)."""
    options: Any = {"zero_method": "pratt", "method": "asymptotic"}
    return scipy.stats.wilcoxon(_apart(first, second), **options)


def _matched_r(first: Array, second: Array) -> float:
    """Return the matched-pairs rank-biserial correlation (Kerby 2014)."""
    difference = _apart(first, second)
    ranks = scipy.stats.rankdata(np.abs(difference)) * np.sign(difference)
    return float(ranks.sum() / np.abs(ranks).sum())


def _apart(first: Array, second: Array) -> Array:
    """Return the differences of pairs, those that differ in size by rounding alone made equal."""
    difference = first - second
    size = tied(np.abs(difference), scale=max(np.abs(first).max(), np.abs(second).max()))[0]
    return np.sign(difference) * size


def adjust(rows: list[dict[str, Any]]) -> None:
    """Adjust the p values of all tests that could be made (Benjamini and Hochberg 1995)."""
    made = [row for row in rows if np.isfinite(row["p_value"])]
    if made:
        adjusted = scipy.stats.false_discovery_control(
            [row["p_value"] for row in made], method="bh"
        )
        for row, p_value in zip(made, adjusted, strict=True):
            row["p_adjusted"] = float(p_value)
