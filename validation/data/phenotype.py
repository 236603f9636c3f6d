"""Phenotypes: what sets a participant apart, on a scale from random answers to a reference."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import nan
from pathlib import Path
from textwrap import wrap
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes
from numpy.typing import NDArray

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import ENVIRONMENTS, Environment, Trials, make, unknown
from knownminds.inference import MEASURES
from knownminds.inference.measure import reason_of
from knownminds.inference.performance import performance
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import versions
from knownminds.validation.pages.figures import (
    BLUE,
    COLUMN_WIDTH,
    GREY,
    ORANGE,
    PAGE_WIDTH,
    SMALL,
    TITLE,
)

# The ten of CogBench, in its order.
METRICS = (
    "prior_weighting",
    "likelihood_weighting",
    "directed_exploration",
    "random_exploration",
    "meta_cognition",
    "learning_rate",
    "optimism_bias",
    "model_basedness",
    "temporal_discounting",
    "risk",
)
PERFORMANCE = "_performance"  # follows the name of an experiment: the mean of its performance
NULL_AGENTS = ("random_responder", "random_rater", "random_responder_confidence")
SESSIONS = 400  # of the null agent
EACH = 100  # sessions of each character in each experiment

Mind = tuple[str, dict[str, float]]  # a model and its parameters

# A mind that does nothing out of the ordinary, by experiment: the reference of the gallery.
TYPICAL: dict[str, Mind] = {
    "probabilistic_reasoning": (
        "weighted_bayes",
        {"b_0": 0.0, "b_prior": 0.8, "b_likelihood": 0.8, "sigma": 0.4},
    ),
    "horizon": (
        "horizon_explorer",
        {"A_1": 0.0, "A_6": 0.6, "B": 0.0, "s_1": 0.5, "s_6": 0.9},
    ),
    "restless_bandit": (
        "change_point_observer",
        {"h": 0.05, "beta": 3.0, "c_0": 0.0, "c_1": 0.5, "s": 0.5},
    ),
    "instrumental_learning": (
        "rescorla_wagner_dual",
        {"alpha_positive": 0.4, "alpha_negative": 0.25, "beta": 4.0, "kappa": 0.0},
    ),
    "two_step": (
        "two_step_reduced",
        {"alpha": 0.5, "beta": 5.0, "w": 0.5, "pi": 0.2},
    ),
    "temporal_discounting": ("hyperbolic_discounter", {"k": 0.001, "tau": 0.005, "eta": 1.0}),
    "balloon_risk": ("balloon_pumper", {"phi": 0.95, "eta": 0.05, "gamma": 1.0, "tau": 0.4}),
}
# Who differs from it, and in what; the rest is typical.
CHARACTERS: dict[str, dict[str, dict[str, float]]] = {
    "optimist": {"instrumental_learning": {"alpha_positive": 0.6, "alpha_negative": 0.1}},
    "symmetric learner": {
        "instrumental_learning": {"alpha_positive": 0.325, "alpha_negative": 0.325}
    },
    "model-based planner": {"two_step": {"w": 1.0}},
    "model-free creature of habit": {"two_step": {"w": 0.0}},
    "explorer": {"horizon": {"A_6": 2.5, "s_6": 1.6}},
    "exploiter": {"horizon": {"A_6": -0.3, "s_6": 0.4}},
    "risk-seeker": {"balloon_risk": {"gamma": 3.0}},
    "cautious pumper": {"balloon_risk": {"gamma": 0.3}},
    "patient": {"temporal_discounting": {"k": 0.0003}},
    "impatient": {"temporal_discounting": {"k": 0.05}},
    "base-rate neglecter": {"probabilistic_reasoning": {"b_prior": 0.0}},
    "blind to own errors": {"restless_bandit": {"c_1": 0.0}},
}
SPAN = (-2.0, 3.0)  # of the figures, on the normalised scale; what lies beyond has an arrow
NOT_GIVEN = "not measured"
LONGEST = 34  # letters of a line above a radar
SIGNED = "phenotype: 0 = random answers, 1 = reference"
UNSIGNED = "phenotype: without sign, 0 = random answers, 1 = reference"
BARS = "black lines: 95% intervals, random answers and reference taken as known; arrows: beyond"
_SAME = 1e-12

Scores = Mapping[str, float]
Files = Trials | Iterable[Trials]


@dataclass(frozen=True)
class Phenotype(Reported):
    """Scores of participants, normalised: 0 is what random answers score, 1 the reference.

    Parameters
    ----------
    participants, metrics
        Their names.
    score, standard_error, low, high
        Of each participant on each metric, with its 95% interval, [participants, metrics]; NaN
        where there is none.
    random, reference
        Scores of random answers and of the reference, [metrics].
    reason
        Why there is no normalised score; empty where there is one, [participants, metrics].
    released
        Whether normalised scores are without sign, as in CogBench.
    options
        What the command was told, where one was: files, column, reference.
    """

    file: ClassVar[str] = "phenotype.json"

    participants: tuple[str, ...]
    metrics: tuple[str, ...]
    score: Array
    standard_error: Array
    low: Array
    high: Array
    random: Array
    reference: Array
    reason: tuple[tuple[str, ...], ...]
    released: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)

    @property
    def normalised(self) -> Array:
        """(score - random) / (reference - random), [participants, metrics]; NaN if missing."""
        share = (self.score - self.random) / self._distance
        return np.abs(share) if self.released else share

    @property
    def normalised_error(self) -> Array:
        """Standard errors on the normalised scale; random and reference are taken as known."""
        return np.abs(self.standard_error / self._distance)

    @property
    def normalised_interval(self) -> tuple[Array, Array]:
        """Ends of the 95% intervals on the normalised scale, each [participants, metrics]."""
        ends = np.stack([(end - self.random) / self._distance for end in (self.low, self.high)])
        low, high = ends.min(axis=0), ends.max(axis=0)
        if not self.released:
            return low, high
        # Of a number without sign: from 0 where both signs are held to be possible.
        nearest = np.where((low < 0) & (high > 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        return nearest, np.maximum(np.abs(low), np.abs(high))

    @property
    def _distance(self) -> Array:
        distance = self.reference - self.random
        return np.where(_apart(self.random, self.reference), distance, nan)

    def of(self, participants: NDArray[np.bool_], metrics: NDArray[np.bool_]) -> Phenotype:
        """Return the part of some participants and metrics, each chosen by True."""
        grid = np.ix_(participants, metrics)
        cut = {
            name: getattr(self, name)[grid] for name in ("score", "standard_error", "low", "high")
        }
        return replace(
            self,
            **cut,
            participants=tuple(np.array(self.participants, dtype=object)[participants]),
            metrics=tuple(np.array(self.metrics, dtype=object)[metrics]),
            random=self.random[metrics],
            reference=self.reference[metrics],
            reason=tuple(map(tuple, np.array(self.reason, dtype=object)[grid])),
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per participant and metric."""
        normalised, error = self.normalised, self.normalised_error
        low, high = self.normalised_interval
        return pd.DataFrame(
            [
                {
                    "participant": participant,
                    "metric": metric,
                    "score": self.score[i, j],
                    "standard_error": self.standard_error[i, j],
                    "low": self.low[i, j],
                    "high": self.high[i, j],
                    "random": self.random[j],
                    "reference": self.reference[j],
                    "normalised": normalised[i, j],
                    "normalised_error": error[i, j],
                    "normalised_low": low[i, j],
                    "normalised_high": high[i, j],
                    "missing": self.reason[i][j],
                }
                for i, participant in enumerate(self.participants)
                for j, metric in enumerate(self.metrics)
            ]
        )

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        return {
            "released": self.released,
            "scores": self.to_frame(),
            "options": dict(self.options),
            "versions": dict(self.versions),
        }

    def tables(self) -> Mapping[str, pd.DataFrame]:
        """The scores, one row per participant and metric."""
        return {"phenotype": self.to_frame()}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Phenotype:
        """Make a phenotype of what `to_dict` gave."""
        table = pd.DataFrame(found["scores"])
        people, metrics = (tuple(table[name].unique()) for name in ("participant", "metric"))
        shape = len(people), len(metrics)
        own = {
            name: table[name].to_numpy(dtype=float).reshape(shape)
            for name in ("score", "standard_error", "low", "high", "random", "reference")
        }
        random, reference = own.pop("random")[0], own.pop("reference")[0]
        reasons = table["missing"].to_numpy(dtype=object).reshape(shape)
        return cls(
            people,
            metrics,
            **own,
            random=random,
            reference=reference,
            reason=tuple(tuple(row) for row in reasons),
            released=found["released"],
            options=found["options"],
            versions=found["versions"],
        )

    def __str__(self) -> str:
        """Normalised scores, a row per participant."""
        wide = max(len(name) for name in self.participants) + 2
        heads = [metric.replace("_", " ") for metric in self.metrics]
        widths = [max(len(head), 7) + 2 for head in heads]
        lines = [UNSIGNED if self.released else SIGNED]
        lines.append(
            " " * wide + "".join(f"{head:>{w}}" for head, w in zip(heads, widths, strict=True))
        )
        for name, row in zip(self.participants, self.normalised, strict=True):
            cells = ["-" if np.isnan(x) else f"{x:.2f}" for x in row]
            told = "".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True))
            lines.append(f"{name:<{wide}}{told}")
        missing = sorted({reason for row in self.reason for reason in row if reason})
        return "\n".join([*lines, *([f"(-: {'; '.join(missing)})"] if missing else [])])

    def bars(self) -> Figure:
        """Draw a panel per metric that anyone has, with a bar from random answers to each."""
        had: NDArray[np.bool_] = np.asarray(np.isfinite(self.normalised).any(axis=0))
        if had.any() and not had.all():
            return self.of(np.full(len(self.participants), True), had).bars()
        n, across = len(self.metrics), min(len(self.metrics), 3)
        down = -(-n // across)
        longest = min(max(len(name) for name in self.participants), LONGEST)
        height = down * (0.24 * len(self.participants) + 1.1) + 0.6
        wide = min(2.0 * across + 0.075 * longest, PAGE_WIDTH)
        figure = Figure(figsize=(max(wide, COLUMN_WIDTH), height), layout="constrained")
        panels: list[Axes] = []
        for j, metric in enumerate(self.metrics):
            axis = figure.add_subplot(down, across, j + 1, sharey=panels[0] if panels else None)
            panels.append(axis)
            self._bar_panel(axis, j)
            axis.set_title(_label(metric), fontsize=TITLE)
            axis.tick_params(axis="y", labelleft=j % across == 0)
        names = ["\n".join(wrap(name, LONGEST)) for name in self.participants]
        panels[0].set_yticks(range(len(names)), names, fontsize=SMALL)
        panels[0].set_ylim(len(names) - 0.4, -0.6)
        figure.supxlabel(
            f"{UNSIGNED if self.released else SIGNED}\n{BARS}",
            fontsize=SMALL + 1,
        )
        return figure

    def radar(self) -> Figure:
        """Draw a radar per participant: dashed ring random answers, bold ring the reference."""
        n, across = len(self.participants), min(len(self.participants), 2)
        down = -(-n // across)
        wide, high, round_, below = 3.6, 3.6, 2.0, 0.4  # inches of a panel, its disc, the key
        size = wide * across, high * down + below
        figure = Figure(figsize=size)
        for i, name in enumerate(self.participants):
            left, up = divmod(i, across)[::-1]
            x, y = (left + 0.5) * wide, below + (down - up - 0.55) * high
            corner = ((x - round_ / 2) / size[0], (y - round_ / 2) / size[1])
            axis = figure.add_axes(
                (*corner, round_ / size[0], round_ / size[1]), projection="polar"
            )
            assert isinstance(axis, PolarAxes)
            self._radar_panel(axis, i)
            lines = "\n".join(wrap(name, LONGEST))
            axis.set_title(lines, fontsize=TITLE, fontweight="bold", pad=28)
        told = (
            "dashed ring: random answers (0)",
            "bold ring: reference (1)",
            f"centre {self._lowest:g}, rim {SPAN[1]:g}",
            "triangle: further out",
            "grey x: missing",
        )
        lines = "; ".join(told) if across > 1 else "\n".join(told)
        figure.text(0.5, 0.05 / size[1], lines, ha="center", va="bottom", fontsize=SMALL + 1)
        return figure

    @property
    def _lowest(self) -> float:
        return 0.0 if self.released else SPAN[0]

    def _bar_panel(self, axis: Axes, j: int) -> None:
        low, high = self._lowest - 0.25, SPAN[1] + 0.25
        axis.axvline(0, color=GREY, linewidth=1, linestyle="--")
        axis.axvline(1, color="black", linewidth=1)
        starts, ends = (side[:, j] for side in self.normalised_interval)
        drawn = zip(self.normalised[:, j], starts, ends, strict=True)
        for i, (value, start, end) in enumerate(drawn):
            if np.isnan(value):
                axis.text(0.06, i, self.reason[i][j], color=GREY, fontsize=SMALL - 1, va="center")
                continue
            colour = BLUE if value >= 0 else ORANGE
            inside = float(np.clip(value, low, high))
            axis.barh(i, inside, color=colour, height=0.7, alpha=0.85)
            if np.isfinite(start):
                axis.hlines(i, *np.clip([start, end], low, high), color="black", linewidth=1)
            if inside != value:
                marker = ">" if value > 0 else "<"
                axis.plot(inside, i, marker=marker, color=colour, markersize=7, clip_on=False)
                side = {"right": inside - 0.12, "left": inside + 0.12}
                where = "right" if value > 0 else "left"
                axis.text(
                    side[where], i, f"{value:.1f}", color="white", ha=where, va="center",
                    fontsize=SMALL - 1, fontweight="bold",
                )  # fmt: skip
        axis.set_xlim(low, high)
        axis.set_xticks(np.arange(np.ceil(low), high))
        axis.tick_params(axis="x", labelsize=SMALL)
        axis.tick_params(axis="y", length=0, labelsize=SMALL)
        axis.spines[["top", "right", "left"]].set_visible(False)

    def _radar_panel(self, axis: PolarAxes, i: int) -> None:
        n = len(self.metrics)
        angles = np.arange(n) * 2 * np.pi / n
        values = self.normalised[i]
        inside = np.clip(values, self._lowest, SPAN[1])
        ring = np.linspace(0, 2 * np.pi, 200)
        axis.plot(ring, np.zeros_like(ring), color=GREY, linewidth=1, linestyle="--")
        axis.plot(ring, np.ones_like(ring), color="black", linewidth=1.8)
        there = np.isfinite(values)
        if there.all():
            axis.fill(angles, inside, color=BLUE, alpha=0.25)
        around = np.append(np.arange(n), 0)
        axis.plot(angles[around], inside[around], color=BLUE, linewidth=1.8)  # NaN leaves a gap
        held = there & (inside == values)
        axis.plot(angles[held], inside[held], "o", color=BLUE, markersize=5)
        low, high = (np.clip(side[i], self._lowest, SPAN[1]) for side in self.normalised_interval)
        known = np.isfinite(low) & np.isfinite(high)
        axis.vlines(angles[known], low[known], high[known], color=BLUE, linewidth=1)
        out = there & ~held
        axis.plot(angles[out], inside[out], "^", color=ORANGE, markersize=8, clip_on=False)
        gone = ~there
        axis.plot(angles[gone], np.full(gone.sum(), 0.5), "x", color=GREY, markersize=7)
        axis.set_theta_zero_location("N")
        axis.set_theta_direction(-1)
        axis.set_ylim(self._lowest, SPAN[1])
        axis.set_yticks(np.arange(self._lowest, SPAN[1] + 1), [])
        axis.set_xticks(angles, [_label(metric) for metric in self.metrics], fontsize=SMALL)
        axis.tick_params(axis="x", pad=11)
        for label, missing in zip(axis.get_xticklabels(), gone, strict=True):
            label.set_color(GREY if missing else "black")
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.spines["polar"].set_color("#dddddd")


def phenotype(
    participants: Mapping[str, Files | Scores],
    *,
    reference: Scores | str | os.PathLike[str],
    random: Scores | None = None,
    environments: Sequence[Environment] = (),
    metrics: Sequence[str] | None = None,
    released: bool = False,
    sessions: int = SESSIONS,
    seed: int = 0,
) -> Phenotype:
    """Normalise what participants score: 0 is random answers, 1 the reference.

    The scale is (x - random) / (reference - random) and keeps its sign: whoever deviates from
    random answers the other way has a negative score. No reference is shipped. Two published
    sets of human values are none: the human answers in CogBench's probabilistic reasoning are a
    formula without noise, and its numbers for balloons are money, not pumps.

    Parameters
    ----------
    participants
        By name, the trials of each, one record per experiment (several subjects in a record are
        sessions of this participant); or scores by metric that were read off before.
    reference
        Scores by metric, or a CSV file with the columns metric and value.
    random
        Scores of random answers; if None, those of the null agent in the same designs.
    environments
        The experiments as they were played; those not named have their default settings.
    metrics
        Names of measures, and NAME_performance for the mean performance in an experiment. If
        None, the ten behavioural metrics.
    released
        As CogBench does: normalised scores lose their sign, and metrics with a released
        definition have that one if `metrics` is None.
    sessions, seed
        Of the null agent.

    Raises
    ------
    ValueError
        If a name is unknown (the nearest are told), trials do not name their experiment, two
        records of a participant are of the same one, or the reference cannot be read.
    """
    if not participants:
        raise ValueError("A phenotype is of one participant at least; got none.")
    chosen = _metrics(metrics, released)
    designs = {place.name: place for place in environments}
    for name in {_place(metric) for metric in chosen} - set(designs):
        designs[name] = make(name)
    read = [_scores(name, of, chosen, designs) for name, of in participants.items()]
    table = dict(reference) if isinstance(reference, Mapping) else read_reference(reference)
    _check_names(table, "the reference")
    if random is None:
        made = {
            metric: random_score(metric, designs[_place(metric)], sessions, seed)
            for metric in chosen
        }
    else:
        _check_names(random, "random")
        made = {metric: float(random.get(metric, nan)) for metric in chosen}
    zero = np.array([made[metric] for metric in chosen])
    one = np.array([float(table.get(metric, nan)) for metric in chosen])
    reasons = []
    for row in read:
        reason = []
        for j, (value, _, _, _, why) in enumerate(row):
            if not np.isfinite(value):
                reason.append(why)
            elif not np.isfinite(one[j]):
                reason.append("no reference")
            elif not np.isfinite(zero[j]):
                reason.append("no random score")
            else:
                reason.append("" if _apart(zero[j], one[j]) else "reference is random")
        reasons.append(tuple(reason))
    return Phenotype(
        participants=tuple(participants),
        metrics=chosen,
        score=_side_by_side(read, 0),
        standard_error=_side_by_side(read, 1),
        low=_side_by_side(read, 2),
        high=_side_by_side(read, 3),
        random=zero,
        reference=one,
        reason=tuple(reasons),
        released=released,
    )


def _side_by_side(read: Sequence[Sequence[_One]], k: int) -> Array:
    """Return one of the numbers of each participant and metric."""
    return np.array([[one[k] for one in row] for row in read], dtype=float)


def gallery(
    characters: Mapping[str, Mapping[str, Mapping[str, float]]] = CHARACTERS,
    *,
    sessions: int = EACH,
    seed: int = 0,
) -> Phenotype:
    """Return the phenotypes of simulated minds that each differ from a typical one in one way.

    The reference is the typical mind, so that whatever is ordinary about a character lies at 1,
    up to the sampling error of its sessions.

    Parameters
    ----------
    characters
        By name and experiment, the parameters that differ from `TYPICAL`.
    sessions
        Of each character in each experiment.
    """
    typical = {place: mind for place, mind in TYPICAL.items() if place in ENVIRONMENTS}
    # The reference has more sessions than anyone who is measured by it.
    drawn = _live(typical, max(SESSIONS, 4 * sessions), seed, 0)
    metrics = [name for name in METRICS if name in MEASURES and _place(name) in typical]
    designs = {trials.frame["environment"].iloc[0]: make(name) for name, trials in drawn.items()}
    reference = {
        metric: one[0]
        for metric, one in zip(
            metrics, _scores("typical", drawn.values(), metrics, designs), strict=True
        )
    }
    lived = {}
    for k, (name, differs) in enumerate(characters.items()):
        minds = {
            place: (model, {**values, **differs.get(place, {})})
            for place, (model, values) in typical.items()
        }
        lived[name] = list(_live(minds, sessions, seed, 1 + k).values())
    return phenotype(lived, reference=reference, metrics=metrics, seed=seed)


def _live(minds: Mapping[str, Mind], sessions: int, seed: int, address: int) -> dict[str, Trials]:
    """Let minds live sessions of the experiments in which they are at home."""
    lived = {}
    for place, (model, values) in minds.items():
        theta = AGENTS[model].parameters.vector(values, owner=model)
        played = simulate_sessions(
            AGENTS[model], np.tile(theta, (sessions, 1)), make(place), seed, address=(address,)
        )
        lived[place] = played.to_trials()
    return lived


def _metrics(metrics: Sequence[str] | None, released: bool) -> tuple[str, ...]:
    if metrics is None:
        known = [name for name in METRICS if name in MEASURES]
        if not released:
            return tuple(known)
        theirs = [f"{name}_released" for name in known]
        return tuple(t if t in MEASURES else n for n, t in zip(known, theirs, strict=True))
    if len(set(metrics)) < len(metrics) or not metrics:
        raise ValueError(f"Metrics are one or more names, each once; got {list(metrics)!r}.")
    _check_names(dict.fromkeys(metrics, 0.0), "metrics")
    return tuple(metrics)


def _known() -> list[str]:
    return [*MEASURES, *(f"{name}{PERFORMANCE}" for name in ENVIRONMENTS)]


def _check_names(named: Scores, where: str) -> None:
    for name in named:
        if name not in _known():
            raise ValueError(f"{unknown('metric', name, _known())} It stands in {where}.")


def _place(metric: str) -> str:
    """Return the experiment in which a metric is read off."""
    if metric.endswith(PERFORMANCE):
        return metric.removesuffix(PERFORMANCE)
    return MEASURES[metric].environments[0]


def _apart(zero: Any, one: Any) -> NDArray[np.bool_]:
    return np.asarray(np.abs(one - zero) > _SAME * np.maximum(np.abs(one), np.abs(zero)))


_One = tuple[float, float, float, float, str]  # score, its error and interval, reason
_NONE = (nan, nan, nan, nan, NOT_GIVEN)


def _scores(
    name: str,
    of: Files | Scores,
    metrics: Sequence[str],
    designs: Mapping[str, Environment],
) -> list[_One]:
    """Return a participant's score on each metric."""
    if isinstance(of, Mapping):
        _check_names(of, f"the scores of {name}")
        return [
            (float(of[metric]), nan, nan, nan, "") if np.isfinite(of.get(metric, nan)) else _NONE
            for metric in metrics
        ]
    records: dict[str, Trials] = {}
    for trials in (of,) if isinstance(of, Trials) else of:
        named = "environment" in trials.frame
        places: list[str] = list(trials.frame["environment"].unique()) if named else []
        if len(places) != 1:
            raise ValueError(
                f"Each record of a participant is of one experiment; one of {name} names "
                f"{', '.join(map(str, places)) or 'none'}. Read it with environment=NAME."
            )
        if places[0] in records:
            raise ValueError(
                f"A participant has one record of each experiment; {name} has several of "
                f"{places[0]}. Join them with Trials.concatenate."
            )
        records[str(places[0])] = trials
    return [
        _score(metric, records[_place(metric)], designs[_place(metric)])
        if _place(metric) in records
        else _NONE
        for metric in metrics
    ]


def _score(metric: str, trials: Trials, environment: Environment) -> _One:
    """Read a metric off the trials of a participant."""
    if metric.endswith(PERFORMANCE):
        estimate = performance(trials, environment)
    else:
        estimate = MEASURES[metric].estimate(trials)
    ends = estimate.low, estimate.high
    return estimate.value, estimate.standard_error, *ends, reason_of(estimate)


def read_phenotype(folder: str | os.PathLike[str]) -> Phenotype:
    """Read what `Phenotype.save` wrote."""
    return Phenotype.read(folder)


def random_score(metric: str, environment: Environment, sessions: int, seed: int) -> float:
    """Return what the null agent scores on average."""
    settings = json.dumps(environment.settings)
    return _score(
        metric, _played_at_random(environment.name, settings, sessions, seed), environment
    )[0]


@lru_cache(maxsize=16)  # several metrics are read off the same experiment
def _played_at_random(name: str, settings: str, sessions: int, seed: int) -> Trials:
    environment = make(name, **json.loads(settings))
    able = [model for model in NULL_AGENTS if model in AGENTS and AGENTS[model].plays(environment)]
    if not able:
        raise ValueError(
            f"No null agent ({', '.join(NULL_AGENTS)}) plays {name}. Give its scores as `random`."
        )
    model = AGENTS[able[0]]
    theta = np.tile(model.parameters.constrain(model.parameters.mean), (sessions, 1))
    return simulate_sessions(model, theta, environment, seed).to_trials()


def read_reference(file: str | os.PathLike[str]) -> dict[str, float]:
    """Return reference values by metric from a CSV file with the columns metric and value."""
    path = Path(file)
    try:
        table = pd.read_csv(path)
    except (OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(
            f"A reference is a CSV file with the columns metric and value; {path.name} cannot be "
            f"read: {error}"
        ) from None
    missing = [name for name in ("metric", "value") if name not in table]
    if missing:
        raise ValueError(
            f"A reference has the columns metric and value; {path.name} has "
            f"{', '.join(map(str, table.columns))}. Rename or add {missing[0]!r}."
        )
    doubled = table["metric"][table["metric"].duplicated()]
    if len(doubled):
        raise ValueError(
            f"A metric has one reference value; {path.name} has several of {doubled.iloc[0]!r}. "
            "Leave one."
        )
    value = pd.to_numeric(table["value"], errors="coerce")
    wrong = value.isna() & table["value"].notna()
    if wrong.any():
        row = table[wrong].iloc[0]
        raise ValueError(
            f"A reference value is a number; {row['metric']} has {row['value']!r} in {path.name}. "
            "Leave it empty if there is none."
        )
    return dict(zip(table["metric"].astype(str), value.astype(float), strict=True))


def _label(metric: str) -> str:
    """Return the name of a metric as words on short lines."""
    words = metric.replace(PERFORMANCE, " performance").replace("_released", "").split("_")
    return "\n".join(" ".join(words).split(" ")) if len(words) > 1 else words[0]
