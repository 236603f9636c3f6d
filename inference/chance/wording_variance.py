"""How much of the variance of beliefs is due to the context, its wording, and sampling."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from knownminds.environments.later import pandas as pd
from knownminds.inference.stability import Source, split_scores

from .belief_contexts import context_means
from .revealed_belief import RevealedBeliefs

# The sources of `inference.stability`, if contexts or means stand for models.
SOURCES: Mapping[str, Mapping[str, Source]] = {
    "context": {
        "contexts": "model",
        "wordings": "paraphrase",
        "wordings by context": "interaction",
        "sampling": "session",
    },
    "model": {
        "models": "model",
        "wordings": "paraphrase",
        "wordings by model": "interaction",
        "sampling": "session",
    },
}
ALL = "all"  # all scenarios together
DIGITS = 12  # smaller differences are rounding
WORDING = re.compile(r", wording (\d+)$")
KEYS = ["scenario", "value"]
PARTS = [*KEYS, "part", "variance", "low", "high", "share", "wordings"]


def joined_wordings(several: Sequence[RevealedBeliefs]) -> RevealedBeliefs:
    """Join beliefs about the same contexts in several wordings; the first wording is as shipped.

    From the second wording on, the names of contexts end in ", wording 2" and so on.

    Raises
    ------
    ValueError : If there are fewer than two.
    """
    if len(several) < 2:
        raise ValueError(f"Wordings are compared by two or more; got {len(several)}.")
    parts = [
        replace(belief, name=f"{belief.name}, wording {k}") if k > 1 else belief
        for k, beliefs in enumerate(several, start=1)
        for belief in beliefs
    ]
    return RevealedBeliefs(tuple(parts))


def split_wordings(beliefs: RevealedBeliefs, *, seed: int = 0) -> pd.DataFrame:
    """Split the variance of beliefs that come in several wordings, by scenario.

    The model is y = m + context + wording + both together + error, all random. Components and their
    95% intervals are those of `inference.stability.split_scores`, with a context in place of a
    model: "wordings" is the effect of a wording in all contexts alike, "wordings by context" its
    effect in one context and not in another. With few wordings the intervals are wide, as they must
    be.

    The sampling variance of a share is p (1 - p) / (n - 1), which has the right mean for n draws;
    exact beliefs have none. Flagged contexts have no share. Top-k tables are left out, since their
    open probability is no sampling error. Contexts without a value in some wording are left out.

    Returns
    -------
    DataFrame : One row per scenario ("all" has all scenarios together), value and part ("contexts",
        "wordings", "wordings by context", "sampling"): variance, low, high (95%), its share of the
        total, wordings, contexts and left_out (contexts without a value in some wording). Values
        are "likeliest outcome", the believed minus the true share of the truly likeliest outcome;
        "distance" from the truth (Manhattan), for exact beliefs alone; and "retained mass".
    """
    return _split(_values(beliefs), "context", seed)


def wording_effects(beliefs: RevealedBeliefs) -> pd.DataFrame:
    """Return by how much a value is larger in each wording than in the mean of all wordings.

    It is computed over the contexts that have the value in all wordings.

    Returns
    -------
    DataFrame : One row per scenario, value (see `split_wordings`) and wording: effect, with its 95%
        t interval over contexts (low, high), and contexts.
    """
    parts = []
    for _, group in _values(beliefs).groupby(KEYS, sort=False):
        several = group["wording"].nunique()
        whole = group.dropna(subset=["y"])
        same = whole.groupby("context")["y"]
        whole = whole.assign(effect=whole["y"] - same.transform("mean"))
        parts.append(whole[(same.transform("size") == several) & (several > 1)])
    columns = {"value": "effect", "n": "contexts"}
    rows = pd.concat([pd.DataFrame(columns=[*KEYS, "wording", "effect"]), *parts])
    rows = rows.rename(columns={"value": "of"})
    means = context_means(rows, "effect", ["scenario", "of", "wording"])
    means = means.rename(columns=columns).rename(columns={"of": "value"})
    return means[[*KEYS, "wording", "effect", "low", "high", "contexts"]]


def split_models(several: Mapping[str, RevealedBeliefs], *, seed: int = 0) -> pd.DataFrame:
    """Split the variance of several models' mean beliefs into models, wordings, both and sampling.

    The mean of a value is over the contexts that have one in all wordings of all models, so that
    contexts add nothing to the variance. Its sampling variance is that of the mean. See
    `split_wordings`.

    Returns
    -------
    DataFrame : One row per scenario, value and part ("models", "wordings", "wordings by model",
        "sampling"): variance, low, high, share, wordings, models, contexts; no row for fewer than
        two models.
    """
    tables = [_values(beliefs).assign(model=name) for name, beliefs in several.items()]
    cells, parts = ["model", "wording"], []
    for key, rows in pd.concat(tables).groupby(KEYS, sort=False) if len(tables) > 1 else ():
        every = len(rows[cells].drop_duplicates())
        rows = rows.dropna(subset=["y", "error"])
        rows = rows[rows.groupby("context")["y"].transform("size") == every]
        if rows["model"].nunique() < 2:
            continue
        mean = rows.groupby(cells, sort=False).agg(
            y=("y", "mean"), error=("error", "sum"), freedom=("freedom", "sum"), n=("y", "size")
        )
        mean = mean.assign(error=mean["error"] / mean["n"] ** 2).reset_index()
        scenario, value = map(str, key)
        parts.append(mean.assign(scenario=scenario, value=value))
    if not parts:
        return pd.DataFrame(columns=[*PARTS, "models", "contexts"])
    table = pd.concat(parts, ignore_index=True)
    contexts = table.groupby(KEYS)["n"].first().astype(int).rename("contexts")
    return _split(table, "model", seed).drop(columns="left_out").join(contexts, on=KEYS)


def _values(beliefs: RevealedBeliefs) -> pd.DataFrame:
    """Return one row per context, wording and value: y, and its sampling variance (error).

    If there are several scenarios, all of them together are one more.
    """
    rows = []
    for belief in beliefs:
        if belief.source == "top-k":
            continue
        p, total, draws = belief.truth, belief.retained, belief.draws
        match = WORDING.search(belief.name)
        name = belief.name[: match.start()] if match else belief.name
        about: dict[str, Any] = {
            "scenario": belief.scenario,
            "context": f"{belief.scenario}: {name}",
        }
        about |= {"wording": int(match[1]) if match else 1}
        if not belief.flag and np.isfinite(p).all():
            position = int(np.argmax(p))
            share = float(belief.normalised[position])
            sampled = _sampled(share, float(p[position]), round(draws * total))
            rows.append({**about, "value": "likeliest outcome", **sampled})
            if not draws:
                away = float(np.abs(p - belief.normalised).sum())
                rows.append({**about, "value": "distance", **_sampled(away, 0.0, 0)})
        rows.append({**about, "value": "retained mass", **_sampled(total, 0.0, draws)})
    columns = ["scenario", "context", "wording", "value", "y", "error", "freedom"]
    table = pd.DataFrame(rows, columns=columns)
    if table["scenario"].nunique() < 2:
        return table
    return pd.concat([table, table.assign(scenario=ALL)], ignore_index=True)


def _split(table: pd.DataFrame, unit: str, seed: int) -> pd.DataFrame:
    """Return the components of each value with two wordings or more; units stand for models."""
    rows: list[dict[str, Any]] = []
    for key, group in table.groupby(KEYS, sort=False):
        try:
            split = split_scores(
                group.assign(error=np.sqrt(group["error"])), "y", "error", model=unit,
                template="wording", freedom="freedom", exact=True, seed=seed,
            )  # fmt: skip
        except ValueError:  # too few have a value
            continue
        about = dict(zip(KEYS, key, strict=True)) | {f"{unit}s": split.models}
        about |= {"wordings": split.templates, "left_out": len(split.left_out)}
        for name, source in SOURCES[unit].items() if split.templates > 1 else ():
            value, low, high, _ = split.parts[source]
            numbers = {"variance": value, "low": low, "high": high, "share": split.shares[source]}
            rows.append({**about, "part": name, **numbers})
    return pd.DataFrame(rows, columns=[*PARTS, f"{unit}s", "left_out"])


def _sampled(share: float, truth: float, draws: int) -> dict[str, float]:
    """Return the value of a share, and its sampling variance; NaN for fewer than two draws."""
    y = round(share - truth, DIGITS)  # rounding may raise a sum of shares above 1
    if not draws:
        return {"y": y, "error": 0.0, "freedom": 1.0}
    variance = round(share * (1 - share), DIGITS)
    error = max(variance, 0.0) / (draws - 1) if draws > 1 else float("nan")
    return {"y": y, "error": error, "freedom": draws - 1.0}
