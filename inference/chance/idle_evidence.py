"""How far irrelevant evidence moves beliefs, as a signed effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials
from knownminds.environments.chance.counts import EARLIER
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Values, with_columns
from knownminds.inference.session_measure import PlacedMeasure, SimulatedMeasure

from .belief_contexts import (
    KINDS,
    SHARED,
    baseline_of,
    context_means,
    kind_of,
    values_of_context,
)
from .revealed_belief import RevealedBeliefs

# These contexts tell something that has no influence; the name says what.
IDLE: Mapping[str, str] = {"independent": "earlier outcome", "aside": "idle fact"}
PLACES = {"aside": ("counts", "linked_coins"), "independent": ("counts",)}
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
    DataFrame
        One row per context with such evidence: scenario, evidence ("earlier outcome" or "idle
        fact"), context, baseline, outcome, its share with the evidence (belief) and without
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
    DataFrame
        Columns scenario, evidence, value, low, high, contexts and baselines.
    """
    keys = ["scenario", "evidence"]
    means = context_means(shifts, "value", keys, "baseline").rename(columns={"n": "baselines"})
    contexts = shifts.groupby(keys)["context"].size().rename("contexts")
    return means.join(contexts, on=keys)[[*keys, "value", "low", "high", "contexts", "baselines"]]


_COLUMNS = [
    "scenario", "evidence", "context", "baseline", "outcome", "belief", "baseline_belief", "value",
    "low", "high",
]  # fmt: skip
# The numbers of these kinds of contexts in trials.
_CODES: Mapping[str, Mapping[str, int]] = {
    name: {kind: code for code, kind in enumerate(KINDS[name])} for name in PLACES["aside"]
}


@dataclass(eq=False, kw_only=True)
class IdlePull(SimulatedMeasure):
    """How much more often an outcome is said after irrelevant evidence has named it.

    Over the contexts with such evidence, it is the share of answers that say the named outcome,
    minus the share of the same outcome in the context that lacks only the evidence. It is above 0
    for a move towards the named outcome, and below 0 for a move away. An agent that is not moved
    has 0, whatever else it believes.

    Its size in an agent with a given bias depends on the contexts, so its truth is that of an
    experiment: by default `counts` as it ships; `in_place` takes another.

    Parameters
    ----------
    kind
        "aside": a fact names a number. "independent": the last of several earlier counts, of which
        the text says that they have no influence.
    """

    kind: str

    def in_place(self, environment: Environment) -> PlacedMeasure:
        """Return the measure whose truth is that over the contexts of the experiment.

        Raises
        ------
        ValueError
            If it has no context with such evidence together with the same context without it.
        """
        kinds = environment.settings.get("kinds", ())
        form = environment.settings.get("form")
        named = environment.name in PLACES[self.kind]
        if not named or form == "stated" or not {self.kind, "single"} <= set(kinds):
            raise ValueError(
                f"{self.name} is read off what is said in {', '.join(PLACES[self.kind])} with and "
                f'without such evidence; got {environment!r}. Set kinds to "single" and '
                f'"{self.kind}" at least.'
            )
        others = {"linked_coins": "correlation_weigher"}
        violator = others.get(environment.name, self.violator)
        if self.environments == (environment.name,):
            return super().in_place(environment)
        return _moved(self, environment.name, violator).in_place(environment)

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean difference over the contexts with evidence."""
        scenario = self.environments[0]
        shared, codes = list(SHARED[scenario]), _CODES[scenario]
        frame = with_columns(trials, self.name, [*shared, "kind", "action"])
        subject, names = pd.factorize(frame["subject"])
        action = trials.numbers("action")
        rows = pd.DataFrame(
            {
                "subject": subject,
                "kind": frame["kind"].to_numpy(dtype=float),
                "group": frame.groupby(shared, sort=False).ngroup().to_numpy(),
                "action": action,
                "named": self._named(frame),
            }
        )[self.reads(trials) & (action >= 0)]
        cell = ["subject", "group", "named"]
        with_it = rows[rows["kind"] == codes[self.kind]]
        named = with_it[["group", "named"]].drop_duplicates()
        plain = rows[rows["kind"] == codes["single"]].drop(columns="named").merge(named, on="group")
        shown, without = (
            side.assign(said=side["action"] == side["named"]).groupby(cell)["said"].mean()
            for side in (with_it, plain)
        )
        difference = (shown - without).dropna().groupby(level="subject").mean()
        value = difference.reindex(range(len(names))).to_numpy(dtype=float)
        return Values.of(value, "no answers with and without evidence that should not matter")

    def reads(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials have such evidence, or are their baseline, [rows]."""
        frame, codes = trials.frame, _CODES[self.environments[0]]
        code = frame["kind"].to_numpy(dtype=float)
        mask = np.isin(code, [codes["single"], codes[self.kind]])
        if "environment" in frame:
            mask &= (frame["environment"] == self.environments[0]).to_numpy()
        return np.asarray(mask, dtype=bool)

    def _named(self, frame: pd.DataFrame) -> Array:
        """Return the outcome that the evidence names, NaN for none, [rows]."""
        if self.kind == "aside":
            return frame["fact"].to_numpy(dtype=float)
        earlier = frame[list(EARLIER)].astype(float)
        last: Array = earlier.where(earlier >= 0).ffill(axis=1).iloc[:, -1].to_numpy(dtype=float)
        return last


@lru_cache  # one object each, since curves of dials are cached by object
def _moved(measure: IdlePull, environment: str, violator: str) -> IdlePull:
    return replace(measure, environments=(environment,), violator=violator, environment=None)


IDLE_PULLS = tuple(
    IdlePull(
        kind=kind,
        name=name,
        summary=f"how much more often {what}",
        source="ours; anchoring on what does not matter: Tversky and Kahneman 1974",
        environments=PLACES[kind][:1],
        bounds=(-1.0, 1.0),
        rational="random_responder",
        violator="evidence_weigher",
        dial=Dial({bias: 1.0}, reach=2.0, steps=9),
    )
    for kind, name, bias, what in (
        ("aside", "idle_fact_pull", "bias_fact",
         "a number is said once a fact that does not matter names it"),
        ("independent", "idle_count_pull", "bias_repeat",
         "a count is said right after earlier ones without influence"),
    )
)  # fmt: skip
