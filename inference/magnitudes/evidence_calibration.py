"""Calibration of evidence for a Bayesian observer, by simulated answers along a line."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from knownminds.agents.magnitudes.observers import EPSILON
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, session_stream
from knownminds.inference.fits.point import PointFit

from .factor_evidence import factor_evidence
from .observer_fits import aic_of, fit_observers

LINES = ("linear_observer", "linear_observer_log")
REPLICATES = 99
_STREAM = 37
_FARTHEST = 700.0  # the exponential of this is finite


def calibrated_evidence(
    trials: Trials, *, replicates: int = REPLICATES, seed: int = 0
) -> pd.DataFrame:
    """Compare evidence for Bayesian observers with that from straight lines for the same stimuli.

    Raw evidence is a share of likelihoods at their maxima. Agents without a factor show much of it
    by chance: a variant with more means or a free gain fits any noise better than a straight line
    does. So the more likely line is fitted to each participant, agents with this line answer the
    same trials, and all variants are fitted again to each such data set.

    Parameters
    ----------
    trials : Trials of magnitude experiments; each subject is a participant in one condition.
    replicates : Number of simulated data sets for each participant.

    Returns
    -------
    pandas.DataFrame
        One row per participant: subject, evidence (as `factor_evidence` gives it), null (the more
        likely line; "" if its fits failed), null_low, null_median and null_high (5%, 50% and 95% of
        the evidence of the simulated agents), p_value and probability (see `p_value_of` and
        `probability_of`).

    Raises
    ------
    ValueError : If `replicates` is below 1.
    """
    if replicates < 1:
        raise ValueError(f"Calibration needs at least 1 simulated data set; got {replicates}.")
    fits = fit_observers(trials)
    subjects = next(iter(fits.values())).subjects
    evidence = factor_evidence(aic_of(fits))["bayesian"].to_numpy()
    best = [_null(aic_of(fits), i) for i in range(len(subjects))]
    frame = trials.to_frame().assign(response_of=lambda table: table["response"])
    whose = frame["subject"].astype("str").to_numpy()
    pieces = []
    for i, (subject, name) in enumerate(zip(subjects, best, strict=True)):
        if not name:
            continue
        rows = frame[whose == subject]
        mean, sigma = _line(fits[name], i, rows)
        noise = session_stream(seed, _STREAM, i).standard_normal((replicates, len(rows)))
        answers = _held(mean + sigma * noise, rows, name == LINES[1])
        answers[:, rows["response_of"].isna().to_numpy()] = np.nan
        for r, response in enumerate(answers):
            pieces.append(rows.assign(subject=f"{i}/{r}", response=response))
    simulated = np.full((len(subjects), replicates), np.nan)
    if pieces:
        again = pd.concat(pieces, ignore_index=True).drop(columns="response_of")
        refits = fit_observers(Trials.from_frame(again))
        names = next(iter(refits.values())).subjects
        again_evidence = factor_evidence(aic_of(refits))["bayesian"]
        for name, value in zip(names, again_evidence, strict=True):
            i, r = map(int, name.split("/"))
            simulated[i, r] = value
    quantiles = np.full((3, len(subjects)), np.nan)
    known = np.isfinite(simulated).any(axis=1)
    if known.any():
        quantiles[:, known] = np.nanquantile(simulated[known], (0.05, 0.5, 0.95), axis=1)
    p_value = p_value_of(evidence, simulated)
    columns = {"subject": subjects, "evidence": evidence, "null": best}
    columns |= dict(zip(("null_low", "null_median", "null_high"), quantiles, strict=True))
    return pd.DataFrame(columns | {"p_value": p_value, "probability": probability_of(p_value)})


def p_value_of(evidence: Array, simulated: Array) -> Array:
    """Return the share of agents without the factor whose evidence is at least as high, [N].

    The share is (1 + their number) / (1 + simulated), so that it is never 0 and a test at any level
    keeps that level (Davison and Hinkley 1997, 4.2).

    Parameters
    ----------
    evidence, simulated : Evidence of each participant, [N], and of the agents without the factor,
        [N, R]; NaN where a fit failed.
    """
    known = np.isfinite(simulated)
    with np.errstate(invalid="ignore"):
        higher = (simulated >= evidence[:, None] - 1e-12) & known
    p = (1.0 + higher.sum(axis=1)) / (1.0 + known.sum(axis=1))
    return np.where(np.isfinite(evidence) & known.any(axis=1), p, np.nan)


def probability_of(p_value: Array) -> Array:
    """Return the strongest support that p-values can give a factor, as probabilities, [N].

    It is 1 / (1 - 1 / (e p log p)) below p = 1/e, and .5 above. This is the posterior probability
    from even odds, if the alternative is the one that the answers favour most (Sellke, Bayarri and
    Berger 2001). A p of .05 gives a probability of .71, and .01 gives .89.
    """
    with np.errstate(invalid="ignore"):
        bound = -math.e * p_value * np.log(p_value)
    low = np.where(p_value < 1 / math.e, 1 / (1 + bound), 0.5)
    return np.where(np.isnan(p_value), np.nan, low)


def _null(aic: Mapping[str, Array], i: int) -> str:
    """Return the more likely line; "" if none could be fitted."""
    known = {name: aic[name][i] for name in LINES if np.isfinite(aic[name][i])}
    return min(known, key=lambda name: known[name]) if known else ""


def _line(fit: PointFit, i: int, rows: pd.DataFrame) -> tuple[Array, float]:
    """Return the mean of each answer on the observer's scale, and its noise."""
    w, b, sigma = fit.estimate[i].tolist()
    x = rows["value"].to_numpy(dtype=float) / rows["unit"].to_numpy(dtype=float)
    return w * (np.log(x + EPSILON) if fit.model == LINES[1] else x) + b, sigma


def _held(answers: Array, rows: pd.DataFrame, logarithmic: bool) -> Array:
    """Return answers in the task's unit, held to the possible range, [R, n]."""
    if logarithmic:
        answers = np.exp(np.minimum(answers, _FARTHEST)) - EPSILON
    unit, ceiling = (rows[name].to_numpy(dtype=float) for name in ("unit", "ceiling"))
    held: Array = np.clip(answers * unit, 0.0, ceiling)
    return held
