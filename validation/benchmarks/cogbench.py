"""CogBench: performances and metrics, distances to people, thoughts, features, a map.

After Coda-Forno, Binz, Wang and Schulz (2024), in the order of their figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.inference import MEASURES
from knownminds.inference.pooled_effects import pooled_effects
from knownminds.inference.profile_distances import (
    classical_scaling,
    connected,
    distance_from,
    root_mean_square,
    squared_distances,
    standardised,
)
from knownminds.validation.data.score_figures import draw_bars, draw_radar
from knownminds.validation.data.score_scale import (
    METRICS,
    PERFORMANCE,
    read_reference,
    scaled,
    with_random,
)
from knownminds.validation.pages import figures as draw

from .features import features_part
from .measures import measures
from .paper import CELL, NORMAL, VARIANT, About, Answers, Paper, Shown
from .plan import BASE, theta_of
from .views import WHO, Cell, Dots, Draw, Grid, Rows, View, ends

EXPERIMENTS = (
    "probabilistic_reasoning", "horizon", "restless_bandit", "instrumental_learning", "two_step",
    "balloon_risk",
)  # fmt: skip
PERFORMANCES = tuple(f"{name}{PERFORMANCE}" for name in EXPERIMENTS)
# What the paper asks of thoughts.
THOUGHTS = (f"probabilistic_reasoning{PERFORMANCE}", "model_basedness")
RATIONAL = "rational"  # the known mind that stands where no values of people are given
SIMULATED = ("meta_cognition", "risk")  # metrics whose true value takes long to compute
OF_PEOPLE = "On the scale, 0 is random answers in the same design and 1 are people (--people)."
OF_RATIONAL = (
    "No values of people were given (--people), and none ship. On the scale, 0 is random answers "
    "in the same design and 1 the known mind called rational, which is no person. Where it scores "
    "within two standard errors of random answers there is no scale."
)

PAPER = Paper(
    "cogbench",
    "CogBench: seven experiments, ten behavioural metrics",
    "Coda-Forno, Binz, Wang and Schulz 2024",
)


# Scores -----------------------------------------------------------------------------------------


def scores(data: Answers) -> pd.DataFrame:
    """Return every performance and metric of every participant in every cell, see `measures`."""
    rows = measures(data, "performance", *METRICS)
    return rows[rows["metric"].isin((*PERFORMANCES, *METRICS))].reset_index(drop=True)


def on_scale(data: Answers) -> pd.DataFrame:
    """Return the scores with their distance from random answers to the reference, see `scaled`."""
    about, rows = data.about, data.once(scores)
    designs = {place.name: place for cell, place in about.places.items() if "/" not in cell}
    rows = with_random(rows, designs, about.seed)
    if about.people is not None:
        reference = read_reference(about.people)
    else:
        own = rows[(rows[WHO] == RATIONAL) & (rows[VARIANT] == BASE)]
        reference = dict(zip(own["metric"], unlike_random(own), strict=True))
    return scaled(rows.assign(reference=rows["metric"].map(reference).astype(float)))


def unlike_random(rows: pd.DataFrame) -> pd.Series[float]:
    """Return values, NaN where they cannot be told from those of random answers.

    A scale between two that are alike would blow every difference up.
    """
    alike = (rows["value"] - rows["random"]).abs() < 2 * rows["standard_error"]
    return rows["value"].mask(alike)


def base_of(data: Answers, names: Sequence[str] = METRICS) -> pd.DataFrame:
    """Return the scores of plain questions, with their place on the scale."""
    rows: pd.DataFrame = data.once(on_scale)
    return rows[(rows[VARIANT] == BASE) & rows["metric"].isin(names)].reset_index(drop=True)


def _scale_of(about: About) -> str:
    return OF_RATIONAL if about.people is None else OF_PEOPLE


@PAPER.part("Performances")
def performances(data: Answers) -> Shown:
    """Temporal discounting is the seventh experiment; what it scores is behaviour and stands among
    the metrics, as in the paper.
    """
    return _scored(data, "Performances", PERFORMANCES)


@PAPER.part("Ten behavioural metrics")
def metrics(data: Answers) -> Shown:
    """The published code drops the sign of a score on the scale, so that who lies as far below
    random answers as the reference lies above them looks like the reference. Here the sign is kept.
    """
    frame, *views = _scored(data, "Metrics", METRICS)
    shown = [*data.about.models, *(name for name in data.about.known if name == RATIONAL)]
    if len(views) > 3:
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
        caption = f"{title}, each from random answers (dashed) to the reference (line)."
        views.append(Draw(caption, draw_bars, of=base))
    return rows[rows["metric"].isin(names)], _scale_of(data.about), *views


# Distances --------------------------------------------------------------------------------------


def distances(base: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return how far each participant lies from the reference over the metrics that have a value.

    Columns participant, metrics (their number), distance, low, high, and without_sign, as the
    published code has it.
    """
    rng = np.random.default_rng([seed, 0xC09])
    rows = []
    for who, own in base.groupby(WHO, sort=False):
        value, error = (own[f"normalised{end}"].to_numpy(dtype=float) for end in ("", "_error"))
        distance = distance_from(1.0, value, error, rng)
        rows.append({
            WHO: who, "metrics": distance.n, "distance": distance.value,
            "low": distance.low, "high": distance.high,
            "without_sign": root_mean_square(np.abs(value) - 1.0),
        })  # fmt: skip
    return pd.DataFrame(rows)


@PAPER.part("Distance to people", compared=False)
def distance(data: Answers) -> Shown:
    """The distance is the root of the mean squared difference from the reference over the metrics
    that have a value. Errors of scores make it larger, never smaller, so few sessions look less
    alike.
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
    """Each difference is from the same model without thoughts, on the same sessions; its error
    takes the two as independent, which is too wide where they go together. They are pooled by the
    inverse of their variances: as one effect, as in the paper, and as effects that differ between
    models (DerSimonian and Laird 1986). Where p for one effect (Cochran 1954) is small, the first
    says little.
    """
    table = data.once(scores)
    table = table[table[WHO].isin(data.about.models)]
    rows: list[dict[str, Any]] = []
    for metric in THOUGHTS:
        own = table[table["metric"] == metric]
        plain = own[own[VARIANT] == BASE].set_index(WHO)[["value", "standard_error"]]
        for variant, part in own[own[VARIANT] != BASE].groupby(VARIANT, sort=False):
            asked = part.set_index(WHO)
            both = asked.join(plain.add_suffix("_plain"))
            gap = both["value"] - both["value_plain"]
            squares = both[["standard_error", "standard_error_plain"]].astype(float) ** 2
            error = squares.sum(axis=1, skipna=False) ** 0.5
            names = {"metric": metric, VARIANT: variant}
            rows += [{**names, WHO: who, **_effect(gap[who], error[who])} for who in asked.index]
            known = np.isfinite(gap) & (error > 0)
            effects, errors = (one[known].to_numpy(dtype=np.float64) for one in (gap, error))
            rows += [{**names, **row} for row in pooled(effects, errors)]
    frame = pd.DataFrame(rows)
    if frame.empty:
        return frame, "The plan asks for thoughts in no experiment."
    columns: Mapping[str, Cell] = {"difference": ends(), "p for one effect": "p_value"}
    caption = "What thoughts add, model by model and pooled."
    return (
        frame,
        Rows("Differences from the plain question", columns, ("metric", VARIANT, WHO)),
        Dots(caption, "difference", "metric", VARIANT, null=0.0),
    )


def pooled(effects: Array, errors: Array) -> list[dict[str, Any]]:
    """Return the rows of differences that are pooled, as one effect and as several; none of one."""
    n = len(effects)
    if n < 2:
        return []
    both = pooled_effects(effects, errors)
    one = _effect(both.one, both.one_error, both.p_value)
    several = _effect(both.several, both.several_error)
    return [{WHO: f"all {n}", **one}, {WHO: f"all {n}, effects that differ", **several}]


def _effect(value: float, error: float, p_value: float = np.nan) -> dict[str, float]:
    half = NORMAL / 2 * error
    row = {"value": value, "standard_error": error, "low": value - half, "high": value + half}
    return {**{name: float(number) for name, number in row.items()}, "p_value": float(p_value)}


# Features ---------------------------------------------------------------------------------------


def wide(base: pd.DataFrame) -> pd.DataFrame:
    """Return participants by metrics, as far as there are values."""
    table = base.pivot_table("value", WHO, "metric", sort=False)
    return pd.DataFrame(standardised(table.to_numpy(dtype=float)), table.index, table.columns)


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


# A map ------------------------------------------------------------------------------------------


@PAPER.part("A map of behaviour", compared=False)
def map_of_behaviour(data: Answers) -> Shown:
    """Who is near whom in the standardised metrics, of whose distances (root mean squared
    differences over the metrics that both have) two dimensions keep a share: classical scaling
    (Torgerson 1952), where the paper has UMAP, which keeps no distances.
    """
    z = wide(base_of(data))
    square = squared_distances(z.to_numpy())
    left = connected(square)
    if len(left) < 3:
        return pd.DataFrame(), "A map needs three participants with metrics in common."
    position, share = classical_scaling(square[np.ix_(left, left)])
    names = z.index[left]
    kinds = {**_yes_or_no(data.about), **dict.fromkeys(data.about.known, "known minds")}
    rows = pd.DataFrame({
        WHO: names, "x": position[:, 0], "y": position[:, 1],
        "kind": [kinds.get(name, "models") for name in names],
    })  # fmt: skip
    texts = [f"Here they keep {share:.0%}."]
    if lonely := [name for name in data.about.participants if name not in set(names)]:
        texts.append(f"Without metrics in common with the others: {', '.join(lonely)}.")
    caption = "Participants whose metrics are alike lie near each other."
    return rows, *texts, Draw(caption, draw_map)


def _yes_or_no(about: About) -> dict[str, str]:
    """Return of each model the first of its features that is yes or no, in words."""
    if about.features is None:
        return {}
    known = pd.read_csv(about.features).set_index(WHO)
    for name in known.select_dtypes(include=["number", "bool"]):
        values = known[name].dropna()
        if set(values.astype(float)) == {0.0, 1.0}:
            word = str(name).replace("_", " ")
            return {str(who): word if yes else f"not {word}" for who, yes in values.items()}
    return {}


def draw_map(rows: pd.DataFrame) -> Figure:
    """Draw participants as named points, a colour for each kind."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(6.4, 4.6)
    kinds = list(rows.groupby("kind", sort=False))
    for (kind, own), (colour, marker, _) in zip(kinds, draw.styles(len(kinds)), strict=True):
        axis.plot(own["x"], own["y"], marker, color=colour, label=str(kind))
    for row in rows.to_dict("records"):
        axis.annotate(row[WHO], (row["x"], row["y"]), xytext=(4, 4),
                      textcoords="offset points", fontsize=draw.SMALL)  # fmt: skip
    axis.set_aspect("equal", adjustable="datalim")
    axis.margins(0.15)
    draw.key(figure, axis)
    return figure


# Known minds ------------------------------------------------------------------------------------


@PAPER.part("Do known minds come back?", compared=False, optional=True)
def known(data: Answers) -> Shown:
    """Metrics of known minds beside what they are by their parameters. Learning rates and the
    optimism bias are drawn to the prior where sessions are short. The true risk and meta-cognition
    take long simulations and are left out.
    """
    about, base = data.about, base_of(data)
    rows = base[base[WHO].isin(about.known) & ~base["metric"].isin(SIMULATED)]
    played = [row[CELL] in about.truth.get(row[WHO], {}) for row in rows.to_dict("records")]
    rows = rows[played].reset_index(drop=True)
    rows["truth"] = [_truth(row, about) for row in rows.to_dict("records")]
    both = rows[["truth", "low", "high"]].notna().all(axis=1)
    within = rows["truth"].between(rows["low"], rows["high"])
    rows["within"] = within.astype(object).where(both, None)
    count = (
        f"Of {both.sum()} that have an interval of 95%, {within[both].sum()} intervals hold the "
        "truth."
    )
    columns: Mapping[str, Cell] = {"truth": "truth", "value": ends(), "within": "within"}
    title = "Metrics of known minds beside their parameters"
    return rows, count, Rows(title, columns, (WHO, "metric"))


def _truth(row: Mapping[Any, Any], about: About) -> float:
    """Return what a metric of a known mind is by its parameters; NaN where these do not say."""
    mind = about.truth[row[WHO]][row[CELL]]
    theta = theta_of(mind, about.places[row[CELL]])
    return float(MEASURES[row["metric"]].truth(AGENTS[mind["model"]], theta[None])[0])
