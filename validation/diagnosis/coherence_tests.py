"""The five tests of coherence of one participant's answers, each beside its published variant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from knownminds.inference.diagnosis.belief_decisions import ELICITATIONS, BeliefDecisions
from knownminds.inference.diagnosis.conditional_independence import conditional_independence
from knownminds.inference.diagnosis.elicitation_consistency import elicitation_consistency
from knownminds.inference.diagnosis.iterated_expectation import iterated_expectation
from knownminds.inference.diagnosis.monotone_choice import monotone_choice
from knownminds.inference.diagnosis.predictive_gain import Learner, predictive_gain

FALLS = " falls"  # ends the names of rows that test single pairs of actions
TESTS = (
    "conditional independence",
    "predictive gain",
    "monotone choice",
    "elicitation consistency",
    "iterated expectation",
)
INDEPENDENCE, GAIN, MONOTONE, ELICITATION, ITERATED = TESTS
NUMBERS = (
    "value", "low", "high", "null", "p_value", "n", "published", "published_low",
    "published_high", "percentile_low", "percentile_high",
)  # fmt: skip
# How a row is named by the elicitation of p(z | x): the published one goes without saying.
PARTS = {"distribution": "", "separate": ", asked singly"}

Rows = Iterator[dict[str, Any]]


def coherence_tests(
    data: BeliefDecisions, learner: Learner, permutations: int, bootstraps: int, seed: int
) -> pd.DataFrame:
    """Test one participant's answers to `diagnosis` for coherence.

    Each test has the null value that a rational decider with truthful reports has, with a test of
    that, and beside it the published variant, which may accuse such deciders. A noisy report makes
    decisions depend on the state given what was *stated*: the first two tests then accuse the
    report. A test that the answers do not allow is a row that says why.

    Parameters
    ----------
    learner
        Of the predictive gain, see `predictive_gain`.
    permutations, bootstraps, seed
        Of the tests, of the intervals, and of both.

    Returns
    -------
    DataFrame
        One row per test and variant: test, of (which variant), value, low and high (95%), null
        (value under the hypothesis), p_value, n, unit, excluded (counts by reason, in words), the
        published variant with its interval and finding ("violation", "none" or ""), of conditional
        independence the percentile interval of the published bootstraps, and status: "ok", or why
        there is no value.
    """
    told = [name for name in data.frame if str(name).startswith("told_")]
    bare = BeliefDecisions(data.frame.drop(columns=told), data.counts)
    how = {"bootstraps": bootstraps, "seed": seed}
    both = {**how, "replicates": permutations}
    rows: list[dict[str, Any]] = []
    for calibrated in (False, True):
        of = "calibrated" if calibrated else ""
        rows += _rows(INDEPENDENCE, of, partial(_independence, data, calibrated, both))
    rows += _rows(GAIN, "beyond belief, %", partial(_gain, data, learner, both))
    rows += _rows(MONOTONE, "any pair turns", partial(_monotone, bare, how))
    rows += _rows(ELICITATION, "", partial(_elicitation, bare, both))
    for elicitation in bare.part_elicitations or (None,):
        of = f"parts over whole{PARTS[elicitation or 'distribution']}"
        rows += _rows(ITERATED, of, partial(_iterated, bare, elicitation, how))
    return pd.DataFrame(rows).astype(dict.fromkeys(NUMBERS, float))


def _rows(test: str, of: str, find: Callable[[], Rows]) -> list[dict[str, Any]]:
    """Return the rows of a test; one that cannot be had is a row with the reason."""
    nothing = dict.fromkeys(NUMBERS, np.nan) | {"unit": "row", "excluded": "", "finding": ""}
    nothing |= {"test": test, "of": of, "status": "ok"}
    try:
        return [nothing | row for row in find()]
    except (ValueError, ImportError) as error:
        return [nothing | {"status": str(error)}]


def _ends(name: str, value: float, low: float, high: float) -> dict[str, float]:
    return {name: value} | _low_high(name, low, high)


def _low_high(name: str, low: float, high: float) -> dict[str, float]:
    before = "" if name == "value" else f"{name}_"
    return {f"{before}low": low, f"{before}high": high}


def _counts(excluded: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {why}" for why, n in excluded.items() if n)


def _accused(violation: bool) -> str:
    return "violation" if violation else "none"


def _independence(data: BeliefDecisions, calibrated: bool, how: Mapping[str, Any]) -> Rows:
    found = conditional_independence(data, calibrated=calibrated, **how)
    row = _ends("value", found.estimate, found.low, found.high) | {
        "null": found.null_mean, "p_value": found.p_value, "n": found.rows,
        "excluded": _counts(found.excluded),
    }  # fmt: skip
    if found.published is not None:
        read = found.published
        row |= _ends("published", found.estimate, read.low, read.high)
        row |= _low_high("percentile", read.percentile_low, read.percentile_high)
        row["finding"] = _accused(read.above_zero)
    yield row


def _gain(data: BeliefDecisions, learner: Learner, how: Mapping[str, Any]) -> Rows:
    found = predictive_gain(data, features=data.evidence, learner=learner, **how)
    for of, gain in (("beyond belief, %", found.belief), ("and evidence, %", found.evidence)):
        if gain is not None and gain.excess is not None:
            excess = gain.excess
            yield {
                "of": of, **_ends("value", excess.percent, excess.low, excess.high), "null": 0.0,
                "p_value": gain.p_value, "n": found.rows, "excluded": _counts(found.excluded),
                **_ends("published", gain.percent, gain.low, gain.high),
                "finding": _accused(gain.above_zero),
            }  # fmt: skip


def _monotone(data: BeliefDecisions, how: Mapping[str, Any]) -> Rows:
    found = monotone_choice(data, **how)
    yield {
        **_ends("value", found.turned, found.turned_low, found.turned_high), "null": 0.0,
        "p_value": found.p_turning, "n": int(found.n.sum()), "excluded": _counts(found.excluded),
        **_ends("published", found.fraction, found.low, found.high),
        "finding": _accused(found.fraction > 0),
    }  # fmt: skip
    for pair in found.pairs:
        of = {"of": f"{pair.first} over {pair.second}{FALLS}"}
        if not pair.testable:
            yield of | {"status": "no pair of bins with both actions"}
            continue
        share = pair.violated_holm / pair.testable
        yield of | {
            **_ends("value", share, pair.holm_low, pair.holm_high), "null": 0.0,
            "p_value": pair.p_falling, "n": pair.testable, "unit": "pair of bins",
            **_ends("published", pair.fraction, pair.fraction_low, pair.fraction_high),
            "finding": _accused(pair.violated > 0),
        }  # fmt: skip


def _elicitation(data: BeliefDecisions, how: Mapping[str, Any]) -> Rows:
    found = elicitation_consistency(data, **how)
    yield {
        "of": "sd of plain", **_ends("value", found.spread, found.spread_low, found.spread_high),
        "n": found.contexts, "unit": "context",
        "status": "ok" if np.isfinite(found.spread) else "no context was asked about twice",
    }  # fmt: skip
    for one in found.distances:
        missing = {f"no {e}": found.missing.get(e, 0) for e in (ELICITATIONS[0], one.elicitation)}
        yield {
            "of": one.elicitation, **_ends("value", one.rmse_means, one.means_low, one.means_high),
            "null": one.null_means, "p_value": one.p_value, "n": one.contexts, "unit": "context",
            **_ends("published", one.rmse_answers, one.answers_low, one.answers_high),
            "excluded": _counts(missing),
        }  # fmt: skip


def _iterated(data: BeliefDecisions, elicitation: str | None, how: Mapping[str, Any]) -> Rows:
    found = iterated_expectation(data, elicitation=elicitation, **how)
    apart = PARTS[elicitation or found.elicitation]
    gap, stated = found.gap, found.stated
    yield {
        "of": f"parts over whole{apart}", **_ends("value", gap.value, gap.low, gap.high),
        "null": 0.0, "p_value": gap.p_value, "n": gap.contexts, "unit": "context",
        "excluded": _counts(found.excluded),
        **_ends("published", stated.value, stated.low, stated.high),
    }  # fmt: skip
    if found.rounding is not None:
        exact = found.rounding
        yield {
            "of": f"ratio if exact{apart}", **_ends("value", exact.value, exact.low, exact.high),
            "n": exact.rows,
        }  # fmt: skip
