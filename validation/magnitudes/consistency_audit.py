"""What the Bayesian consistency score does to minds that adapt, that do not, and that never err."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import AGENTS
from knownminds.agents.parameters import Array
from knownminds.agents.play import Sessions, simulate_sessions
from knownminds.environments import WINDOWS, make
from knownminds.environments.magnitudes.magnitude import Magnitude
from knownminds.environments.record.result import Result
from knownminds.inference.magnitudes.consistency_score import (
    ABLATIONS,
    COMPARISONS,
    MOST,
    NOISE,
    OBSERVERS,
    shift_scores,
)
from knownminds.inference.magnitudes.magnitude_answers import BASE, BOTH, IMAGE, MULTIMODAL
from knownminds.validation.engine.monte_carlo import Score, share

MODEL = "static_bayes_observer"
EXACT = "perfect, exact"  # without noise
THRESHOLD = 5
AT_ONCE = 250  # participants simulated at a time, which bounds the memory
TRIALS = (33, 99, 297, 990)


@dataclass(frozen=True)
class ConsistencyAudit(Result):
    """Scores of known minds over trials per condition.

    Parameters
    ----------
    score
        By observer and trials per condition, those of simulated participants, [R].
    prior_weight, shift, sigma
        Of the minds: prior weight in the base condition (0 in the perfect one), by how much it
        grows in each ablation where the mind adapts, and noise in fractions of the unit.
    threshold
        A score that looks like adaptation.
    """

    score: Mapping[tuple[str, int], Array]
    prior_weight: float
    shift: float
    sigma: float
    threshold: int
    seed: int

    def expected(self, observer: str, trials: int) -> Score:
        """Mean score with its Monte-Carlo error."""
        values = self.score[observer, trials]
        return Score(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))

    def reaching(self, observer: str, trials: int) -> Score:
        """Share of participants that score at least the threshold, with its error."""
        values = self.score[observer, trials]
        return share(float((values >= self.threshold).sum()), len(values))

    def to_frame(self) -> pd.DataFrame:
        """One row per observer and number of trials."""
        rows = []
        for (observer, trials), values in self.score.items():
            low, high = np.quantile(values, [0.05, 0.95])
            rows.append(
                {
                    "observer": observer,
                    "trials": trials,
                    "expected": self.expected(observer, trials).value,
                    "expected_error": self.expected(observer, trials).error,
                    "sd": float(values.std(ddof=1)),
                    "low": float(low),
                    "high": float(high),
                    "reaching": self.reaching(observer, trials).value,
                    "reaching_error": self.reaching(observer, trials).error,
                    "participants": len(values),
                }
            )
        return pd.DataFrame(rows)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        told = super().content() | {"rows": self.to_frame()}
        del told["score"]
        return told

    def __str__(self) -> str:
        """The table for a paper."""
        lines = [
            f"consistency score of known minds ({len(COMPARISONS)} comparisons, {-MOST} to {MOST})",
            f"prior weight {self.prior_weight:g}, shift {self.shift:g}, noise {self.sigma:g}",
            f"{'observer':<16}{'trials':>8}{'expected':>18}{'sd':>8}{'5% to 95%':>14}"
            f"{f'score >= {self.threshold}':>18}",
        ]
        for row in self.to_frame().to_dict("records"):
            expected = Score(row["expected"], row["expected_error"])
            reaching = Score(row["reaching"], row["reaching_error"])
            middle = f"{row['low']:+.0f} to {row['high']:+.0f}"
            lines.append(
                f"{row['observer']:<16}{row['trials']:>8}{expected!s:>18}{row['sd']:>8.2f}"
                f"{middle:>14}{reaching!s:>18}"
            )
        return "\n".join([*lines, "(Monte-Carlo errors; trials per task, condition and modality)"])


def consistency_audit(
    *,
    trials: Sequence[int] = TRIALS,
    prior_weight: float = 0.3,
    shift: float = 0.1,
    sigma: float = 0.06,
    threshold: int = THRESHOLD,
    participants: int = 500,
    seed: int = 0,
) -> ConsistencyAudit:
    """Let known minds play all conditions of the three tasks, and score them.

    The minds are static Bayesian observers: one whose prior weight grows in every ablation, one
    whose weight stays as it is, one with weight 0 and the same noise, and one without any noise.

    Parameters
    ----------
    trials
        Per task, condition and modality; multiples of 33.
    prior_weight, shift, sigma
        Of the minds; noise in fractions of the unit.
    threshold
        Whose share of participants is told.
    participants
        For each kind of mind and number of trials.

    Raises
    ------
    ValueError
        If a number does not fit.
    """
    if not 0 < prior_weight < 1 or not 0 <= shift <= 1 - prior_weight or not sigma > 0:
        raise ValueError(
            "The prior weight lies between 0 and 1, also after the shift, and noise is above 0; "
            f"got {prior_weight:g}, {shift:g} and {sigma:g}."
        )
    if participants < 2:
        raise ValueError(f"An audit needs at least 2 participants; got {participants}.")
    each = len(WINDOWS) * 11
    for n in trials:
        if n < each or n % each:
            raise ValueError(f"Conditions have a multiple of {each} trials; got {n}.")
    score: dict[tuple[str, int], Array] = {}
    for k, observer in enumerate((*OBSERVERS, EXACT)):
        for n in trials:
            aim = 0.0 if observer.startswith("perfect") else prior_weight
            noise = 0.0 if observer == EXACT else sigma
            grow = shift if observer == "adapting" else 0.0
            address = (k, n)
            weights = {
                (task, condition, modality): _weights(
                    task, condition, modality, n // each, aim + grow * (condition != BASE), noise,
                    participants, seed, (*address, i, j, m),
                )
                for i, task in enumerate(MULTIMODAL)
                for j, condition in enumerate((BASE, *ABLATIONS))
                for m, modality in enumerate((BOTH, IMAGE))
                if condition == BASE or (modality == IMAGE) == (condition in NOISE)
            }  # fmt: skip
            score[observer, n] = sum(
                (
                    shift_scores(
                        weights[c.task, BASE, c.modality], weights[c.task, c.ablation, c.modality]
                    )
                    for c in COMPARISONS
                ),
                np.zeros(participants),
            )
    return ConsistencyAudit(score, prior_weight, shift, sigma, threshold, seed)


def _weights(
    task: str,
    condition: str,
    modality: str,
    repeats: int,
    weight: float,
    sigma: float,
    participants: int,
    seed: int,
    address: tuple[int, ...],
) -> Array:
    """Let static observers play one condition; return the prior weights fitted to them, [R]."""
    place = make(task, condition=condition, modality=modality, repeats=repeats)
    assert isinstance(place, Magnitude)
    middles = {f"mu_{k}": sum(place.ranges[k]) / 2 / place.unit for k in WINDOWS}
    mind = {"w_prior": weight, "sigma": sigma} | middles
    names = AGENTS[MODEL].parameters.names
    theta = np.tile([mind[name] for name in names], (participants, 1))
    found = []
    for first in range(0, participants, AT_ONCE):
        some = np.arange(first, min(first + AT_ONCE, participants))
        addresses = np.column_stack([np.tile(address, (len(some), 1)), some])
        lived = simulate_sessions(AGENTS[MODEL], theta[some], place, seed, addresses=addresses)
        found.append(_regressed(lived, len(some)))
    return np.concatenate(found)


def _regressed(lived: Sessions, n: int) -> Array:
    """Return 1 - slope of answers on stimuli within windows, held in [0, 1], of each session."""
    x, y = (lived.columns[name].astype(float) for name in ("value", "response"))
    group = lived.subject * len(WINDOWS) + lived.columns["window"].astype(np.int64)
    count = np.bincount(group)
    dx, dy = (z - (np.bincount(group, z) / count)[group] for z in (x, y))
    slope = np.bincount(lived.subject, dx * dy, n) / np.bincount(lived.subject, dx * dx, n)
    return np.clip(1.0 - slope, 0.0, 1.0)
