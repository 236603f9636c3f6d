"""How much more often an outcome is said after evidence without influence has named it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.chance.belief_contexts import scenario_of
from knownminds.inference.measure import Dial, Values, with_columns
from knownminds.inference.session_measure import DeclaredMeasure

from .counts import EARLIER

PLACES = {"aside": ("counts", "linked_coins"), "independent": ("counts",)}


def read(measure: DeclaredMeasure, trials: Trials, kind: str) -> Values:
    """Return each subject's mean difference over the contexts with evidence.

    Over the contexts with such evidence, it is the share of answers that say the named outcome,
    minus the share of the same outcome in the context that lacks only the evidence. It is above 0
    for a move towards the named outcome, and below 0 for a move away. An agent that is not moved
    has 0, whatever else it believes. Its size in an agent with a given bias depends on the
    contexts, so its truth is that of an experiment: by default `counts` as it ships.

    Parameters
    ----------
    kind : "aside": a fact names a number. "independent": the last of several earlier counts, of
        which the text says that they have no influence.
    """
    shared = list(scenario_of(measure.environments[0]).shared)
    codes = _codes(measure.environments[0])
    frame = with_columns(trials, measure.name, [*shared, "kind", "action"])
    subject, names = pd.factorize(frame["subject"])
    action = trials.numbers("action")
    rows = pd.DataFrame(
        {
            "subject": subject,
            "kind": frame["kind"].to_numpy(dtype=float),
            "group": frame.groupby(shared, sort=False).ngroup().to_numpy(),
            "action": action,
            "named": _named(frame, kind),
        }
    )[measure.reads(trials) & (action >= 0)]
    cell = ["subject", "group", "named"]
    with_it = rows[rows["kind"] == codes[kind]]
    named = with_it[["group", "named"]].drop_duplicates()
    plain = rows[rows["kind"] == codes["single"]].drop(columns="named").merge(named, on="group")
    shown, without = (
        side.assign(said=side["action"] == side["named"]).groupby(cell)["said"].mean()
        for side in (with_it, plain)
    )
    difference = (shown - without).dropna().groupby(level="subject").mean()
    value = difference.reindex(range(len(names))).to_numpy(dtype=float)
    return Values.of(value, "no answers with and without evidence that should not matter")


def counts(measure: DeclaredMeasure, trials: Trials, kind: str) -> NDArray[np.bool_]:
    """Say which trials have such evidence, or are their baseline, [rows]."""
    frame, codes = trials.frame, _codes(measure.environments[0])
    code = frame["kind"].to_numpy(dtype=float)
    mask = np.isin(code, [codes["single"], codes[kind]])
    if "environment" in frame:
        mask &= (frame["environment"] == measure.environments[0]).to_numpy()
    return np.asarray(mask, dtype=bool)


def at(measure: DeclaredMeasure, environment: Environment, kind: str) -> DeclaredMeasure:
    """Return the measure of an experiment that has the evidence and the same contexts without."""
    kinds = environment.settings.get("kinds", ())
    form = environment.settings.get("form")
    named = environment.name in PLACES[kind]
    if not named or form == "stated" or not {kind, "single"} <= set(kinds):
        raise ValueError(
            f"{measure.name} is read off what is said in {', '.join(PLACES[kind])} with and "
            f'without such evidence; got {environment!r}. Set kinds to "single" and '
            f'"{kind}" at least.'
        )
    if measure.environments == (environment.name,):
        return measure
    others = {"linked_coins": "correlation_weigher"}
    violator = others.get(environment.name, measure.violator)
    return _moved(measure, environment.name, violator)


def _named(frame: pd.DataFrame, kind: str) -> Array:
    """Return the outcome that the evidence names, NaN for none, [rows]."""
    if kind == "aside":
        return frame["fact"].to_numpy(dtype=float)
    earlier = frame[list(EARLIER)].astype(float)
    last: Array = earlier.where(earlier >= 0).ffill(axis=1).iloc[:, -1].to_numpy(dtype=float)
    return last


def _codes(scenario: str) -> dict[str, int]:
    """Return the numbers of kinds of contexts in trials, by name."""
    return {name: code for code, name in enumerate(scenario_of(scenario).kind_names)}


@lru_cache  # one object each, since curves of dials are cached by object
def _moved(measure: DeclaredMeasure, environment: str, violator: str) -> DeclaredMeasure:
    return replace(measure, environments=(environment,), violator=violator, environment=None)


IDLE_PULLS = tuple(
    DeclaredMeasure(
        read=partial(read, kind=kind),
        counts=partial(counts, kind=kind),
        at=partial(at, kind=kind),
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
