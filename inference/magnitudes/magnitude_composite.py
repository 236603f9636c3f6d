"""The composite of accuracy, cue combination and consistency in magnitude estimation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.resampling import percentile_interval

from .consistency_score import MOST, REPLICATES, ConsistencyScore, consistency_score
from .cue_combination import CueCombination, cue_combination
from .magnitude_answers import BASE, BOTH, MULTIMODAL, TASKS, TEXT, MagnitudeAnswers
from .normalised_error import normalised_error

WORST = 2.0  # from this NRMSE on, accuracy is 0
ROUNDS, MASS = 30, 0.68
BAYES = ("bayes_oracle", "bayes_responses")


@dataclass(frozen=True)
class MagnitudeComposite(TabledResult):
    """A = 1 - NRMSE / 2, E the mean of two RREs, C = (BCS + 15) / 30, S = (A + E + C) / 3.

    Parameters
    ----------
    parts : One row per part: participant, part ("A" accuracy, "E" efficiency, "C" consistency, "S"
        the composite), name, value, low and high (its bootstrap percentile interval; NaN if there
        is none) and missing (what it lacks, in words; empty if nothing).
    errors : NRMSE of the data by task and modality, in the base condition.
    cues : Cue combination by task, in the base condition.
    consistency : The score with its comparisons.
    """

    parts: pd.DataFrame
    errors: Mapping[tuple[str, str], Array]
    cues: Mapping[str, CueCombination]
    consistency: ConsistencyScore

    def __getitem__(self, letter: str) -> Any:
        return self.parts[self.parts["part"] == letter].iloc[0]

    def to_frame(self) -> pd.DataFrame:
        """One row per part."""
        return self.parts.copy()


def magnitude_composite(
    answers: MagnitudeAnswers,
    participant: str = "",
    *,
    mass: float = MASS,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> MagnitudeComposite:
    """Compute the composite of a participant, its parts and their intervals.

    Nothing is imputed: a part that lacks a task, a modality or a condition has no value and says
    what it lacks, and then the composite has no value either. In tasks with two modalities the
    NRMSE of the answers to both counts. RREs are those of the two published references, whose
    weights by response variances are near one half whatever the answers' noise.

    Parameters
    ----------
    answers : The answers; their bootstraps give the intervals.
    mass : Mass of the percentile intervals.
    replicates, seed : See `consistency_score`.

    Raises
    ------
    ValueError : If the mass is not between 0 and 1.
    """
    if not 0 < mass < 1:
        raise ValueError(f"An interval holds a share between 0 and 1; got {mass:g}.")
    errors = {
        (task, modality): normalised_error(cell)
        for (who, task, condition, modality), cell in answers.cells.items()
        if who == participant and condition == BASE
    }
    cues = {
        task: combined
        for task in MULTIMODAL
        if (combined := cue_combination(answers, participant, task)) is not None
    }
    consistency = consistency_score(
        answers, participant, mass=mass, replicates=replicates, seed=seed
    )
    a, no_a = _accuracy(errors)
    e, no_e = _efficiency(cues)
    c, no_c = (consistency.total + MOST) / (2 * MOST), consistency.missing
    lacking = {"A": no_a, "E": no_e, "C": no_c}
    no_s = tuple(f"{letter} is missing" for letter, what in lacking.items() if what)
    rows = []
    for letter, name, values, missing in (
        ("A", "accuracy", a, no_a),
        ("E", "efficiency", e, no_e),
        ("C", "consistency", c, no_c),
        ("S", "composite", (a + e + c) / 3, no_s),
    ):
        low, high = percentile_interval(values, mass)
        row = {"participant": participant, "part": letter, "name": name, "value": float(values[0])}
        rows.append(row | {"low": low, "high": high, "missing": "; ".join(missing)})
    return MagnitudeComposite(pd.DataFrame(rows), errors, cues, consistency)


def _accuracy(errors: Mapping[tuple[str, str], Array]) -> tuple[Array, tuple[str, ...]]:
    """Return A, [B], and what it lacks."""
    values: list[Array] = []
    missing: list[str] = []
    for task in TASKS:
        modality = BOTH if task in MULTIMODAL else TEXT
        error = errors.get((task, modality))
        if error is None:
            missing.append(f"no {BASE} trials of {task} with {modality}")
        elif np.isnan(error[0]):
            missing.append(f"no answers in {task} with {modality}")
        else:
            values.append(1.0 - np.minimum(error, WORST) / WORST)
    if missing:
        return np.array([np.nan]), tuple(missing)
    return np.mean(values, axis=0), ()


def _efficiency(cues: Mapping[str, CueCombination]) -> tuple[Array, tuple[str, ...]]:
    """Return E, [B], and what it lacks."""
    missing = []
    for task in MULTIMODAL:
        if task not in cues:
            missing.append(f"no {BASE} trials of {task} with text, with image and with both")
        elif cues[task].reason:
            missing.append(f"{task}: {cues[task].reason}")
        elif any(np.isnan(cues[task].efficiency[name][0]) for name in BAYES):
            missing.append(f"{task}: combined answers without any error, of which there is no RRE")
    if missing:
        return np.array([np.nan]), tuple(missing)
    each = [cues[task].efficiency[name] for task in MULTIMODAL for name in BAYES]
    return np.mean(each, axis=0), ()
