"""The five tests of coherence of one participant's answers, each beside its published variant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from knownminds.inference.diagnosis.belief_decisions import BeliefDecisions
from knownminds.inference.diagnosis.coherence_test import CoherenceTest
from knownminds.inference.diagnosis.conditional_independence import conditional_independence
from knownminds.inference.diagnosis.elicitation_consistency import elicitation_consistency
from knownminds.inference.diagnosis.iterated_expectation import SEPARATE, iterated_expectation
from knownminds.inference.diagnosis.monotone_choice import FALLS, monotone_choice
from knownminds.inference.diagnosis.predictive_gain import Learner, predictive_gain

TESTS = (
    "conditional independence",
    "predictive gain",
    "monotone choice",
    "elicitation consistency",
    "iterated expectation",
)
INDEPENDENCE, GAIN, MONOTONE, ELICITATION, ITERATED = TESTS
CALIBRATED = "calibrated"  # conditional independence, once reports are calibrated
LEVEL = 0.05
NUMBERS = (
    "value", "low", "high", "null", "p_value", "n", "published", "published_low",
    "published_high", "percentile_low", "percentile_high",
)  # fmt: skip


def coherence_tests(
    data: BeliefDecisions,
    learner: Learner,
    permutations: int,
    bootstraps: int,
    seed: int,
    tests: Sequence[str] = (*TESTS, CALIBRATED),
) -> pd.DataFrame:
    """Test one participant's answers to `diagnosis` for coherence.

    Each test has the null value that a rational decider with truthful reports has, with a test of
    that, and beside it the published variant, which may accuse such deciders. A noisy report makes
    decisions depend on the state given what was *stated*: the first two tests then accuse the
    report. A test that the answers do not allow is a row that says why.

    Parameters
    ----------
    learner : Of the predictive gain, see `predictive_gain`.
    permutations, bootstraps, seed : Of the tests, of the intervals, and of both.
    tests : Which are computed.

    Returns
    -------
    DataFrame : One row per test and variant: test, of (which variant), value, low and high (95%),
        null (value under the hypothesis), p_value, n, unit, excluded (counts by reason, in words),
        the published variant with its interval and finding ("violation", "none" or ""), of
        conditional independence the percentile interval of the published bootstraps, and status:
        "ok", or why there is no value.
    """
    columns = [name for name in data.frame if str(name).startswith("told_")]
    bare = BeliefDecisions(data.frame.drop(columns=columns), data.counts)
    how: dict[str, Any] = {"bootstraps": bootstraps, "seed": seed}
    both = {**how, "replicates": permutations}
    rows: list[dict[str, Any]] = []
    for of, name in (("", INDEPENDENCE), (CALIBRATED, CALIBRATED)):
        test = partial(conditional_independence, data, calibrated=bool(of), **both)
        rows += _rows(INDEPENDENCE, of, test, "published_low") if name in tests else []
    if GAIN in tests:
        test = partial(predictive_gain, data, features=data.evidence, learner=learner, **both)
        rows += _rows(GAIN, "beyond belief, %", test, "published_low")
    if MONOTONE in tests:
        rows += _rows(
            MONOTONE, "any pair turns", partial(monotone_choice, bare, **how), "published"
        )
    if ELICITATION in tests:
        rows += _rows(ELICITATION, "", partial(elicitation_consistency, bare, **both))
    for elicitation in (bare.part_elicitations or (None,)) if ITERATED in tests else ():
        of = f"parts over whole{SEPARATE[elicitation or 'distribution']}"
        test = partial(iterated_expectation, bare, elicitation=elicitation, **how)
        rows += _rows(ITERATED, of, test)
    return pd.DataFrame(rows).astype(dict.fromkeys(NUMBERS, float))


def findings(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return what each test says: one row per test and the values of some columns.

    A test with several rows has the smallest of their p-values times their number. Falls of single
    pairs of actions are no violation of monotone choice.

    Returns
    -------
    DataFrame : The keys, test, p_value, rejects (at .05), published (whether the published reading
        finds a violation) and percentile (whether the percentile interval of the published
        bootstraps lies above zero, which is nobody's reading); None where there is no such finding.
    """
    names = [*keys, "test"]
    tested = rows[rows["p_value"].notna() & ~rows["of"].str.endswith(FALLS)]
    groups = tested.groupby(names, sort=False)
    p = groups["p_value"].min().mul(groups.size()).clip(upper=1.0)
    every = rows.assign(
        published=(rows["finding"] == "violation").where(rows["finding"] != ""),
        percentile=(rows["percentile_low"] > 0).where(rows["percentile_low"].notna()),
    ).groupby(names, sort=False)[["published", "percentile"]]
    some = every.agg(_any_known)
    return p.to_frame("p_value").assign(rejects=p <= LEVEL).join(some).reset_index()


def _any_known(values: pd.Series[Any]) -> bool | None:
    """Say whether any of the values that are known is true; None if none is known."""
    known = values.dropna()
    return bool(known.any()) if len(known) else None


def _rows(
    test: str, of: str, find: Callable[[], CoherenceTest], judged: str = ""
) -> list[dict[str, Any]]:
    """Return the rows of a test; one that cannot be had is a row with the reason.

    The published reading finds a violation where the column `judged` is above 0.
    """
    nothing = dict.fromkeys(NUMBERS, np.nan) | {"unit": "row", "excluded": "", "finding": ""}
    nothing |= {"test": test, "of": of, "status": "ok"}
    try:
        table = find().table
    except (ValueError, ImportError) as error:
        return [nothing | {"status": str(error)}]
    rows: list[dict[str, Any]] = []
    for row in table[[name for name in table if name in nothing]].to_dict("records"):
        row["excluded"] = ", ".join(f"{n} {why}" for why, n in row["excluded"].items() if n)
        if judged and np.isfinite(row["published"]):
            row["finding"] = "violation" if row[judged] > 0 else "none"
        rows.append({**nothing, **{str(name): value for name, value in row.items()}})
    return rows
