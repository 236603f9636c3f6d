"""How much of what beliefs differ by is due to the context, to its wording, and to sampling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.measure import t_tests
from knownminds.inference.stability import Source, split_scores

from .revealed_belief import RevealedBeliefs

# What the sources of `inference.stability` are where contexts stand for models.
SOURCES: Mapping[str, Source] = {
    "contexts": "model",
    "wordings": "paraphrase",
    "wordings by context": "interaction",
    "sampling": "session",
}
OF_MODELS: Mapping[str, Source] = {
    "models": "model",
    "wordings": "paraphrase",
    "wordings by model": "interaction",
    "sampling": "session",
}
VALUES = ("likeliest outcome", "distance", "retained mass")
DIGITS = 12  # what is smaller is rounding
WORDING = re.compile(r", wording (\d+)$")


@dataclass(frozen=True)
class WordingSplit(Result):
    """What wordings do to beliefs that were asked for in several.

    Parameters
    ----------
    parts : One row per scenario, value and part ("contexts", "wordings", "wordings by context",
        "sampling"): variance, low, high (95%), its share of all, contexts, wordings, and left_out
        (contexts that lack a value in a wording). Values are "likeliest outcome", the share of the
        outcome that is likeliest in truth minus its truth; "distance", that from the truth
        (Manhattan), of exact beliefs alone; and "retained mass". The scenario "all" holds all of
        several.
    effects : One row per scenario, value and wording: how much larger the value is in this wording
        than in the mean of all, with its 95% t interval over contexts.
    """

    parts: pd.DataFrame
    effects: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """One row per scenario, value and part."""
        return self.parts


def joined_wordings(several: Sequence[RevealedBeliefs]) -> RevealedBeliefs:
    """Join beliefs about the same contexts in several wordings, the first as it was shipped.

    From the second on, the names of contexts end in ", wording 2" and so on.

    Raises
    ------
    ValueError
        If there are fewer than two.
    """
    if len(several) < 2:
        raise ValueError(f"Wordings are compared by two or more; got {len(several)}.")
    parts = [
        replace(belief, name=f"{belief.name}, wording {k}") if k > 1 else belief
        for k, beliefs in enumerate(several, start=1)
        for belief in beliefs
    ]
    return RevealedBeliefs(tuple(parts))


def context_of(context: str) -> tuple[str, int]:
    """Return the name of a context without its wording, and the number of the wording."""
    match = WORDING.search(context)
    return (context[: match.start()], int(match[1])) if match else (context, 1)


def split_wordings(beliefs: RevealedBeliefs, *, seed: int = 0) -> WordingSplit:
    """Split the variance of beliefs that were asked for in several wordings, by scenario.

    With y = m + context + wording + both together + error, all random, components and their 95%
    intervals are those of `inference.stability.split_scores`, where a context stands for a model:
    "wordings" is what a wording does in all contexts alike, "wordings by context" what it does in
    one and not in another. With few wordings the intervals are wide, as they must be.

    The sampling variance of a share is p (1 - p) / (n - 1), which has the right mean for n draws;
    exact beliefs have none. Flagged contexts have no share, and top-k tables take no part, since
    what they leave open is no sampling error. Contexts that lack a value in a wording are left out.
    """
    parts: list[dict[str, Any]] = []
    effects: list[dict[str, Any]] = []
    for about, own in _by_scenario(_values(beliefs)):
        told = _parts(own, "context", SOURCES, seed)
        parts += [{**about, **row} for row in told]
        effects += [{**about, **row} for row in _effects(own)]
    return WordingSplit(
        pd.DataFrame(parts, columns=["scenario", "value", *_PARTS]),
        pd.DataFrame(effects, columns=["scenario", "value", *_EFFECT]),
    )


def split_models(several: Mapping[str, RevealedBeliefs], *, seed: int = 0) -> pd.DataFrame:
    """Split the variance of several models' mean beliefs into models, wordings, both and sampling.

    The mean of a value is over the contexts that have one in all wordings of all models, so that
    contexts add nothing to it; its sampling variance is that of the mean. See `split_wordings`.

    Returns
    -------
    DataFrame
        One row per scenario, value and part ("models", "wordings", "wordings by model",
        "sampling"): variance, low, high, share, models, wordings, contexts; none of fewer than two
        models.
    """
    columns = ["scenario", "value", *(c for c in _PARTS if c != "left_out"), "models"]
    tables = [_values(own).assign(model=name) for name, own in several.items()]
    if len(tables) < 2:
        return pd.DataFrame(columns=columns)
    table = pd.concat(tables, ignore_index=True)
    rows = []
    for about, own in _by_scenario(table):
        cells = ["model", "wording"]
        every = len(own[cells].drop_duplicates())
        if own["model"].nunique() < 2 or every < own["model"].nunique() * 2:
            continue
        own = own.dropna(subset=["y", "error"])
        own = own[own.groupby("context")["y"].transform("size") == every]
        mean = own.groupby(cells, sort=False).agg(
            y=("y", "mean"), error=("error", "sum"), freedom=("freedom", "sum"), n=("y", "size")
        )
        if not len(mean):
            continue
        means = mean.assign(error=mean["error"] / mean["n"] ** 2).reset_index()
        told = _parts(means, "model", OF_MODELS, seed)
        more = {"models": means["model"].nunique(), "contexts": int(means["n"].iloc[0])}
        rows += [{**about, **row, **more} for row in told]
    return pd.DataFrame(rows, columns=columns)


ALL = "all"  # scenarios together
_PARTS = ("part", "variance", "low", "high", "share", "contexts", "wordings", "left_out")
_VALUES = ["scenario", "context", "wording", "value", "y", "error", "freedom"]
_EFFECT = ("wording", "effect", "low", "high", "contexts")


def _values(beliefs: RevealedBeliefs) -> pd.DataFrame:
    """Return one row per context, wording and value: y, and its sampling variance (error)."""
    rows = []
    for belief in beliefs:
        if belief.source == "top-k":
            continue
        p, total, draws = belief.truth, belief.retained, belief.draws
        name, wording = context_of(belief.name)
        about = {"scenario": belief.scenario, "context": f"{belief.scenario}: {name}"}
        about |= {"wording": wording}
        rows.append({**about, "value": "retained mass", **_sampled(total, 0.0, draws)})
        if not belief.flag and np.isfinite(p).all():
            position = int(np.argmax(p))
            share = float(belief.normalised[position])
            sampled = _sampled(share, float(p[position]), round(draws * total))
            rows.append({**about, "value": "likeliest outcome", **sampled})
            if not draws:
                away = float(np.abs(p - belief.normalised).sum())
                rows.append({**about, "value": "distance", **_sampled(away, 0.0, 0)})
    return pd.DataFrame(rows, columns=_VALUES)


def _by_scenario(table: pd.DataFrame) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
    """Yield the rows of each scenario and value, and of several scenarios together."""
    scenarios = list(dict.fromkeys(table["scenario"]))
    for scenario in [*scenarios, *([ALL] if len(scenarios) > 1 else [])]:
        here = table if scenario == ALL else table[table["scenario"] == scenario]
        for value in VALUES:
            yield {"scenario": scenario, "value": value}, here[here["value"] == value]


def _parts(
    table: pd.DataFrame, of: str, sources: Mapping[str, Source], seed: int
) -> list[dict[str, Any]]:
    """Return the components of one value; none where it has no two rows in two wordings."""
    if table["wording"].nunique() < 2:
        return []
    rooted = table.assign(error=np.sqrt(table["error"]))
    try:
        result = split_scores(
            rooted,
            "y",
            "error",
            model=of,
            template="wording",
            freedom="freedom",
            exact=True,
            seed=seed,
        )
    except ValueError:  # too few have a value
        return []
    rows = []
    for name, source in sources.items():
        part = result.parts[source]
        rows.append(
            {"part": name, "variance": part.value, "low": part.low, "high": part.high}
            | {"share": result.shares[source], "contexts": result.models}
            | {"wordings": result.templates, "left_out": len(result.left_out)}
        )
    return rows


def _effects(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return by how much a value is larger in each wording than in all, over complete contexts."""
    wide = table.pivot(index="context", columns="wording", values="y").dropna()
    if len(wide.columns) < 2 or not len(wide):
        return []
    y = wide.to_numpy(dtype=float)
    off: Array = y - y.mean(axis=1, keepdims=True)
    tests = t_tests(off.T)
    rows = []
    for position, wording in enumerate(wide.columns):
        mean, low, high = (float(each[position]) for each in (tests.mean, tests.low, tests.high))
        if len(wide) > 1 and not np.isfinite(low):  # all the same
            low = high = mean
        rows.append(
            {"wording": wording, "effect": mean, "low": low, "high": high, "contexts": len(wide)}
        )
    return rows


def _sampled(share: float, truth: float, draws: int) -> dict[str, float]:
    """Return the value of a share, and its sampling variance; NaN for fewer than two draws."""
    y = round(share - truth, DIGITS)  # a sum of shares may be above 1 by rounding
    if not draws:
        return {"y": y, "error": 0.0, "freedom": 1.0}
    variance = round(share * (1 - share), DIGITS)
    error = max(variance, 0.0) / (draws - 1) if draws > 1 else float("nan")
    return {"y": y, "error": error, "freedom": draws - 1.0}
