"""How far irrelevant evidence moves beliefs, as a signed effect."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from knownminds.environments.later import pandas as pd

from .belief_contexts import baseline_of, context_means, kind_of, values_of_context
from .revealed_belief import RevealedBeliefs

# These contexts tell something that has no influence; the name says what.
IDLE: Mapping[str, str] = {"independent": "earlier outcome", "aside": "idle fact"}
ABSENT = -1


def belief_shifts(beliefs: RevealedBeliefs) -> pd.DataFrame:
    """Compute how far irrelevant evidence moves beliefs towards the outcome that it names.

    Evidence is an earlier outcome that has no influence (kind "independent"; of several, the last
    one), or a fact that names a number ("aside"). The shift is the share of the named outcome with
    the evidence minus its share in the context that lacks only the evidence. It is above 0 for a
    move towards the named outcome, and below 0 for a move away from it. An agent that is not moved
    has 0, whatever else it believes. Flagged contexts are left out, and so are contexts whose
    baseline has no question or is flagged.

    Returns
    -------
    DataFrame : One row per context with such evidence: scenario, evidence ("earlier outcome" or
        "idle fact"), context, baseline, outcome, its share with the evidence (belief) and without
        (baseline_belief), value, and its 95% interval. The interval is Newcombe's for sampled
        beliefs, the range of possible values for top-k tables, and a point for exact beliefs.
    """
    by_name = {(belief.scenario, belief.name): belief for belief in beliefs}
    rows = []
    for (scenario, context), belief in by_name.items():
        evidence = IDLE.get(kind_of(scenario, context))
        plain = by_name.get((scenario, baseline_of(scenario, context)))
        if evidence is None or plain is None or belief.flag or plain.flag:
            continue
        fact = values_of_context(context).get("fact", ABSENT)
        named = str(fact) if fact != ABSENT else belief.previous
        if named not in belief.outcomes or named not in plain.outcomes:
            continue
        shares = []
        for each in (belief, plain):
            position = each.outcomes.index(named)
            (low,), (high,) = each.interval(np.eye(len(each.outcomes))[[position]])
            shares.append((float(each.normalised[position]), float(low), float(high)))
        (one, low, high), (two, least, most) = shares
        if belief.draws and plain.draws:
            below = np.hypot(one - low, most - two)
            above = np.hypot(high - one, two - least)
            ends = (one - two - below, one - two + above)
        else:
            ends = (low - most, high - least)
        rows.append(
            {
                "scenario": scenario,
                "evidence": evidence,
                "context": context,
                "baseline": plain.name,
                "outcome": named,
                "belief": one,
                "baseline_belief": two,
                "value": one - two,
                "low": ends[0],
                "high": ends[1],
            }
        )
    return pd.DataFrame(rows, columns=_COLUMNS)


def mean_shifts(shifts: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of `belief_shifts` by scenario and evidence.

    Contexts with the same baseline share its error. So the 95% interval is Student's over the means
    of groups with the same baseline; NaN for fewer than two groups.

    Returns
    -------
    DataFrame : Columns scenario, evidence, value, low, high, contexts and baselines.
    """
    keys = ["scenario", "evidence"]
    means = context_means(shifts, "value", keys, "baseline").rename(columns={"n": "baselines"})
    contexts = shifts.groupby(keys)["context"].size().rename("contexts")
    return means.join(contexts, on=keys)[[*keys, "value", "low", "high", "contexts", "baselines"]]


_COLUMNS = [
    "scenario", "evidence", "context", "baseline", "outcome", "belief", "baseline_belief", "value",
    "low", "high",
]  # fmt: skip
