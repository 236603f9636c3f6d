"""The composite of accuracy, cue combination and consistency in magnitude estimation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments import MODALITIES
from knownminds.environments.later import pandas as pd
from knownminds.environments.magnitudes.magnitude import BLUR
from knownminds.environments.record.result import Result
from knownminds.inference.resampling import percentile_interval

from .consistency_score import (
    MOST,
    REPLICATES,
    SHIFT,
    ConsistencyScore,
    consistency_score,
)
from .cue_combination import REFERENCES, CueCombination, combine, pair
from .magnitude_answers import (
    BASE,
    BOTH,
    IMAGE,
    MULTIMODAL,
    TASKS,
    TEXT,
    Answers,
    MagnitudeAnswers,
)
from .normalised_error import normalised_error

WORST = 2.0  # NRMSE from which on accuracy is 0
ROUNDS, MASS = 30, 0.68
BAYES = ("bayes_oracle", "bayes_responses")
Accuracy = Literal["combined", "mean"]


@dataclass(frozen=True)
class Part:
    """One part of the composite.

    Parameters
    ----------
    letter, name : "A" accuracy, "E" efficiency, "C" consistency, "S" the composite.
    value, low, high : And the ends of its bootstrap percentile interval; NaN if there is none.
    missing : What it lacks, in words; empty if nothing.
    """

    letter: str
    name: str
    value: float
    low: float
    high: float
    missing: tuple[str, ...]


@dataclass(frozen=True)
class MagnitudeComposite(Result):
    """A = 1 - NRMSE / 2, E the mean of two RREs, C = (BCS + 15) / 30, S = (A + E + C) / 3.

    Parameters
    ----------
    parts : A, E, C and S.
    errors : NRMSE of the data by task and modality, in the base condition.
    cues : Cue combination by task, in the base condition.
    consistency : The score with its comparisons.
    mass, rounds : Of the intervals, and how many bootstraps they rest on.
    """

    participant: str
    parts: tuple[Part, ...]
    errors: Mapping[tuple[str, str], Array]
    cues: Mapping[str, CueCombination]
    consistency: ConsistencyScore
    mass: float
    rounds: int

    def __getitem__(self, letter: str) -> Part:
        """Return a part by its letter."""
        return next(part for part in self.parts if part.letter == letter)

    def to_frame(self) -> pd.DataFrame:
        """One row per part."""
        return pd.DataFrame(
            {
                "participant": self.participant,
                "part": part.letter,
                "name": part.name,
                "value": part.value,
                "low": part.low,
                "high": part.high,
                "missing": "; ".join(part.missing),
            }
            for part in self.parts
        )


def magnitude_composite(
    answers: MagnitudeAnswers,
    participant: str = "",
    *,
    accuracy: Accuracy = "combined",
    bayes: tuple[str, ...] = BAYES,
    mass: float = MASS,
    shared: bool = False,
    shift: float = SHIFT,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> MagnitudeComposite:
    """Compute the composite of a participant, its parts and their intervals.

    Nothing is imputed: a part that lacks a task, a modality or a condition has no value and says
    what it lacks, and neither has the composite.

    Parameters
    ----------
    answers
        Their bootstraps give the intervals.
    accuracy
        Whose NRMSE counts in tasks with two modalities: that of the answers to text and image
        together, or the mean over text, image and both.
    bayes
        References whose RREs are averaged; the published two by default. Their weights by
        response variances are near one half whatever the answers' noise: "bayes_residuals" is
        what an optimal observer would do.
    mass
        Of the percentile intervals.
    shared, shift, replicates, seed
        See `consistency_score`.

    Raises
    ------
    ValueError
        If a reference is unknown, or the mass no share.
    """
    if not 0 < mass < 1:
        raise ValueError(f"An interval holds a share between 0 and 1; got {mass:g}.")
    for name in bayes:
        if name not in REFERENCES:
            raise ValueError(
                f"References are {', '.join(REFERENCES)}; got {name!r}. Name one of these."
            )
    errors = {
        (task, modality): normalised_error(cell)
        for (who, task, condition, modality), cell in answers.cells.items()
        if who == participant and condition == BASE
    }
    cues = {
        task: found
        for task in MULTIMODAL
        if (found := cue_combination(answers, participant, task)) is not None
    }
    consistency = consistency_score(
        answers,
        participant,
        mass=mass,
        shared=shared,
        shift=shift,
        replicates=replicates,
        seed=seed,
    )
    a, no_a = _accuracy(errors, accuracy)
    e, no_e = _efficiency(cues, bayes)
    c, no_c = (consistency.total + MOST) / (2 * MOST), consistency.missing
    s = (a + e + c) / 3
    lacking = {"A": no_a, "E": no_e, "C": no_c}
    no_s = tuple(f"{letter} is missing" for letter, what in lacking.items() if what)
    parts = tuple(
        Part(letter, name, _first(values), *percentile_interval(np.atleast_1d(values), mass), no)
        for letter, name, values, no in (
            ("A", "accuracy", a, no_a),
            ("E", "efficiency", e, no_e),
            ("C", "consistency", c, no_c),
            ("S", "composite", s, no_s),
        )
    )
    rounds = len(np.atleast_1d(c)) - 1
    return MagnitudeComposite(participant, parts, errors, cues, consistency, mass, rounds)


def cue_combination(
    answers: MagnitudeAnswers, participant: str, task: str, condition: str = BASE
) -> CueCombination | None:
    """Set a participant's combined answers against the references; None if none were played."""
    cells = cue_cells(answers, participant, task, condition)
    return None if cells is None else combine(pair(*cells))


def cue_cells(
    answers: MagnitudeAnswers, participant: str, task: str, condition: str
) -> tuple[Answers, Answers, Answers] | None:
    """Return the answers to text, to image and to both; None unless all were played.

    Noise blurs images and leaves texts as they are: where texts were not asked for again under it,
    those of the base condition serve.
    """
    found = []
    for modality in (TEXT, IMAGE, BOTH):
        cell = answers.cells.get((participant, task, condition, modality))
        if cell is None and modality == TEXT and condition in BLUR:
            cell = answers.cells.get((participant, task, BASE, modality))
        if not isinstance(cell, Answers):
            return None
        found.append(cell)
    return found[0], found[1], found[2]


def _accuracy(
    errors: Mapping[tuple[str, str], Array], how: Accuracy
) -> tuple[Array, tuple[str, ...]]:
    """Return A, [B], and what it lacks."""
    found: list[Array] = []
    missing: list[str] = []
    for task in TASKS:
        counted = (
            (TEXT,) if task not in MULTIMODAL else (BOTH,) if how == "combined" else MODALITIES
        )
        own = []
        for modality in counted:
            error = errors.get((task, modality))
            if error is None:
                missing.append(f"no {BASE} trials of {task} with {modality}")
            elif np.isnan(error[0]):
                missing.append(f"no answers in {task} with {modality}")
            else:
                own.append(error)
        if own:
            found.append(1.0 - np.minimum(np.mean(own, axis=0), WORST) / WORST)
    if missing:
        return np.array([np.nan]), tuple(missing)
    return np.mean(found, axis=0), ()


def _efficiency(
    cues: Mapping[str, CueCombination], bayes: tuple[str, ...]
) -> tuple[Array, tuple[str, ...]]:
    """Return E, [B], and what it lacks."""
    missing = []
    for task in MULTIMODAL:
        if task not in cues:
            missing.append(f"no {BASE} trials of {task} with text, with image and with both")
        elif cues[task].reason:
            missing.append(f"{task}: {cues[task].reason}")
        elif any(np.isnan(cues[task].efficiency[name][0]) for name in bayes):
            missing.append(f"{task}: combined answers without any error, of which there is no RRE")
    if missing:
        return np.array([np.nan]), tuple(missing)
    each = [cues[task].efficiency[name] for task in MULTIMODAL for name in bayes]
    return np.mean(each, axis=0), ()


def _first(values: Array) -> float:
    return float(np.atleast_1d(values)[0])
