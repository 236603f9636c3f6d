"""All of magnitude estimation: accuracy, observers, cues and consistency, as tidy frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import CONDITIONS, Trials
from knownminds.inference.magnitudes.consistency_score import REPLICATES, prior_weight
from knownminds.inference.magnitudes.cue_combination import REFERENCES, CueCombination
from knownminds.inference.magnitudes.evidence_calibration import calibrated_evidence
from knownminds.inference.magnitudes.factor_evidence import FACTORS, factor_evidence
from knownminds.inference.magnitudes.magnitude_answers import (
    BASE,
    BOTH,
    MULTIMODAL,
    TEXT,
    Key,
    MagnitudeAnswers,
)
from knownminds.inference.magnitudes.magnitude_composite import (
    MASS,
    MagnitudeComposite,
    cue_combination,
    magnitude_composite,
)
from knownminds.inference.magnitudes.normalised_error import bias_and_variance, normalised_error
from knownminds.inference.magnitudes.observer_fits import fit_observers
from knownminds.inference.resampling import percentile_interval

CELL = ["participant", "task", "condition", "modality"]
LINES = 39  # straight lines beside each evidence: two of 40 at or above it make p .05
# Columns of the frames that may have no row.
COLUMNS = {
    "cues": [
        *("participant", "task", "condition", "reference", "n", "left_out", "matched"),
        *("text_weight", "weight_low", "weight_high", "error", "reference_error"),
        *("efficiency", "low", "high", "reason"),
    ],
    "known": [
        *("participant", "score", "low", "high", "observer", "expected", "sd", "reaching"),
    ],
    "fits": [*CELL, "variant", "aic", "status"],
    "evidence": [*CELL, "evidence", "low", "high", "p", "lines"],
}


@dataclass(frozen=True, eq=False)
class MagnitudeFrames:
    """What answers to the tasks of magnitude estimation say of each participant.

    Parameters
    ----------
    composite
        One row per participant and part (A, E, C, S): value, low, high, missing.
    cells
        One row per participant, task, condition and modality: n, missing (answers), at_an_end,
        error (NRMSE) with low and high, bias and variance (its parts, squared), prior_weight with
        prior_low and prior_high, and the evidence for each factor.
    cues
        One row per participant, task, condition and reference: n, left_out, text_weight, error (of
        the combined answers), reference_error, efficiency (RRE) with low and high, reason.
    consistency
        One row per participant and comparison: prior weights, shift, score.
    known
        One row per participant and known mind: expected score, sd, and the share that scores at
        least what the participant does.
    fits
        One row per cell and variant of an observer: aic, status, and its parameters.
    evidence
        One row per participant and task, of the base condition: evidence for a Bayesian observer,
        low and high (5% and 95% of that of straight lines), p, lines (how many there were).
    """

    composite: pd.DataFrame
    cells: pd.DataFrame
    cues: pd.DataFrame
    consistency: pd.DataFrame
    known: pd.DataFrame
    fits: pd.DataFrame
    evidence: pd.DataFrame


def magnitude_frames(
    answers: MagnitudeAnswers,
    *,
    mass: float = MASS,
    replicates: int = REPLICATES,
    lines: int = LINES,
    seed: int = 0,
    workers: int | None = None,
) -> MagnitudeFrames:
    """Compute all frames of magnitude estimation.

    The accuracy of a task with two modalities is that of the answers to both; the static observer
    behind the consistency score has a prior mean for each window.

    Parameters
    ----------
    mass
        Of the percentile intervals of the bootstraps.
    replicates, lines
        How many of each known mind, and how many straight lines stand beside each participant's
        evidence (`calibrated_evidence`); no lines, no evidence.
    seed
        Of known minds and lines.
    """
    composites = {
        who: magnitude_composite(answers, who, mass=mass, replicates=replicates, seed=seed)
        for who in answers.participants
    }
    fits = _fits(answers, workers)
    beside = _evidence(answers, lines, seed, workers) if lines else pd.DataFrame()
    return MagnitudeFrames(
        composite=pd.concat([c.to_frame() for c in composites.values()], ignore_index=True),
        cells=_cells(answers, fits, mass),
        cues=_cues(answers, mass),
        consistency=pd.concat(
            [c.consistency.to_frame().assign(participant=who) for who, c in composites.items()],
            ignore_index=True,
        ),
        known=_known(composites),
        fits=fits,
        evidence=beside if len(beside) else pd.DataFrame(columns=COLUMNS["evidence"]),
    )


def whole_modality(task: str) -> str:
    """Return the modality with all that a task shows."""
    return BOTH if task in MULTIMODAL else TEXT


def _fits(answers: MagnitudeAnswers, workers: int | None) -> pd.DataFrame:
    """Fit all variants of the observers to every cell."""
    usable, keys = _by_cell(answers.frame)
    if not len(usable):
        return pd.DataFrame(columns=COLUMNS["fits"])
    rows: list[dict[str, Any]] = []
    fitted = fit_observers(Trials.from_frame(usable), workers=workers)
    for variant, fit in fitted.items():
        for i, subject in enumerate(fit.subjects):
            values = dict(zip(fit.names, fit.estimate[i].tolist(), strict=True))
            rows.append(
                {
                    **dict(zip(CELL, keys[int(subject)], strict=True)),
                    "variant": variant,
                    "aic": float(fit.aic[i]) if fit.status[i] != "failed" else np.nan,
                    "status": fit.status[i],
                    **values,
                }
            )
    return pd.DataFrame(rows)


def _by_cell(frame: pd.DataFrame) -> tuple[pd.DataFrame, list[Key]]:
    """Return the trials of cells with two answers or more, each cell a subject, and their names."""
    names = ["participant", "task", "condition_name", "modality_name"]
    cell = frame.groupby(names, sort=False).ngroup()
    keys = list(frame.drop_duplicates(names)[names].itertuples(index=False, name=None))
    answered = frame["response"].notna().groupby(cell).sum()
    enough = cell.map(answered >= 2).to_numpy(dtype=bool)
    sessions = frame["subject"].astype("str") + "/" + frame["session"].astype("str")
    return frame.assign(subject=cell.astype(str), session=sessions)[enough], keys


def _evidence(
    answers: MagnitudeAnswers, lines: int, seed: int, workers: int | None
) -> pd.DataFrame:
    """Hold evidence for a Bayesian observer in the base condition against that of lines."""
    frame = answers.frame
    whole = frame["task"].map(whole_modality)
    base = (frame["condition_name"] == BASE) & (frame["modality_name"] == whole)
    usable, keys = _by_cell(frame[base])
    if not len(usable):
        return pd.DataFrame()
    found = calibrated_evidence(
        Trials.from_frame(usable), replicates=lines, seed=seed, workers=workers
    )
    named = pd.DataFrame([keys[int(subject)] for subject in found["subject"]], columns=CELL)
    told = found.rename(columns={"null_low": "low", "null_high": "high", "p_value": "p"})
    return pd.concat([named, told], axis=1).assign(lines=float(lines))[COLUMNS["evidence"]]


def _cells(answers: MagnitudeAnswers, fits: pd.DataFrame, mass: float) -> pd.DataFrame:
    aics = fits.pivot_table(index=CELL, columns="variant", values="aic", dropna=False)
    evidence: dict[Key, dict[str, float]] = {}
    if len(aics):
        known = {str(name): aics[name].to_numpy(dtype=float) for name in aics}
        table = factor_evidence(known)[list(FACTORS)].to_dict("records")
        evidence = dict(zip(aics.index, table, strict=True))
    nothing = dict.fromkeys(FACTORS, np.nan)
    rows: list[dict[str, Any]] = []
    for who in answers.participants:
        for key, cell in answers.of(who):
            error, weight = normalised_error(cell), prior_weight(cell)
            low, high = percentile_interval(error, mass)
            prior_low, prior_high = percentile_interval(weight, mass)
            bias, variance = bias_and_variance(cell)
            rows.append(
                {
                    **dict(zip(CELL, key, strict=True)),
                    "n": len(cell),
                    "missing": cell.missing,
                    "at_an_end": cell.at_an_end,
                    "error": float(error[0]),
                    "low": low,
                    "high": high,
                    "bias": bias,
                    "variance": variance,
                    "prior_weight": float(weight[0]),
                    "prior_low": prior_low,
                    "prior_high": prior_high,
                    **evidence.get(key, nothing),
                }
            )
    return pd.DataFrame(rows)


def _cues(answers: MagnitudeAnswers, mass: float) -> pd.DataFrame:
    rows = []
    for who in answers.participants:
        for task in MULTIMODAL:
            for condition in CONDITIONS:
                found = cue_combination(answers, who, task, condition)
                if found is not None:
                    rows += _cue_rows(who, task, condition, found, mass)
    return pd.DataFrame(rows, columns=COLUMNS["cues"])


def _cue_rows(
    who: str, task: str, condition: str, found: CueCombination, mass: float
) -> list[dict[str, Any]]:
    rows = []
    for name in REFERENCES:
        low, high = percentile_interval(found.efficiency[name], mass)
        weight_low, weight_high = percentile_interval(found.text_weight[name], mass)
        rows.append(
            {
                "participant": who,
                "task": task,
                "condition": condition,
                "reference": name,
                "n": found.n,
                "left_out": found.left_out,
                "matched": found.matched,
                "text_weight": float(found.text_weight[name][0]),
                "weight_low": weight_low,
                "weight_high": weight_high,
                "error": float(found.error[0]),
                "reference_error": float(found.reference_error[name][0]),
                "efficiency": float(found.efficiency[name][0]),
                "low": low,
                "high": high,
                "reason": found.reason,
            }
        )
    return rows


def _known(composites: Mapping[str, MagnitudeComposite]) -> pd.DataFrame:
    rows = [
        {
            "participant": who,
            "score": float(c.consistency.total[0]),
            "low": c.consistency.low,
            "high": c.consistency.high,
            "observer": observer,
            "expected": float(scores.mean()),
            "sd": float(scores.std(ddof=1)),
            "reaching": float((scores >= c.consistency.total[0]).mean()),
        }
        for who, c in composites.items()
        for observer, scores in c.consistency.known.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS["known"])
