"""Whether answers lean more on the prior where they should: the Bayesian consistency score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


COMPARISONS = tuple(Comparison(task, ablation) for task in MULTIMODAL for ablation in ABLATIONS)


def prior_weight(answers: Answers) -> Array:
    """Return the weight of the prior in the data and each bootstrap, [B]; NaN if unknown.

    The static Bayesian observer answers (1 - w) x + w mu_p; its most likely w is 1 minus the
    least-squares slope of answers on stimuli, held in [0, 1], with a prior mean, and so an
    intercept, separate in each window.
    """
    return np.clip(1.0 - slopes(answers)[0], 0.0, 1.0)


def slopes(answers: Answers) -> tuple[Array, Array]:
    """Return least-squares slopes within windows and residual deviations, [B] each.

    Row 0 are the data, the others bootstraps; NaN where stimuli do not vary or nothing was
    answered. 1 minus the slope is regression to the mean (Hollingworth 1910).
    """
    answered = np.isfinite(answers.response)
    response = np.where(answered, answers.response, 0.0)
    weight = answers.weight * answered
    x, y = (_within(column, answers.window, weight) for column in (answers.value, response))
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (weight * x * y).sum(axis=1) / (weight * x**2).sum(axis=1)
        residual = y - slope[:, None] * x
        free = weight.sum(axis=1) - len(np.unique(answers.window[answered])) - 1
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
class ConsistencyScore(Result):
    """The Bayesian consistency score of a participant, and what to hold it against.

    Parameters
    ----------
    base, ablation : Prior weights by comparison, in the order of `COMPARISONS`, [15, B]: the data,
        then bootstraps; NaN if missing.
    reason : Why a comparison has no score; "" if it has, [15].
    low, high : Ends of the bootstrap percentile interval of the total; NaN without bootstraps.
    known : Scores of simulated participants with the noise of this one and its prior means, [R] by
        observer; empty if a comparison is missing. "non-adapting": the prior weight is that of the
        base condition in all conditions; "adapting": it is larger by .2 in each ablation;
        "perfect": it is 0 everywhere.
    null_shift : By how much the ablation's prior weight of those that do not adapt is larger than
        the base's, [15, R].
    """

    base: Array
    ablation: Array
    reason: tuple[str, ...]
    low: float
    high: float
    known: Mapping[str, Array]
    null_shift: Array

    @property
    def scores(self) -> Array:
        """-1, 0 or 1 by comparison, [15, B]."""
        return shift_scores(self.base, self.ablation)

    @property
    def total(self) -> Array:
        """Sum over all comparisons, [B], from -15 to 15; NaN if one is missing."""
        return np.asarray(self.scores.sum(axis=0))

    @property
    def missing(self) -> tuple[str, ...]:
        """The comparisons without a score, with the reason."""
        pairs = zip(COMPARISONS, self.reason, strict=True)
        return tuple(f"{c.task} {c.ablation}: {why}" for c, why in pairs if why)

    def to_frame(self) -> pd.DataFrame:
        """One row per comparison."""
        table = pd.DataFrame(COMPARISONS)
        table["modality"] = [c.modality for c in COMPARISONS]
        base, weight = self.base[:, 0], self.ablation[:, 0]
        return table.assign(
            base=base, weight=weight, shift=weight - base, score=self.scores[:, 0],
            reason=self.reason,
        )  # fmt: skip

    def effects(self, mass: float = 0.95) -> pd.DataFrame:
        """Return shifts of the prior weight with their sign, held against agents that never adapt.

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
        columns = ["task", "ablation", "shift", "low", "high", "p_value"]
        if not self.known:
            return pd.DataFrame(columns=columns)
        everything = range(len(COMPARISONS))
        sets = [("all", "all", list(everything))]
        sets += [
            ("all", a, [k for k in everything if COMPARISONS[k].ablation == a]) for a in ABLATIONS
        ]
        sets += [(*COMPARISONS[k], [k]) for k in everything]
        rows = []
        for task, ablation, several in sets:
            shift = float((self.ablation - self.base)[several, 0].mean())
            drawn = self.null_shift[several].mean(axis=0)
            tails = [int((drawn >= shift).sum()), int((drawn <= shift).sum())]
            p = min(1.0, 2 * (1 + min(tails)) / (1 + len(drawn)))
            below, above = np.quantile(drawn, [(1 - mass) / 2, (1 + mass) / 2])
            rows.append((task, ablation, shift, shift - float(above), shift - float(below), p))
        return pd.DataFrame(rows, columns=columns)


def consistency_score(
    answers: MagnitudeAnswers,
    participant: str = "",
    *,
    mass: float = 0.68,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> ConsistencyScore:
    """Score the shifts of a participant's prior weight in all ablations.

    The score alone says little: an observer that makes no error at all earns the maximum, and one
    that never adapts earns 0 only on average, with a wide spread, since the comparisons share
    their base. So it comes with the scores of known agents in the same design: the same stimuli,
    the same trials answered, the participant's noise.

    Parameters
    ----------
    answers
        Their bootstraps give the interval.
    mass
        Of the percentile interval.
    replicates, seed
        Of the known agents; 0 for none.
    """
    rounds = max((len(cell.weight) for cell in answers.cells.values()), default=1)
    weights = np.full((2, len(COMPARISONS), rounds), np.nan)
    reasons, pairs = [], []
    for k, c in enumerate(COMPARISONS):
        lacking, cells = [], []
        for side, condition in enumerate((BASE, c.ablation)):
            cell = answers.cells.get((participant, c.task, condition, c.modality))
            if cell is None:
                lacking.append(f"no {condition} trials with {c.modality}")
                continue
            cells.append(cell)
            weights[side, k] = prior_weight(cell)
            if not np.isfinite(weights[side, k, 0]):
                lacking.append(f"too few answers in {condition} with {c.modality}")
        reasons.append(", ".join(lacking))
        if not lacking:
            pairs.append((cells[0], cells[1]))
    known: dict[str, Array] = {}
    null_shift = np.empty((0, 0))
    if replicates and len(pairs) == len(COMPARISONS):
        for k, observer in enumerate(KNOWN_OBSERVERS):
            first, second = _simulate(pairs, observer, replicates, seed + k)
            known[observer] = shift_scores(first, second).sum(axis=0)
            null_shift = second - first if k == 0 else null_shift
    total = shift_scores(*weights).sum(axis=0)
    low, high = percentile_interval(total, mass)
    base, ablation = weights
    return ConsistencyScore(base, ablation, tuple(reasons), low, high, known, null_shift)


def _simulate(
    pairs: Sequence[tuple[Answers, Answers]], observer: str, replicates: int, seed: int
) -> tuple[Array, Array]:
    """Return prior weights of a known agent in base and ablation, [15, R] each."""
    rng = session_stream(seed, 11)
    drawn: dict[tuple[str, str, str], Array] = {}  # each base condition is played once
    sides: tuple[list[Array], list[Array]] = ([], [])
    for c, (base, ablation) in zip(COMPARISONS, pairs, strict=True):
        for side, played in enumerate((base, ablation)):
            condition = c.ablation if side else BASE
            key = (c.task, condition, c.modality)
            if key not in drawn:
                shift = SHIFT * (condition != BASE)
                drawn[key] = _play(played, base, observer, shift, replicates, rng)
            sides[side].append(drawn[key])
    return np.array(sides[0]), np.array(sides[1])


def _play(
    played: Answers,
    base: Answers,
    observer: str,
    shift: float,
    replicates: int,
    rng: np.random.Generator,
) -> Array:
    """Let R known agents answer the trials that were answered; return their prior weights, [R].

    Prior means and noise are those that the base condition shows.
    """
    slope, sigma = slopes(base)
    weight, noise = float(np.clip(1.0 - slope[0], 0.0, 1.0)), float(np.nan_to_num(sigma[0]))
    answered = np.isfinite(played.response)
    x, window = played.value[answered], played.window[answered]
    means = {k: _prior_mean(base, k, weight) for k in np.unique(window).tolist()}
    centre = np.array([means[k] for k in window.tolist()])
    aim = {"non-adapting": weight, "adapting": min(weight + shift, 1.0), "perfect": 0.0}[observer]
    mean = (1.0 - aim) * x + aim * centre
    said = mean + noise * rng.standard_normal((replicates, len(x)))
    # No answer lies beyond the scale.
    np.clip(said, 0.0, played.ceiling, out=said)
    deviation = _within(x, window, np.ones((1, len(x))))[0]
    weights: NDArray[np.float64] = np.clip(
        1.0 - said @ deviation / (deviation @ deviation), 0.0, 1.0
    )
    return weights


def _prior_mean(base: Answers, window: int, weight: float) -> float:
    """Return the prior mean that fits the base condition; the middle where there is no prior."""
    mine = np.isfinite(base.response) & (base.window == window)
    if not mine.any():
        mine = np.isfinite(base.response)
    x, y = base.value[mine], base.response[mine]
    middle = float(base.middle[mine].mean())
    if weight < 0.02:  # the intercept is weight x mean, which says nothing of the mean then
        return middle
    mean = float((y - (1.0 - weight) * x).mean() / weight)
    return float(np.clip(mean, 0.0, base.ceiling))
