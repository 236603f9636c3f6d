"""Whether answers lean more on the prior where they should: the Bayesian consistency score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.result import Result
from knownminds.inference.resampling import percentile_interval

from .magnitude_answers import BASE, BOTH, IMAGE, MULTIMODAL, Answers, MagnitudeAnswers

ABLATIONS = ("verbal", "numeric", "constant_noise", "gradual_noise", "long_context")
NOISE = ("constant_noise", "gradual_noise")
MOST = len(ABLATIONS) * len(MULTIMODAL)
DISREGARD = 0.9  # of the prior weight, above which the stimulus hardly counts
SHIFT = 0.2  # of the prior weight in the known agent that adapts
REPLICATES = 2000
ROUNDING = 1e-9
KNOWN_OBSERVERS = ("non-adapting", "adapting", "perfect")


class Comparison(NamedTuple):
    """A condition whose prior weight should be at least that of the base."""

    task: str
    ablation: str

    @property
    def modality(self) -> str:
        """What is looked at: the blur is in the image alone."""
        return IMAGE if self.ablation in NOISE else BOTH

    def __str__(self) -> str:
        """Return task and condition."""
        return f"{self.task} {self.ablation}"


COMPARISONS = tuple(Comparison(task, ablation) for task in MULTIMODAL for ablation in ABLATIONS)


def prior_weight(answers: Answers, *, shared: bool = False) -> Array:
    """Return the weight of the prior in the data and each bootstrap, [B]; NaN if unknown.

    The static Bayesian observer answers (1 - w) x + w mu_p; its most likely w is 1 minus the
    least-squares slope of answers on stimuli, held in [0, 1], with a prior mean, and so an
    intercept, of its own in each window.

    Parameters
    ----------
    shared
        Whether one prior mean serves all windows.
    """
    slope, _ = slopes(answers, shared=shared)
    return np.clip(1.0 - slope, 0.0, 1.0)


def slopes(answers: Answers, *, shared: bool = False) -> tuple[Array, Array]:
    """Return least-squares slope and residual standard deviation, [B] each; NaN if unknown."""
    held = np.isfinite(answers.response)
    response = np.where(held, answers.response, 0.0)
    weight = answers.weight * held
    window = np.zeros(len(answers), dtype=np.int64) if shared else answers.window
    x, y = (_within(column, window, weight) for column in (answers.value, response))
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (weight * x * y).sum(axis=1) / (weight * x**2).sum(axis=1)
        residual = y - slope[:, None] * x
        free = weight.sum(axis=1) - len(np.unique(window[held])) - 1
        sigma = np.sqrt((weight * residual**2).sum(axis=1) / np.where(free > 0, free, np.nan))
    return np.where(np.isfinite(slope), slope, np.nan), sigma


def _within(column: Array, window: NDArray[np.int64], weight: Array) -> Array:
    """Take the weighted mean of each window away, [B, n]."""
    values = np.broadcast_to(column, weight.shape).copy()
    for k in np.unique(window):
        mine = window == k
        total = weight[:, mine].sum(axis=1)
        mean = weight[:, mine] @ column[mine] / np.where(total > 0, total, 1.0)
        values[:, mine] -= mean[:, None]
    return values


def shift_scores(base: Array, ablation: Array) -> Array:
    """Score prior weights: 1 if the ablation's is at least the base's, else -1; 0 above 0.9.

    A weight above 0.9 scores 0 whatever the base's: such an observer disregards the stimulus,
    which remains informative. NaN where a weight is missing. Weights that differ by rounding
    alone are the same: those of an observer without any error are.
    """
    sign = np.where(ablation >= base - ROUNDING, 1.0, -1.0)
    score = np.where(ablation > DISREGARD, 0.0, sign)
    return np.where(np.isfinite(base) & np.isfinite(ablation), score, np.nan)


@dataclass(frozen=True)
class KnownScores:
    """What a known agent earns in the same design.

    Parameters
    ----------
    observer : "non-adapting": its prior weight is that of the participant's base condition in all
        conditions; "adapting": it is larger by `shift` in each ablation; "perfect": it is 0
        everywhere. All have the noise of the participant's answers and its prior means.
    score : Of each simulated participant, [R].
    shifts : By comparison, how much larger its prior weight is than the base's, [R] each.
    """

    observer: str
    score: Array
    shifts: Mapping[Comparison, Array] = field(default_factory=dict)

    @property
    def expected(self) -> float:
        """Mean score."""
        return float(self.score.mean())

    @property
    def sd(self) -> float:
        """Standard deviation of the score."""
        return float(self.score.std(ddof=1))

    def reaching(self, score: float) -> float:
        """Share of the simulated participants with at least this score."""
        return float((self.score >= score).mean())


@dataclass(frozen=True)
class ConsistencyScore(Result):
    """The Bayesian consistency score of a participant, and what to hold it against.

    Parameters
    ----------
    base, ablation : Prior weights by comparison, each [B]: the data, then bootstraps; NaN if
        missing.
    reason : By comparison, why there is no score; "" if there is.
    low, high : Ends of the bootstrap percentile interval of the total; NaN without bootstraps.
    mass : Of that interval.
    known : Scores of known agents with the participant's noise; empty if a comparison is missing.
    """

    base: Mapping[Comparison, Array]
    ablation: Mapping[Comparison, Array]
    reason: Mapping[Comparison, str]
    low: float
    high: float
    mass: float
    known: tuple[KnownScores, ...]

    @property
    def scores(self) -> dict[Comparison, Array]:
        """-1, 0 or 1 by comparison, each [B]."""
        return {c: shift_scores(self.base[c], self.ablation[c]) for c in self.base}

    @property
    def total(self) -> Array:
        """Sum over all comparisons, [B], from -15 to 15; NaN if one is missing."""
        total: Array = np.sum(list(self.scores.values()), axis=0)
        return total

    @property
    def missing(self) -> tuple[str, ...]:
        """The comparisons without a score, with the reason."""
        return tuple(f"{c}: {why}" for c, why in self.reason.items() if why)

    def to_frame(self) -> pd.DataFrame:
        """One row per comparison."""
        scores = self.scores
        return pd.DataFrame(
            {
                "task": c.task,
                "ablation": c.ablation,
                "modality": c.modality,
                "base": self.base[c][0],
                "weight": self.ablation[c][0],
                "shift": self.ablation[c][0] - self.base[c][0],
                "score": scores[c][0],
                "reason": self.reason[c],
            }
            for c in self.base
        )

    def effects(self, mass: float = 0.95) -> pd.DataFrame:
        """Return shifts of the prior weight with their sign, held against minds that never adapt.

        One row for all comparisons together, one per ablation and one per comparison: `shift` is
        the mean of prior weight in the ablation minus that in the base. The null are the simulated
        participants with the noise of this one whose weight stays as it is. `p_value` is two-sided,
        twice the smaller tail with one added to either count, so that it holds its level; `low`
        and `high` end the interval of all shifts that such noise makes compatible with what was
        seen, shift minus the null's quantiles. A score of signs says only how many; a small shift
        counts in it as much as a large one.

        Parameters
        ----------
        mass
            Of the interval.

        Returns
        -------
        task, ablation ("all" where several are taken together), shift, low, high, p_value; without
        a null (no replicates, or a comparison is missing) there are no rows.
        """
        null = next((m.shifts for m in self.known if m.observer == KNOWN_OBSERVERS[0]), {})
        if not null:
            return pd.DataFrame(columns=["task", "ablation", "shift", "low", "high", "p_value"])
        ablations = dict.fromkeys(c.ablation for c in null)
        sets = [("all", "all", list(null))]
        sets += [("all", a, [c for c in null if c.ablation == a]) for a in ablations]
        sets += [(c.task, c.ablation, [c]) for c in null]
        rows = []
        for task, ablation, several in sets:
            seen = float(np.mean([self.ablation[c][0] - self.base[c][0] for c in several]))
            drawn = np.mean([null[c] for c in several], axis=0)
            tails = [int((drawn >= seen).sum()), int((drawn <= seen).sum())]
            p = min(1.0, 2 * (1 + min(tails)) / (1 + len(drawn)))
            below, above = np.quantile(drawn, [(1 - mass) / 2, (1 + mass) / 2])
            rows.append(
                {"task": task, "ablation": ablation, "shift": seen, "low": seen - float(above),
                 "high": seen - float(below), "p_value": p}
            )  # fmt: skip
        return pd.DataFrame(rows)


def consistency_score(
    answers: MagnitudeAnswers,
    participant: str = "",
    *,
    mass: float = 0.68,
    shared: bool = False,
    shift: float = SHIFT,
    replicates: int = REPLICATES,
    seed: int = 0,
    comparisons: Sequence[Comparison] = COMPARISONS,
) -> ConsistencyScore:
    """Score the shifts of a participant's prior weight in all ablations.

    The score alone says little: an observer that makes no error at all earns the maximum, and one
    that never adapts earns 0 only on average, with a wide spread, since the comparisons share
    their base. So it comes with the scores of known agents in the same design: the same stimuli,
    the same trials answered, the participant's own noise.

    Parameters
    ----------
    answers
        Their bootstraps give the interval.
    mass
        Of the percentile interval.
    shared
        Whether one prior mean serves all windows.
    shift
        By how much the prior weight of the known agent that adapts grows.
    replicates, seed
        Of the known agents; 0 for none.
    comparisons
        Which are summed.
    """
    base, ablation, reason = {}, {}, {}
    cells: list[_Pair] = []
    for c in comparisons:
        pairs = [
            answers.cells.get((participant, c.task, condition, c.modality))
            for condition in (BASE, c.ablation)
        ]
        weights = [None if cell is None else prior_weight(cell, shared=shared) for cell in pairs]
        nothing = np.full(_rounds(answers), np.nan)
        base[c], ablation[c] = (nothing if w is None else w for w in weights)
        reason[c] = _why(c, pairs, weights)
        if pairs[0] is not None and pairs[1] is not None and not reason[c]:
            cells.append(_Pair(c, pairs[0], pairs[1]))
    known: tuple[KnownScores, ...] = ()
    if replicates and len(cells) == len(comparisons):
        known = tuple(
            KnownScores(name, *_simulate(cells, name, shift, shared, replicates, seed + k))
            for k, name in enumerate(KNOWN_OBSERVERS)
        )
    result = ConsistencyScore(base, ablation, reason, np.nan, np.nan, mass, known)
    low, high = percentile_interval(result.total, mass)
    return ConsistencyScore(base, ablation, reason, low, high, mass, known)


class _Pair(NamedTuple):
    comparison: Comparison
    base: Answers
    ablation: Answers


def _rounds(answers: MagnitudeAnswers) -> int:
    return max((len(cell.weight) for cell in answers.cells.values()), default=1)


def _why(c: Comparison, pairs: Sequence[Answers | None], weights: Sequence[Array | None]) -> str:
    """Say what a comparison lacks; "" if nothing."""
    lost = [
        f"no {name} trials with {c.modality}"
        for name, cell in zip((BASE, c.ablation), pairs, strict=True)
        if cell is None
    ]
    lost += [
        f"too few answers in {name} with {c.modality}"
        for name, weight in zip((BASE, c.ablation), weights, strict=True)
        if weight is not None and not np.isfinite(weight[0])
    ]
    return ", ".join(lost)


def _simulate(
    cells: Sequence[_Pair], observer: str, shift: float, shared: bool, replicates: int, seed: int
) -> tuple[Array, dict[Comparison, Array]]:
    """Return the scores of known agents in these designs, [R], and their shifts."""
    rng = session_stream(seed, 11)
    drawn: dict[tuple[str, str, str], Array] = {}  # each base condition is played once

    def weight_of(c: Comparison, condition: str, played: Answers, base: Answers) -> Array:
        key = (c.task, condition, c.modality)
        if key not in drawn:
            drawn[key] = _play(played, base, observer, shift * (condition != BASE), shared,
                               replicates, rng)  # fmt: skip
        return drawn[key]

    total = np.zeros(replicates)
    shifts: dict[Comparison, Array] = {}
    for c, base, ablation in cells:
        first, second = weight_of(c, BASE, base, base), weight_of(c, c.ablation, ablation, base)
        total += shift_scores(first, second)
        shifts[c] = second - first
    return total, shifts


def _play(
    played: Answers,
    base: Answers,
    observer: str,
    shift: float,
    shared: bool,
    replicates: int,
    rng: np.random.Generator,
) -> Array:
    """Let R known agents answer the trials that were answered; return their prior weights, [R].

    Prior means and noise are those that the base condition shows.
    """
    slope, sigma = slopes(base, shared=shared)
    weight, noise = float(np.clip(1.0 - slope[0], 0.0, 1.0)), float(np.nan_to_num(sigma[0]))
    held = np.isfinite(played.response)
    x, window = played.value[held], played.window[held]
    means = {k: _prior_mean(base, k, weight, shared) for k in np.unique(window).tolist()}
    centre = np.array([means[k] for k in window.tolist()])
    aim = {"non-adapting": weight, "adapting": min(weight + shift, 1.0), "perfect": 0.0}[observer]
    mean = (1.0 - aim) * x + aim * centre
    said = mean + noise * rng.standard_normal((replicates, len(x)))
    # No answer lies beyond the scale.
    np.clip(said, 0.0, played.ceiling, out=said)
    deviation = x.copy()
    for k in np.unique(window) if not shared else (None,):
        mine = np.ones(len(x), dtype=bool) if k is None else window == k
        deviation[mine] -= x[mine].mean()
    return np.clip(1.0 - said @ deviation / (deviation @ deviation), 0.0, 1.0)


def _prior_mean(base: Answers, window: int, weight: float, shared: bool) -> float:
    """Return the prior mean that fits the base condition; the middle where there is no prior."""
    mine = np.isfinite(base.response) & (shared | (base.window == window))
    if not mine.any():
        mine = np.isfinite(base.response)
    x, y = base.value[mine], base.response[mine]
    middle = float(base.middle[mine].mean())
    if weight < 0.02:  # the intercept is weight x mean, which says nothing of the mean then
        return middle
    mean = float((y - (1.0 - weight) * x).mean() / weight)
    return float(np.clip(mean, 0.0, base.ceiling))
