"""What evidence for a factor is worth: that of the same answers from minds without it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from knownminds.agents.magnitudes.observers import EPSILON, WINDOWS
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, session_stream, unknown
from knownminds.environments.record.result import Result

from .factor_evidence import VARIANTS, FactorEvidence, factor_evidence
from .observer_fits import ObserverFits, fit_observers

CALIBRATED = ("bayesian", "sequential")
REPLICATES = 99
_STREAM = 37
_FARTHEST = 700.0  # whose exponential is finite


@dataclass(frozen=True)
class CalibratedEvidence(Result):
    """Evidence for a factor beside that of simulated minds without it, for N participants.

    Parameters
    ----------
    factor
        "bayesian" or "sequential".
    subjects
        Names of the N.
    null
        The most likely variant without the factor, by participant; "" where all fits failed.
    evidence
        As `factor_evidence` gives it, [N].
    simulated
        That of the minds without it, [N, R]; NaN where a fit failed.
    """

    factor: str
    subjects: tuple[str, ...]
    null: tuple[str, ...]
    evidence: Array
    simulated: Array

    @property
    def p_value(self) -> Array:
        """Share of the minds without the factor whose evidence is at least as high, [N].

        (1 + their number) / (1 + simulated), so that it is never 0 and a test at any level holds
        that level (Davison and Hinkley 1997, 4.2).
        """
        known = np.isfinite(self.simulated)
        with np.errstate(invalid="ignore"):
            higher = (self.simulated >= self.evidence[:, None] - 1e-12) & known
        p = (1.0 + higher.sum(axis=1)) / (1.0 + known.sum(axis=1))
        return np.where(np.isfinite(self.evidence) & known.any(axis=1), p, np.nan)

    @property
    def probability(self) -> Array:
        """The most that the p-value can speak for the factor, as a probability, [N].

        1 / (1 - 1 / (e p log p)) below p = 1/e, and .5 above: the posterior probability from even
        odds, if the alternative is the one that the answers favour most (Sellke, Bayarri and
        Berger 2001). A p of .05 is a probability of .71, one of .01 is .89.
        """
        p = self.p_value
        with np.errstate(invalid="ignore"):
            bound = -math.e * p * np.log(p)
        return np.where(np.isnan(p), np.nan, np.where(p < 1 / math.e, 1 / (1 + bound), 0.5))

    def to_frame(self) -> pd.DataFrame:
        """One row per participant."""
        low, middle, high = _quantiles(self.simulated)
        return pd.DataFrame(
            {
                "subject": self.subjects,
                "factor": self.factor,
                "evidence": self.evidence,
                "null": self.null,
                "null_low": low,
                "null_median": middle,
                "null_high": high,
                "p_value": self.p_value,
                "probability": self.probability,
            }
        )


def calibrated_evidence(
    trials: Trials,
    *,
    factor: str = "bayesian",
    replicates: int = REPLICATES,
    seed: int = 0,
    workers: int | None = None,
) -> CalibratedEvidence:
    """Hold evidence for a factor against that of minds without it, who saw the same stimuli.

    Raw evidence is a share of likelihoods at their maxima, and minds without a factor show much of
    it by chance: a variant with more means or a free gain fits any noise better than a straight
    line does. So the most likely variant without the factor is fitted to each participant, answers
    where the participant did, and all variants are fitted again to each such data set.

    Parameters
    ----------
    trials
        Of magnitudes; each subject is a participant in one condition.
    factor
        "bayesian" (against straight lines) or "sequential" (against lines and static observers).
    replicates
        Simulated data sets of each participant.
    workers
        Threads; None for one per core.

    Raises
    ------
    ValueError
        If the factor cannot be calibrated, or there are no replicates.
    """
    if factor not in CALIBRATED:
        raise ValueError(unknown("factor that can be calibrated", factor, CALIBRATED))
    if replicates < 1:
        raise ValueError(f"Calibration needs at least 1 simulated data set; got {replicates}.")
    fits = fit_observers(trials, workers=workers)
    found = factor_evidence(_aic(fits), fits.subjects)
    best = [_null(fits, factor, i) for i in range(len(fits.subjects))]
    frame = trials.to_frame().assign(response_of=lambda table: table["response"])
    whose = frame["subject"].astype("str").to_numpy()
    pieces = []
    for i, (subject, name) in enumerate(zip(fits.subjects, best, strict=True)):
        if not name:
            continue
        rows = frame[whose == subject]
        mean, sigma = _line(fits, name, i, rows)
        noise = session_stream(seed, _STREAM, i).standard_normal((replicates, len(rows)))
        answers = _held(mean + sigma * noise, rows, name.endswith("_log"))
        answers[:, rows["response_of"].isna().to_numpy()] = np.nan
        for r, response in enumerate(answers):
            pieces.append(rows.assign(subject=f"{i}/{r}", response=response))
    simulated = np.full((len(fits.subjects), replicates), np.nan)
    if pieces:
        again = pd.concat(pieces, ignore_index=True).drop(columns="response_of")
        refits = fit_observers(Trials.from_frame(again), workers=workers)
        evidence = factor_evidence(_aic(refits), refits.subjects)
        for name, value in zip(refits.subjects, evidence.evidence[factor], strict=True):
            i, r = map(int, name.split("/"))
            simulated[i, r] = value
    return CalibratedEvidence(factor, fits.subjects, tuple(best), _of(found, factor), simulated)


def _of(found: FactorEvidence, factor: str) -> Array:
    return np.asarray(found.evidence[factor], dtype=float)


def _aic(fits: ObserverFits) -> Mapping[str, Array]:
    return {
        name: np.where([status == "failed" for status in fit.status], np.nan, fit.aic)
        for name, fit in fits.items()
    }


def _null(fits: ObserverFits, factor: str, i: int) -> str:
    """Return the most likely variant without the factor; "" if none could be fitted."""
    aic = {n: float(v[i]) for n, v in _aic(fits).items() if not VARIANTS[n][factor]}
    known = {name: value for name, value in aic.items() if np.isfinite(value)}
    return min(known, key=lambda name: known[name]) if known else ""


def _line(fits: ObserverFits, name: str, i: int, rows: pd.DataFrame) -> tuple[Array, float]:
    """Return the mean of each answer on the observer's own scale, and its noise."""
    own = dict(zip(fits[name].names, fits[name].estimate[i].tolist(), strict=True))
    x = rows["value"].to_numpy(dtype=float) / rows["unit"].to_numpy(dtype=float)
    x = np.log(x + EPSILON) if name.endswith("_log") else x
    if "b" in own:
        return own["w"] * x + own["b"], own["sigma"]
    means = np.array([own[f"mu_{window}"] for window in WINDOWS])
    mu = means[rows["window"].to_numpy(dtype=np.int64)]
    belief = (1.0 - own["w_prior"]) * x + own["w_prior"] * mu
    return own.get("gain", 1.0) * belief + own.get("offset", 0.0), own["sigma"]


def _held(answers: Array, rows: pd.DataFrame, logarithmic: bool) -> Array:
    """Bring answers to the task's unit and hold them to what may be answered, [R, n]."""
    if logarithmic:
        answers = np.exp(np.minimum(answers, _FARTHEST)) - EPSILON
    unit, ceiling = (rows[name].to_numpy(dtype=float) for name in ("unit", "ceiling"))
    held: Array = np.clip(answers * unit, 0.0, ceiling)
    return held


def _quantiles(simulated: Array) -> tuple[Array, Array, Array]:
    known = np.isfinite(simulated).any(axis=1)
    found = np.full((3, len(simulated)), np.nan)
    if known.any():
        found[:, known] = np.nanquantile(simulated[known], (0.05, 0.5, 0.95), axis=1)
    return found[0], found[1], found[2]
