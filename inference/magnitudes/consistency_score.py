"""Whether answers depend more on the prior where they should: the Bayesian consistency score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import session_stream
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.resampling import percentile_interval

from .magnitude_answers import BASE, BOTH, IMAGE, MULTIMODAL, MagnitudeAnswers, TaskAnswers

ABLATIONS = ("verbal", "numeric", "constant_noise", "gradual_noise", "long_context")
NOISE = ("constant_noise", "gradual_noise")
MOST = len(ABLATIONS) * len(MULTIMODAL)
DISREGARD = 0.9  # above this prior weight the stimulus hardly counts
SHIFT = 0.2  # by so much the prior weight shifts in the known agent that adapts
REPLICATES = 2000
ROUNDING = 1e-9
KNOWN_OBSERVERS = ("non-adapting", "adapting", "perfect")


class Comparison(NamedTuple):
    """A condition whose prior weight should be at least that of the base."""

    task: str
    ablation: str

    @property
    def modality(self) -> str:
        """The modality that is compared: blur exists only in images."""
        return IMAGE if self.ablation in NOISE else BOTH


COMPARISONS = tuple(Comparison(task, ablation) for task in MULTIMODAL for ablation in ABLATIONS)


def prior_weight(answers: TaskAnswers) -> Array:
    """Return the weight of the prior in the data and each bootstrap, [B]; NaN if unknown.

    The static Bayesian observer answers (1 - w) x + w mu_p. The most likely w is 1 minus the
    least-squares slope of answers on stimuli, held in [0, 1]. The prior has a mean of its own in
    each window, and so the line has an intercept of its own there.
    """
    return np.clip(1.0 - slopes(answers)[0], 0.0, 1.0)


def slopes(answers: TaskAnswers) -> tuple[Array, Array]:
    """Return least-squares slopes within windows and residual deviations, [B] each.

    Row 0 is the data, the others are bootstraps; NaN where stimuli do not vary or nothing was
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
    """Subtract the weighted mean of each window, [B, n]."""
    values = np.broadcast_to(column, weight.shape).copy()
    for k in np.unique(window):
        mine = window == k
        total = weight[:, mine].sum(axis=1)
        mean = weight[:, mine] @ column[mine] / np.where(total > 0, total, 1.0)
        values[:, mine] -= mean[:, None]
    return values


def shift_scores(base: Array, ablation: Array) -> Array:
    """Score prior weights: 1 if the ablation's is at least the base's, else -1; 0 above 0.9.

    Weights are held in [0, 1] first, as those of the static Bayesian observer are. A weight above
    0.9 scores 0 whatever the base's is: such an observer ignores the stimulus, which is still
    informative. NaN where a weight is missing. Weights that differ by rounding alone, as those of
    an observer without any error, count as equal.
    """
    base, ablation = np.clip(base, 0.0, 1.0), np.clip(ablation, 0.0, 1.0)
    sign = np.where(ablation >= base - ROUNDING, 1.0, -1.0)
    score = np.where(ablation > DISREGARD, 0.0, sign)
    return np.where(np.isfinite(base) & np.isfinite(ablation), score, np.nan)


@dataclass(frozen=True)
class ConsistencyScore(TabledResult):
    """The Bayesian consistency score of a participant, and what to compare it with.

    Parameters
    ----------
    comparisons : One row per comparison, in the order of `COMPARISONS`: task, ablation, modality,
        base and weight (1 - slope in the base condition and in the ablation, also beyond 0 and 1),
        shift (their difference), score (-1, 0 or 1, of weights held in [0, 1]), mean_score (over
        the bootstraps; NaN without), reason (why there is none; "" if there is) and saturated (both
        weights are held at the same end: the score says nothing).
    total : Sum of the scores, from -15 to 15, of the data and each bootstrap, [B]; NaN if one is
        missing.
    low, high : Ends of the bootstrap percentile interval of the total; NaN without bootstraps.
    known : Totals of simulated participants with the noise of this one and its prior means, [R] by
        observer; empty if a comparison is missing. "non-adapting": the slope is that of the base
        condition in all conditions, also above 1; "adapting": it is larger by .2 in each ablation;
        "perfect": it is 0 everywhere.
    effects : Shifts of the prior weight with their sign, held against agents that never adapt, see
        `shift_effects`; no rows where none are known.
    """

    comparisons: pd.DataFrame
    total: Array
    low: float
    high: float
    known: Mapping[str, Array]
    effects: pd.DataFrame

    @property
    def missing(self) -> tuple[str, ...]:
        """The comparisons without a score, with the reason."""
        lacking = self.comparisons[self.comparisons["reason"] != ""]
        return tuple(f"{c.task} {c.ablation}: {c.reason}" for c in lacking.itertuples())

    def to_frame(self) -> pd.DataFrame:
        """One row per comparison."""
        return self.comparisons.copy()


def consistency_score(
    answers: MagnitudeAnswers,
    participant: str = "",
    *,
    mass: float = 0.68,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> ConsistencyScore:
    """Score the shifts of a participant's prior weight in all ablations.

    The score alone says little. An observer without any error gets the maximum. One that never
    adapts gets 0 only on average, with a wide spread, since the comparisons share their base. So
    the scores of known agents in the same design are added: with the same stimuli, the same trials
    answered, and the participant's noise.

    Parameters
    ----------
    answers : The participant's answers; their bootstraps give the interval.
    mass : Mass of the percentile interval.
    replicates, seed : How many known agents, and their seed; 0 for none.
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
            weights[side, k] = 1.0 - slopes(cell)[0]
            if not np.isfinite(weights[side, k, 0]):
                lacking.append(f"too few answers in {condition} with {c.modality}")
        reasons.append(", ".join(lacking))
        if not lacking:
            pairs.append((cells[0], cells[1]))
    played: dict[str, Array] = {}
    if replicates and len(pairs) == len(COMPARISONS):
        played = {
            observer: _simulated(pairs, observer, replicates, seed + k)
            for k, observer in enumerate(KNOWN_OBSERVERS)
        }
    known = {name: shift_scores(*pair).sum(axis=0) for name, pair in played.items()}
    scores = shift_scores(*weights)
    base, weight = weights[:, :, 0]
    steady = played.get(KNOWN_OBSERVERS[0], np.empty((2, len(COMPARISONS), 0)))
    effects = shift_effects(weight - base, steady[1] - steady[0])
    saturated = ((base <= 0) & (weight <= 0)) | ((base >= 1) & (weight >= 1))
    table = pd.DataFrame(COMPARISONS).assign(
        modality=[c.modality for c in COMPARISONS], base=base, weight=weight, shift=weight - base,
        score=scores[:, 0], mean_score=scores[:, 1:].mean(axis=1) if rounds > 1 else np.nan,
        reason=reasons, saturated=saturated,
    )  # fmt: skip
    total = scores.sum(axis=0)
    ends = percentile_interval(total, mass)
    return ConsistencyScore(table, total, *ends, known, effects)


def shift_effects(shift: Array, steady: Array) -> pd.DataFrame:
    """Compare shifts of the prior weight [15] with those of agents that never adapt, [15, R].

    `p_value` is two-sided: twice the smaller tail, with one added to either count, so that it keeps
    its level. `low` and `high` end the 95% interval of all shifts that are compatible with the
    observed one under such noise: the shift minus the quantiles of these agents. A score of signs
    says only how many shifts there are; a small shift counts as much in it as a large one.

    Returns
    -------
    DataFrame : Columns task, ablation ("all" for several together), shift (their mean), low, high,
        p_value; no rows without such agents.
    """
    tasks, ablations = (np.array(names) for names in zip(*COMPARISONS, strict=True))
    sets = [("all", "all", np.ones(len(shift), dtype=bool))]
    sets += [("all", name, ablations == name) for name in ABLATIONS]
    sets += [(*c, (tasks == c.task) & (ablations == c.ablation)) for c in COMPARISONS]
    rows = []
    for task, ablation, several in sets if steady.size else ():
        mean, drawn = float(shift[several].mean()), steady[several].mean(axis=0)
        tail = min(int((drawn >= mean).sum()), int((drawn <= mean).sum()))
        low, high = mean - np.quantile(drawn, [0.975, 0.025])
        rows.append((task, ablation, mean, low, high, min(1.0, 2 * (1 + tail) / (1 + len(drawn)))))
    return pd.DataFrame(rows, columns=["task", "ablation", "shift", "low", "high", "p_value"])


def _simulated(
    pairs: Sequence[tuple[TaskAnswers, TaskAnswers]], observer: str, replicates: int, seed: int
) -> Array:
    """Let R known agents answer the answered trials; return 1 - their slopes, [2, 15, R].

    Slope and prior means are estimated from the base condition, noise from each condition; no
    answer lies beyond the scale.
    """
    rng = session_stream(seed, 11)
    drawn: dict[tuple[str, str, str], Array] = {}  # each base condition is played once
    weights = np.empty((2, len(COMPARISONS), replicates))
    for n, (c, (base, ablation)) in enumerate(zip(COMPARISONS, pairs, strict=True)):
        weight = 1.0 - float(slopes(base)[0][0])
        keys = [(c.task, condition, c.modality) for condition in (BASE, c.ablation)]
        for key, played in zip(keys, (base, ablation), strict=True):
            if key in drawn:
                continue
            noise = float(np.nan_to_num(slopes(played)[1][0]))
            shifted = min(weight + SHIFT * (key[1] != BASE), max(weight, 1.0))
            aim = {"non-adapting": weight, "adapting": shifted, "perfect": 0.0}[observer]
            answered = np.isfinite(played.response)
            x, window = played.value[answered], played.window[answered]
            means = {k: _prior_mean(base, k, weight) for k in np.unique(window).tolist()}
            mean = (1.0 - aim) * x + aim * np.array([means[k] for k in window.tolist()])
            said = mean + noise * rng.standard_normal((replicates, len(x)))
            np.clip(said, 0.0, played.ceiling, out=said)
            away = _within(x, window, np.ones((1, len(x))))[0]
            drawn[key] = 1.0 - said @ away / (away @ away)
        weights[:, n] = [drawn[key] for key in keys]
    return weights


def _prior_mean(base: TaskAnswers, window: int, weight: float) -> float:
    """Return the prior mean that fits the base condition; the middle if there is no prior."""
    mine = np.isfinite(base.response) & (base.window == window)
    if not mine.any():
        mine = np.isfinite(base.response)
    x, y = base.value[mine], base.response[mine]
    if abs(weight) < 0.02:  # the intercept is weight x mean, and then says nothing about the mean
        return float(base.middle[mine].mean())
    return float(np.clip((y - (1.0 - weight) * x).mean() / weight, 0.0, base.ceiling))
