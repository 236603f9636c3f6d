"""The page of CogBench: performances and metrics, distances to people, thoughts, features, a map.

After Coda-Forno, Binz, Wang and Schulz (2024), in the order of their figures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.environments import Environment, Trials
from knownminds.inference import MEASURES, Estimate
from knownminds.inference.measure import reason_of
from knownminds.inference.performance import performance
from knownminds.validation.data.feature_regression import FeatureRegression, feature_regression
from knownminds.validation.data.phenotype import (
    METRICS,
    PERFORMANCE,
    Phenotype,
    random_score,
    read_reference,
)
from knownminds.validation.engine.question import command_line
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Section, Table, between, table

from .paper import CELL, About
from .plan import BASE, theta_of
from .shown import beside, dots, interval
from .views import WHO as PARTICIPANT

PLACES = (
    "probabilistic_reasoning", "horizon", "restless_bandit", "instrumental_learning", "two_step",
    "temporal_discounting", "balloon_risk",
)  # fmt: skip
PERFORMANCES = tuple(f"{place}{PERFORMANCE}" for place in PLACES if place != "temporal_discounting")
# What the paper asks of thoughts: which score, in which experiment.
THOUGHTS = {
    f"probabilistic_reasoning{PERFORMANCE}": "probabilistic_reasoning",
    "model_basedness": "two_step",
}
RATIONAL = "rational"  # the known mind that stands where no values of people are given
DISTANCE = "distance to the reference"
SIMULATED = ("meta_cognition", "risk")  # metrics whose true value takes long to compute
DRAWS = 2000  # of the scores, for the interval of a distance
NULL_SESSIONS = 200  # of random answers
# What a record has besides the fields of its experiment.
READ = (
    "environment", "subject", "session", "block", "trial", "action", "response", "reward",
    "outcome",
)  # fmt: skip
SHOWN = (PARTICIPANT, "score", "value", "standard_error", "low", "high", "n", "unit", "reason")


def sections(trials: pd.DataFrame, about: About) -> list[Section]:
    """Return the parts of the page."""
    scores = scores_of(trials, about)
    base = scores[scores["variant"] == BASE]
    scale, told = _scale(base, about)
    return [
        _of_scores(base, PERFORMANCES, about, scale, told, "performances"),
        _of_scores(base, METRICS, about, scale, told, "metrics"),
        _radar(base, about, scale, told),
        _distances(base, about, scale, told),
        _thoughts(scores, about),
        _regression(base, about, scale),
        _map(base, about),
        _known(base, about),
    ]


# Scores -----------------------------------------------------------------------------------------


def scores(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return what participants are compared by: all scores, in each variant of an experiment."""
    return _compared(scores_of(trials, about))


def _compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Return scores as they are compared; those of thoughts bear the name of their variant."""
    plain = rows["variant"] == BASE
    over = rows["unit"].isin(["subject", "session"]) & (rows["n"] > 1)
    return pd.DataFrame(
        {
            PARTICIPANT: rows[PARTICIPANT],
            "score": rows["score"].where(plain, rows["score"] + ", " + rows["variant"]),
            "cell": rows["cell"],
            "value": rows["value"],
            "standard_error": rows["standard_error"],
            "freedom": (rows["n"] - 1.0).where(over),
        }
    )


def scores_of(trials: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return every score of every participant in every variant of its experiment.

    One row each: participant, variant, cell, score, value, standard_error, low, high, n, unit,
    and reason, why there is no value.
    """
    rows: list[dict[str, Any]] = []
    cells = trials.groupby([PARTICIPANT, CELL], sort=False)
    played = {(str(key[0]), str(key[1])): part for key, part in cells}
    for who in about.participants:
        for cell, place in about.places.items():
            part = played.get((who, cell))
            own = [name for name in METRICS if place.name in MEASURES[name].environments]
            names = [f"{place.name}{PERFORMANCE}", *own]
            names = [name for name in names if name in (*PERFORMANCES, *METRICS)]
            for name, found, why in _estimates(part, place, names):
                variant = cell.partition("/")[2] or BASE
                rows.append(
                    {
                        PARTICIPANT: who, "variant": variant, "cell": cell, "score": name,
                        "value": found.value, "standard_error": found.standard_error,
                        "low": found.low, "high": found.high, "n": found.n, "unit": found.unit,
                        "reason": why,
                    }
                )  # fmt: skip
    return pd.DataFrame(rows)


def _estimates(
    part: pd.DataFrame | None, place: Environment, names: Sequence[str]
) -> list[tuple[str, Estimate, str]]:
    """Estimate scores of one participant in a cell; one that cannot be had has a reason."""
    nothing = Estimate("", np.nan, np.nan, np.nan, np.nan, 0, "subject", np.nan, {})
    if part is None:
        return [(name, nothing, "not played") for name in names]
    found: list[tuple[str, Estimate, str]] = []
    try:
        record = _record(part, place)
    except ValueError as error:
        return [(name, nothing, str(error)) for name in names]
    for name in names:
        try:
            one = (
                performance(record, place)
                if name.endswith(PERFORMANCE)
                else MEASURES[name].estimate(record)
            )
        except ValueError as error:
            found.append((name, nothing, str(error)))
            continue
        found.append((name, one, "" if np.isfinite(one.value) else reason_of(one)))
    return found


def _record(part: pd.DataFrame, place: Environment) -> Trials:
    """Return the trials of a cell: what scores are read off, checked as any record is."""
    own = [field.name for field in place.fields]
    columns = [name for name in dict.fromkeys((*READ, *own)) if name in part]
    return Trials.from_frame(part[columns].reset_index(drop=True), environment=place)


def _scale(base: pd.DataFrame, about: About) -> tuple[dict[str, tuple[float, float]], str]:
    """Return of each score what random answers and the reference score, and what to say of it."""
    zero = {}
    for name in (*PERFORMANCES, *METRICS):
        rows = base[base["score"] == name]
        if len(rows):
            place = about.places[str(rows["cell"].iloc[0])]
            zero[name] = random_score(name, place, NULL_SESSIONS, about.seed)[0]
    if about.people is not None:
        one = read_reference(about.people)
        told = "On the scale, 0 is random answers in the same design and 1 are people (--people)."
    else:
        own = base[base[PARTICIPANT] == RATIONAL].set_index("score")
        one = {
            str(name): unlike(zero.get(str(name), np.nan), row["value"], row["standard_error"])
            for name, row in own.iterrows()
        }
        told = (
            "No values of people were given (--people), and none ship. On the scale, 0 is random "
            "answers in the same design and 1 the known mind called rational, which is no person. "
            "Where it scores within two standard errors of random answers there is no scale."
        )
    return {name: (value, one.get(name, np.nan)) for name, value in zero.items()}, told


def unlike(zero: float, value: float, error: float) -> float:
    """Return a reference's value; NaN if it cannot be told from random answers.

    A scale between two that are alike would blow every difference up.
    """
    return float(value) if not abs(value - zero) < 2 * error else np.nan


def _phenotype(
    base: pd.DataFrame,
    names: Sequence[str],
    who: Sequence[str],
    scale: Mapping[str, tuple[float, float]],
    released: bool = False,
) -> Phenotype:
    """Return scores on the scale from random answers to the reference."""
    cells = base.set_index([PARTICIPANT, "score"])
    kept = [name for name in names if name in scale]

    def matrix(column: str) -> Any:
        return cells[column].unstack("score").reindex(index=list(who), columns=kept).to_numpy()

    ends = np.array([scale[name] for name in kept])
    reasons = np.where(np.isfinite(ends).all(axis=1), matrix("reason"), "no reference")
    return Phenotype(
        participants=tuple(who),
        metrics=tuple(kept),
        score=matrix("value").astype(float),
        standard_error=matrix("standard_error").astype(float),
        low=matrix("low").astype(float),
        high=matrix("high").astype(float),
        random=ends[:, 0],
        reference=ends[:, 1],
        reason=tuple(tuple(map(str, row)) for row in reasons),
        released=released,
    )


def _of_scores(
    base: pd.DataFrame,
    names: Sequence[str],
    about: About,
    scale: Mapping[str, tuple[float, float]],
    told: str,
    which: str,
) -> Section:
    """Return the bars and the table of the performances, or of the metrics."""
    rows = base[base["score"].isin(names)]
    found = _phenotype(base, names, about.participants, scale)
    sentences = [told]
    title = "Performances" if which == "performances" else "Ten behavioural metrics"
    if which == "performances":
        sentences.append(
            "Temporal discounting is the seventh experiment; what it scores is behaviour and "
            "stands among the metrics, as in the paper."
        )
    sentences += _without_sign(found)
    ends = [{"score": name, "random": scale[name][0], "reference": scale[name][1]}
            for name in found.metrics]  # fmt: skip
    return Section(
        which,
        title,
        sentences,
        [
            _score_table(title, rows),
            table(
                f"The scale of the {which}",
                ends,
                ("score", "{score}"),
                ("random answers", "{random:.3f}"),
                ("reference", "{reference:.3f}"),
            ),
        ],
        [(f"{title}, each from random answers (dashed) to the reference (line).",
          draw.svg(found.bars()))] if found.metrics else [],
        frames={which: rows[list(SHOWN)], f"{which}_scale": pd.DataFrame(ends)},
        scores=_compared(rows),
    )  # fmt: skip


def _score_table(title: str, rows: pd.DataFrame) -> Table:
    """Return the table of scores, a line per participant; what each rests on is in the file."""

    def cell(row: Mapping[Any, Any]) -> str:
        told = interval(row["value"], row["low"], row["high"])
        return told if told != "-" else str(row["reason"] or "-")

    named = rows.assign(score=rows["score"].map(_named))
    return beside(f"{title}, with 95% intervals", named, "score", cell)


def _named(score: str) -> str:
    """Return a score as a table names it."""
    return str(score).removesuffix(PERFORMANCE).replace("_", " ")


def _without_sign(found: Phenotype) -> list[str]:
    """Tell where the published code, which drops signs, would show the opposite."""
    lost = [
        f"{who} in {metric} ({value:.2f})"
        for who, row in zip(found.participants, found.normalised, strict=True)
        for metric, value in zip(found.metrics, row, strict=True)
        if value < 0
    ]
    if not lost:
        return []
    return [
        "The published code drops the sign of a score on this scale, so that who lies as far below "
        "random answers as the reference lies above them looks like the reference. Here the sign "
        f"is kept; below 0 are {'; '.join(lost)}."
    ]


def _radar(
    base: pd.DataFrame, about: About, scale: Mapping[str, tuple[float, float]], told: str
) -> Section:
    who = [*about.models, *(name for name in about.known if name == RATIONAL)]
    found = _phenotype(base, METRICS, who, scale)
    drawn = [("The metrics of each participant on one scale.", draw.svg(found.radar()))]
    return Section(
        "radar",
        "Behaviour at a glance",
        [told],
        [],
        drawn if found.metrics else [],
        frames={"radar": found.to_frame()},
    )


# Distances --------------------------------------------------------------------------------------


def distances(found: Phenotype, seed: int) -> pd.DataFrame:
    """Return how far each participant lies from the reference over its metrics.

    The root of the mean squared difference from 1 on the normalised scale, over the metrics that
    have a value, so that participants with other numbers of metrics can be compared; without
    signs as the published code has it. The interval holds the middle 95% of draws of the scores
    from normal distributions with their standard errors.
    """
    rng = np.random.default_rng([seed, 0xC09])
    rows = []
    for who, value, error in zip(
        found.participants, found.normalised, found.normalised_error, strict=True
    ):
        held = np.isfinite(value)
        row: dict[str, Any] = {PARTICIPANT: who, "metrics": int(held.sum())}
        for name, given in (("distance", value), ("without_sign", np.abs(value))):
            row[name] = float(np.sqrt(np.mean((given[held] - 1) ** 2))) if held.any() else np.nan
        spread = np.where(np.isfinite(error), error, 0.0)[held]
        drawn = value[held] + spread * rng.standard_normal((DRAWS, held.sum()))
        far = np.sqrt(np.mean((drawn - 1) ** 2, axis=1)) if held.any() else np.array([np.nan])
        row["low"], row["high"] = np.quantile(far, [0.025, 0.975])
        rows.append(row)
    return pd.DataFrame(rows)


def _distances(
    base: pd.DataFrame, about: About, scale: Mapping[str, tuple[float, float]], told: str
) -> Section:
    itself = [] if about.people is not None else [RATIONAL]  # the reference is as far as that
    who = [name for name in about.participants if name not in itself]
    found = distances(_phenotype(base, METRICS, who, scale), about.seed)
    found = found.sort_values("distance", kind="stable")
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(6.4, 0.32 * len(found) + 1.1)
    y = np.arange(len(found))
    axis.hlines(y, found["low"], found["high"], color=draw.BLUE, linewidth=1.2)
    axis.plot(found["distance"], y, "o", color=draw.BLUE, markersize=5, label="with sign")
    axis.plot(found["without_sign"], y, "x", color=draw.ORANGE, markersize=6, label="without sign")
    axis.set_yticks(y, found[PARTICIPANT])
    axis.invert_yaxis()
    axis.set_xlabel("distance to the reference")
    draw.key(figure, axis)
    return Section(
        "distances",
        "Distance to people",
        [
            told,
            "The distance is the root of the mean squared difference from the reference over the "
            "metrics that have a value. Errors of scores make it larger, never smaller, so few "
            "sessions look less alike.",
        ],
        [
            table(
                "Distances",
                found,
                ("participant", "{participant}"),
                ("metrics", "{metrics}"),
                ("distance", "{distance:.3f}"),
                ("95% interval", between),
                ("without sign", "{without_sign:.3f}"),
            )
        ],
        [("How far each participant lies from the reference.", draw.svg(figure))],
        frames={"distances": found},
    )


# Thoughts ---------------------------------------------------------------------------------------


def pooled(gap: Array, error: Array) -> dict[str, float]:
    """Pool differences by the inverse of their variances, as one effect and as several.

    "value" and "standard_error" take all participants for one effect, as the paper does; "q" with
    its p-value "heterogeneity" tests that (Cochran 1954), and "random", "random_error" take
    effects to differ between participants (DerSimonian and Laird 1986).
    """
    weight = error**-2.0
    value = float(np.sum(weight * gap) / np.sum(weight))
    q, free = float(np.sum(weight * (gap - value) ** 2)), len(gap) - 1
    scale = np.sum(weight) - np.sum(weight**2) / np.sum(weight)
    between_ = max(0.0, (q - free) / scale) if free else 0.0
    looser = 1.0 / (error**2 + between_)
    return {
        "value": value,
        "standard_error": float(np.sum(weight) ** -0.5),
        "q": q,
        "heterogeneity": float(scipy.stats.chi2.sf(q, free)) if free else np.nan,
        "random": float(np.sum(looser * gap) / np.sum(looser)),
        "random_error": float(np.sum(looser) ** -0.5),
    }


def thoughts(scores: pd.DataFrame, who: Sequence[str]) -> pd.DataFrame:
    """Return what each way of thinking adds to the score without, by participant and pooled."""
    rows: list[dict[str, Any]] = []
    for score in THOUGHTS:
        own = scores[(scores["score"] == score) & scores[PARTICIPANT].isin(who)]
        plain = own[own["variant"] == BASE].set_index(PARTICIPANT)
        for variant, part in own[own["variant"] != BASE].groupby("variant", sort=False):
            asked = part.set_index(PARTICIPANT)
            gap = asked["value"] - plain["value"].reindex(asked.index)
            error = np.hypot(asked["standard_error"], plain["standard_error"].reindex(asked.index))
            for name in asked.index:
                rows.append(
                    _gap(score, str(variant), str(name), float(gap[name]), float(error[name]))
                )
            held = np.asarray(np.isfinite(gap) & (error > 0))
            if held.sum() > 1:
                both = pooled(np.asarray(gap)[held], np.asarray(error)[held])
                n = int(held.sum())
                one = _gap(score, str(variant), f"all {n}", both["value"], both["standard_error"])
                other = _gap(
                    score, str(variant), f"all {n}, effects that differ",
                    both["random"], both["random_error"],
                )  # fmt: skip
                rows += [one | {"heterogeneity": both["heterogeneity"]}, other]
    return pd.DataFrame(rows)


def _gap(score: str, variant: str, who: str, value: float, error: float) -> dict[str, Any]:
    half = scipy.stats.norm.ppf(0.975) * error
    return {
        "score": score, "variant": variant, PARTICIPANT: who, "value": value,
        "standard_error": error, "low": value - half, "high": value + half,
        "heterogeneity": np.nan,
    }  # fmt: skip


def _thoughts(scores: pd.DataFrame, about: About) -> Section:
    title = "Chain of thought and step back, against the plain question"
    found = thoughts(scores, about.models)
    if found.empty:
        return Section("thoughts", title, ["The plan asks for thoughts in no experiment."])
    told = [name for name in THOUGHTS if found.loc[found["score"] == name, "value"].notna().any()]
    figure, axes = draw.panels(max(len(told), 1), columns=2)
    figure.set_size_inches(9.0, 0.26 * len(found) + 1.2)
    for axis, score in zip(axes, told, strict=False):
        own = found[found["score"] == score].reset_index(drop=True)
        for (variant, part), style in zip(
            own.groupby("variant", sort=False), draw.styles(2), strict=False
        ):
            axis.hlines(part.index, part["low"], part["high"], color=style[0], linewidth=1.2)
            axis.plot(part["value"], part.index, style[1], color=style[0], label=str(variant))
        axis.axvline(0, color=draw.GREY, linewidth=1, linestyle="--")
        axis.set_yticks(range(len(own)), own[PARTICIPANT], fontsize=draw.SMALL)
        axis.invert_yaxis()
        draw.entitle(axis, score.replace("_", " "))
    draw.key(figure, axes[0])
    return Section(
        "thoughts",
        title,
        [
            "Each difference is from the same model without thoughts, on the same sessions; its "
            "error takes the two as independent, which is too wide where they go together. They "
            "are pooled by the inverse of their variances: as one effect, as in the paper, and as "
            "effects that differ between models. Where p for one effect is small, the first says "
            "little.",
        ],
        [
            table(
                "Differences from the plain question",
                found,
                ("score", "{score}"),
                ("thoughts", "{variant}"),
                ("participant", "{participant}"),
                ("difference", "{value:.3f}"),
                ("95% interval", between),
                ("p for one effect", "{heterogeneity:.3g}"),
            )
        ],
        [("What thoughts add, model by model and pooled.", draw.svg(figure))] if told else [],
        frames={"thoughts": found},
        scores=_compared(scores[scores["variant"] != BASE]),
    )


# Features ---------------------------------------------------------------------------------------


def average_performance(base: pd.DataFrame, who: Sequence[str]) -> pd.DataFrame:
    """Return the mean of the standardised performances of each participant, as a score of its own.

    Each performance is standardised over participants; who lacks one has the mean of the others.
    """
    own = base[base["score"].isin(PERFORMANCES) & base[PARTICIPANT].isin(who)]
    wide = own.pivot_table(index=PARTICIPANT, columns="score", values="value", sort=False)
    spread = wide.std(ddof=1)
    mean = ((wide - wide.mean()) / spread.where(spread > 0)).mean(axis=1)
    return pd.DataFrame(
        {"participant": mean.index, "metric": "average performance", "score": mean.to_numpy()}
    )


def _regression(
    base: pd.DataFrame, about: About, scale: Mapping[str, tuple[float, float]]
) -> Section:
    title = "What of models goes with their scores"
    if about.features is None:
        return Section(
            "features",
            title,
            [
                "Scores are regressed on features of models where a table of these is given: "
                "--features FILE, a CSV file with the columns participant, base_model, and numbers "
                "(0 and 1 for no and yes). The file features.csv beside the shipped plans is an "
                "example."
            ],
        )
    known = pd.read_csv(about.features)
    regressors = [
        str(c)
        for c in known.select_dtypes(include=["number", "bool"])
        if c not in ("participant", "base_model")
    ]
    who = about.models
    metrics = base[base["score"].isin(METRICS) & base[PARTICIPANT].isin(who)]
    metrics = metrics.rename(columns={PARTICIPANT: "participant", "score": "metric"})
    metrics = metrics[["participant", "metric", "value"]].rename(columns={"value": "score"})
    far = distances(_phenotype(base, METRICS, who, scale), about.seed)
    far = far[[PARTICIPANT, "distance"]].rename(columns={"distance": "score"})
    every = pd.concat(
        [average_performance(base, who), far.assign(metric=DISTANCE), metrics], ignore_index=True
    )
    there = every["participant"].isin(known["participant"])
    left = sorted(set(every.loc[~there, "participant"]))
    every = every[there].reset_index(drop=True)
    found: list[FeatureRegression] = []
    sentences = [
        "A regression of each score on the features, with an intercept for each base model; both "
        "standardised. With few models it says little, however small p is."
    ]
    if left:
        sentences.append(f"Without features, and left out: {', '.join(left)}.")
    for metric, part in every.groupby("metric", sort=False):
        try:
            found.append(feature_regression(part, known, regressors=regressors, standardise=True))
        except ValueError as error:
            sentences.append(f"{metric}: none, {error}")
    if not found:
        return Section("features", title, sentences)
    effects = pd.concat([one.to_frame() for one in found], ignore_index=True)
    return Section(
        "features",
        title,
        sentences,
        [
            table(
                "Regressions on features",
                effects,
                ("score", "{metric}"),
                ("feature", "{feature}"),
                ("coefficient", "{coefficient:.3f}"),
                ("95% interval", between),
                ("p", "{p_value:.3g}"),
                ("participants", "{participants}"),
                ("base models", "{base_models}"),
                ("status", "{status}"),
            )
        ],
        _effects_figure(effects),
        frames={"features": effects, "features_scores": every},
        command=command_line(
            "regress", "tables/features_scores.csv", features=str(about.features),
            feature=regressors, standardise=True,
        ),
    )  # fmt: skip


def _effects_figure(effects: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the figure of the coefficients, a panel per score that has some."""
    drawn = effects[effects["low"].notna()]
    if drawn.empty:
        return []
    rows = drawn.rename(columns={"coefficient": "value"}).assign(
        metric=drawn["metric"].map(_named), kind="coefficient"
    )
    figure = dots(
        rows, along="feature", panel="metric", series="kind", label="coefficient", null=0.0
    )
    return [
        (
            "Coefficients of the features, both sides standardised, with 95% intervals; 0 is none.",
            draw.svg(figure),
        )
    ]


# A map ------------------------------------------------------------------------------------------


def flat_map(base: pd.DataFrame, who: Sequence[str]) -> tuple[pd.DataFrame, float]:
    """Return a place in two dimensions for each participant, and the share of distance kept.

    Classical scaling (Torgerson 1952) of the root mean squared differences of the standardised
    metrics, over those that both of a pair have. Who shares none with somebody is left out.
    """
    own = base[base["score"].isin(METRICS) & base[PARTICIPANT].isin(who)]
    wide = own.pivot_table(index=PARTICIPANT, columns="score", values="value", sort=False)
    spread = wide.std(ddof=1)
    z = ((wide - wide.mean()) / spread.where(spread > 0)).dropna(axis="columns", how="all")
    values, names = z.to_numpy(), z.index.to_numpy()
    square = np.zeros((0, 0))
    while len(names):
        gap = (values[:, None] - values[None]) ** 2
        shared = np.isfinite(gap).sum(axis=2)
        with np.errstate(invalid="ignore"):
            square = np.nansum(gap, axis=2) / shared
        lonely = np.isnan(square).sum(axis=1)
        if not lonely.any():
            break
        kept = np.arange(len(names)) != int(lonely.argmax())
        values, names = values[kept], names[kept]
    if len(names) < 3:
        return pd.DataFrame(columns=[PARTICIPANT, "x", "y"]), np.nan
    centre = np.eye(len(names)) - 1 / len(names)
    size, direction = np.linalg.eigh(-centre @ square @ centre / 2)
    order = np.argsort(size)[::-1][:2]
    place = direction[:, order] * np.sqrt(np.maximum(size[order], 0.0))
    place = place * np.where(place[np.abs(place).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    kept_share = float(np.maximum(size[order], 0.0).sum() / np.maximum(size, 0.0).sum())
    return pd.DataFrame({PARTICIPANT: names, "x": place[:, 0], "y": place[:, 1]}), kept_share


def _yes_or_no(about: About) -> dict[str, str]:
    """Return of each model the first of its features that is yes or no, in words."""
    if about.features is None:
        return {}
    known = pd.read_csv(about.features).set_index("participant")
    for name in known.select_dtypes(include=["number", "bool"]):
        values = known[name].dropna()
        if set(values.astype(float)) == {0.0, 1.0}:
            word = str(name).replace("_", " ")
            return {str(who): word if yes else f"not {word}" for who, yes in values.items()}
    return {}


def _map(base: pd.DataFrame, about: About) -> Section:
    title = "A map of behaviour"
    found, share = flat_map(base, about.participants)
    told = _yes_or_no(about)
    if found.empty:
        return Section("map", title, ["A map needs three participants with metrics in common."])
    left = [name for name in about.participants if name not in set(found[PARTICIPANT])]
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(6.4, 4.6)
    kinds = found[PARTICIPANT].map(told).where(~found[PARTICIPANT].isin(about.known), "known minds")
    kinds = kinds.fillna("models")
    order = [*(k for k in dict.fromkeys(kinds) if k != "known minds"), "known minds"]
    for label, style in zip(order, draw.styles(len(order)), strict=True):
        own = kinds == label
        if own.any():
            axis.plot(found["x"][own], found["y"][own], style[1], color=style[0], label=label)
    for row in found.to_dict("records"):
        axis.annotate(row[PARTICIPANT], (row["x"], row["y"]), xytext=(4, 4),
                      textcoords="offset points", fontsize=draw.SMALL)  # fmt: skip
    axis.set_aspect("equal", adjustable="datalim")
    axis.margins(0.15)
    draw.key(figure, axis)
    sentences = [
        f"Who is near whom in the standardised metrics, {share:.0%} of whose distances two "
        "dimensions keep (classical scaling, where the paper has UMAP, which keeps no distances)."
    ]
    if left:
        sentences.append(f"Without metrics in common with the others: {', '.join(left)}.")
    return Section(
        "map",
        title,
        sentences,
        figures=[("Participants whose metrics are alike lie near each other.", draw.svg(figure))],
        frames={"map": found},
    )


# Known minds ------------------------------------------------------------------------------------


def recovered(base: pd.DataFrame, about: About) -> pd.DataFrame:
    """Return each known mind's metrics beside what they are by its parameters.

    One row each: participant, score, truth, value, standard_error, low, high, and whether the
    interval holds the truth (None where one of the two is missing).
    """
    cells = base.set_index([PARTICIPANT, "score"])
    rows: list[dict[str, Any]] = []
    for who in about.known:
        for name in METRICS:
            if (who, name) not in cells.index or name in SIMULATED:
                continue
            own: Any = cells.loc[(who, name)]
            cell = str(own["cell"])
            mind = about.truth.get(who, {}).get(cell)
            if mind is None:
                continue
            agent = AGENTS[mind["model"]]
            truth = float(MEASURES[name].truth(agent, theta_of(mind, about.places[cell])[None])[0])
            told = np.isfinite([truth, own["low"], own["high"]]).all()
            rows.append(
                {
                    PARTICIPANT: who, "score": name, "truth": truth, "value": own["value"],
                    "standard_error": own["standard_error"], "low": own["low"],
                    "high": own["high"],
                    "held": bool(own["low"] <= truth <= own["high"]) if told else None,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def _known(base: pd.DataFrame, about: About) -> Section:
    title = "Do known minds come back?"
    found = recovered(base, about)
    if found.empty:
        return Section("known", title, ["The plan has no known minds."])
    told = found[found["held"].notna()]
    return Section(
        "known",
        title,
        [
            f"Of {len(told)} metrics of known minds that have a true value and an interval, "
            f"{int(told['held'].sum())} intervals of 95% hold the truth. Learning rates and the "
            "optimism bias are drawn to the prior where sessions are short. The true risk and "
            "meta-cognition take long simulations and are left out."
        ],
        [
            table(
                "Metrics of known minds beside their parameters",
                found,
                ("known mind", "{participant}"),
                ("score", "{score}"),
                ("truth", "{truth:.3f}"),
                ("value", "{value:.3f}"),
                ("95% interval", between),
                ("holds it", lambda row: {True: "yes", False: "no"}.get(row["held"], "-")),
            )
        ],
        frames={"known": found},
    )
