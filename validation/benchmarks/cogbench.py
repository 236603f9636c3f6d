"""CogBench: performances and metrics, distances to people, thoughts, features.

After Coda-Forno, Binz, Wang and Schulz (2024), in the order of their figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents.parameters import Array
from knownminds.inference.differences import Side, difference
from knownminds.validation.data.score_figures import CORNERS, draw_radar, draw_scale
from knownminds.validation.data.score_scale import METRICS, PERFORMANCE, scaled, with_random
from knownminds.validation.data.scores_of_trials import reference_of
from knownminds.validation.pages.views import WHO, Cell, Dots, Draw, Grid, Rows, View, ends

from .comparison import side_of
from .features import features_part
from .measures import measures
from .paper import SCORES, VARIANT, About, Answers, Paper, Shown
from .plan import BASE

EXPERIMENTS = (
    "probabilistic_reasoning", "horizon", "restless_bandit", "instrumental_learning", "two_step",
    "balloon_risk",
)  # fmt: skip
PERFORMANCES = tuple(f"{name}{PERFORMANCE}" for name in EXPERIMENTS)
# What the paper asks of thoughts.
THOUGHTS = (f"probabilistic_reasoning{PERFORMANCE}", "model_basedness")
RATIONAL = "rational"  # the known agent that stands where no values of people are given
OF_PEOPLE = "On the scale, 0 is random answers in the same design and 1 are people (--people)."
OF_RATIONAL = (
    "No values of people were given (--people), and none ship. On the scale, 0 is random answers "
    "in the same design and 1 the known agent called rational, which is no person. Where it scores "
    "within two standard errors of random answers there is no scale."
)

PAPER = Paper(
    "cogbench",
    "CogBench: performances and behavioural metrics",
    "Coda-Forno, Binz, Wang and Schulz 2024",
    people=True,
)


# Scores -----------------------------------------------------------------------------------------


def scores(data: Answers) -> pd.DataFrame:
    """Return every performance and metric of every participant in every cell, see `measures`."""
    rows = measures(data, "performance", *METRICS)
    return rows[rows["metric"].isin((*PERFORMANCES, *METRICS))].reset_index(drop=True)


def on_scale(data: Answers) -> pd.DataFrame:
    """Return the scores with their distance from random answers to the reference, see `scaled`."""
    about, rows = data.about, data.once(scores)
    designs = {
        environment.name: environment
        for cell, environment in about.environments.items()
        if "/" not in cell
    }
    rows = with_random(rows, designs, about.seed)
    if about.people is not None:
        reference, _ = reference_of(about.people, rows, designs)
    else:
        environment = rows[(rows[WHO] == RATIONAL) & (rows[VARIANT] == BASE)]
        reference = dict(zip(environment["metric"], unlike_random(environment), strict=True))
    return scaled(rows.assign(reference=rows["metric"].map(reference).astype(float)))


def unlike_random(rows: pd.DataFrame) -> pd.Series[float]:
    """Return values, NaN where they do not differ clearly from those of random answers.

    A scale between two that are alike would blow every difference up.
    """
    alike = (rows["value"] - rows["random"]).abs() < 2 * rows["standard_error"]
    return rows["value"].mask(alike)


def base_of(data: Answers, names: Sequence[str] = METRICS) -> pd.DataFrame:
    """Return the scores of plain questions, with their position on the scale."""
    rows: pd.DataFrame = data.once(on_scale)
    return rows[(rows[VARIANT] == BASE) & rows["metric"].isin(names)].reset_index(drop=True)


def _scale_of(about: About) -> str:
    return OF_RATIONAL if about.people is None else OF_PEOPLE


@PAPER.part("Performances")
def performances(data: Answers) -> Shown:
    """What temporal discounting scores is behaviour and stands among the metrics, as in the
    paper.
    """
    return _scored(data, "Performances", PERFORMANCES)


@PAPER.part("Behavioural metrics")
def metrics(data: Answers) -> Shown:
    """The published code drops the sign of a score on the scale. Who lies as far below random
    answers as the reference lies above them then looks like the reference. Here the sign is kept.
    """
    frame, *views = _scored(data, "Metrics", METRICS)
    shown = [*data.about.models, *(name for name in data.about.known if name == RATIONAL)]
    if base_of(data)["metric"].nunique() < CORNERS:
        views.append(f"Fewer than {CORNERS} metrics have no shape, so no circle is drawn of them.")
    elif len(views) > 3:
        radar = Draw(
            "The metrics of each participant on one scale.",
            draw_radar, of=base_of(data), where={WHO: shown},
        )  # fmt: skip
        views.append(radar)
    return frame, *views


def _scored(data: Answers, title: str, names: Sequence[str]) -> Shown:
    """Return the scores in all variants, the table and bars of those of plain questions."""
    rows, base = data.once(on_scale), base_of(data, names)
    ends_of_scale: Mapping[str, Cell] = {"random answers": "random", "reference": "reference"}
    views: list[View] = [
        Grid(f"{title}, with 95% intervals", "metric", of=base),
        Rows(f"The scale of the {title.lower()}", ends_of_scale, ("metric",),
             of=base.drop_duplicates("metric")),
    ]  # fmt: skip
    if base["normalised"].notna().any():
        caption = f"{title}, each from random answers (grey line) to the reference."
        views.append(Draw(caption, draw_scale, of=base))
    return rows[rows["metric"].isin(names)], _scale_of(data.about), *views


# Distances --------------------------------------------------------------------------------------


DRAWS = 2000  # of the scores, for the interval of a distance
DISTANCES = ("distance", "low", "high", "without_sign")


def distances(base: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return how far each participant lies from the reference.

    The distance is over the metrics that everybody has who has any, so that participants can be
    compared. The interval holds the middle 95% of draws of the scores from normal distributions
    with their errors.

    Columns participant, metrics (their number), distance, low, high, and without_sign, as the
    published code has it.
    """
    rng = np.random.default_rng([seed, 0xC09])
    rows = []
    there = base[base["normalised"].notna()]
    owners = there.groupby("metric")[WHO].nunique()
    shared = base["metric"].isin(owners[owners == there[WHO].nunique()].index)
    base = base.assign(normalised=base["normalised"].where(shared))
    for who, scores_of in base.groupby(WHO, sort=False):
        value, error = (
            scores_of[f"normalised{end}"].to_numpy(dtype=float) for end in ("", "_error")
        )
        known = np.isfinite(value)
        row = {WHO: who, "metrics": int(known.sum()), **dict.fromkeys(DISTANCES, np.nan)}
        if known.any():
            gap, spread = value[known] - 1.0, np.nan_to_num(error)[known]
            drawn = gap + spread * rng.standard_normal((DRAWS, len(gap)))
            several = (gap, drawn, np.abs(value[known]) - 1.0)
            away, draws, without_sign = (np.sqrt(np.mean(x**2, axis=-1)) for x in several)
            ends_of = np.quantile(draws, [0.025, 0.975])
            row |= dict(zip(DISTANCES, map(float, (away, *ends_of, without_sign)), strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


@PAPER.part("Distance to people", compared=False)
def distance(data: Answers) -> Shown:
    """The distance is the root of the mean squared difference from the reference over the metrics
    that everybody has who has any. Errors of scores make it larger, never smaller, so few sessions
    look less alike. The paper also draws a map by UMAP. It is left out, since a map draws these
    distances anew, by chance and by its settings.
    """
    base = base_of(data)
    if data.about.people is None:  # the reference is as far as that from itself
        base = base[base[WHO] != RATIONAL]
    rows = distances(base, data.about.seed).sort_values("distance", kind="stable")
    columns: Mapping[str, Cell] = {
        "metrics": "metrics", "distance": ends("distance"), "without sign": "without_sign",
    }  # fmt: skip
    caption = "How far each participant lies from the reference; without sign (crosses)."
    dots = Dots(caption, "distance to the reference", value="distance", null="without_sign")
    return rows, _scale_of(data.about), Rows("Distances", columns), dots


# Thoughts ---------------------------------------------------------------------------------------


@PAPER.part("Chain of thought and step back, against the plain question", compared=False)
def thoughts(data: Answers) -> Shown:
    """Each difference is from the same model without thoughts. Sessions that both have are pairs,
    with correlation r. Intervals are Student's. From six sessions on, p by swaps is how often as
    large a difference comes of exchanging both conditions in some sessions. Differences are pooled
    by the inverse of their variances. This is done as one effect, as in the paper, and as effects
    that differ between models (DerSimonian and Laird 1986). Where p for one effect (Cochran 1954)
    is small, the first says little.
    """
    table = data.once(scores)
    table = table[table[WHO].isin(data.about.models)]
    rows: list[dict[str, Any]] = []
    for metric in THOUGHTS:
        metric_rows = table[table["metric"] == metric]
        known: dict[str, dict[str, Side]] = {}
        for variant, who, *row in metric_rows[[VARIANT, WHO, *SCORES[3:]]].itertuples(index=False):
            known.setdefault(str(variant), {})[str(who)] = side_of(*row)
        plain = known.pop(BASE, {})
        for variant, part in known.items():
            names = {"metric": metric, VARIANT: variant}
            gaps = {who: difference(one, plain[who]) for who, one in part.items() if who in plain}
            nothing = {"one_effect": np.nan}  # which is of several models
            rows += [{**names, WHO: who, **vars(gap), **nothing} for who, gap in gaps.items()]
            usable = [gap for gap in gaps.values() if gap.standard_error > 0]
            effects, errors = (
                np.array([getattr(gap, name) for gap in usable])
                for name in ("value", "standard_error")
            )
            rows += [{**names, **row} for row in pooled(effects, errors)]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return frame, "The plan asks for thoughts in no experiment."
    columns: Mapping[str, Cell] = {
        "difference": ends(), "sessions": "shared", "r": "correlation", "p": "p_value",
        "p by swaps": "swaps", "p for one effect": "one_effect",
    }  # fmt: skip
    caption = "What thoughts add, model by model and pooled."
    return (
        frame,
        Rows("Differences from the plain question", columns, ("metric", VARIANT, WHO)),
        Dots(caption, "difference", "metric", VARIANT, null=0.0),
    )


def pooled(effects: Array, errors: Array) -> list[dict[str, Any]]:
    """Return the rows of differences that are pooled, as one effect and as several; none of one.

    By the inverse of their variances. The p-value is that of Cochran's statistic (1954), of one
    effect; several differ by the variance of DerSimonian and Laird (1986).
    """
    from statsmodels.stats.meta_analysis import combine_effects

    n = len(effects)
    if n < 2:
        return []
    both = combine_effects(effects, errors**2, method_re="dl")
    one = _effect(both.mean_effect_fe, both.sd_eff_w_fe)
    one["one_effect"] = float(both.test_homogeneity().pvalue)
    looser = (
        (both.mean_effect_re, both.sd_eff_w_re)
        if both.tau2 > 0
        else (one["value"], one["standard_error"])
    )
    several = _effect(*looser)
    return [{WHO: f"all {n}", **one}, {WHO: f"all {n}, effects that differ", **several}]


def _effect(value: float, error: float) -> dict[str, float]:
    gap = difference(Side(value, error, np.inf, {}), Side(0.0, 0.0, np.inf, {}))
    names = ("value", "standard_error", "low", "high", "p_value")
    return {name: float(getattr(gap, name)) for name in names}


# Features ---------------------------------------------------------------------------------------


def wide(base: pd.DataFrame) -> pd.DataFrame:
    """Return participants by metrics, as far as there are values."""
    table = base.pivot_table("value", WHO, "metric", sort=False)
    return (table - table.mean()) / table.std()


@PAPER.part("What of models goes with their scores", compared=False)
def features(data: Answers) -> Shown:
    """A regression of each score on the features, with an intercept for each base model; both
    standardised. The average performance is the mean of the standardised performances that a model
    has. With few models it says little, however small p is.
    """
    models = list(data.about.models)
    played, base = (
        rows[rows[WHO].isin(models)] for rows in (base_of(data, PERFORMANCES), base_of(data))
    )
    average = wide(played).mean(axis=1).rename("score").rename_axis(WHO).reset_index()
    far = distances(base, data.about.seed).rename(columns={"distance": "score"})
    parts = [
        average.assign(metric="average performance"),
        far.assign(metric="distance to the reference"),
        base.drop(columns="score").rename(columns={"value": "score"}),
    ]
    return features_part(pd.concat(part[[WHO, "metric", "score"]] for part in parts), data.about)
