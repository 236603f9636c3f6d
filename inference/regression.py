"""Regressions of choices on what was known: one coefficient, and how far it can be trusted."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from knownminds.agents import Agent, simulate
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, make
from knownminds.environments.later import pandas as pd

from .measure import Estimate, Measure

EXTREME = 15.0  # log-odds at which a regression is suspected of separating its outcomes
SEED = 1994  # of the sessions by which a truth is computed
SESSIONS = 2**11  # that are simulated for it, over all agents together
ROUNDING = 1e-9  # of the spread of the outcome: what is smaller comes from rounding


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of a regression.

    Parameters
    ----------
    value, standard_error, low, high, p_value : The estimate, its standard error, the ends of its
        95% interval and the two-sided test against 0; NaN where there is none.
    n : Rows that entered.
    status : "ok", or why there is no estimate.
    """

    value: float
    standard_error: float
    low: float
    high: float
    p_value: float
    n: int
    status: str = "ok"


def coefficient(
    of: str,
    outcome: ArrayLike,
    regressors: Mapping[str, ArrayLike],
    *,
    logistic: bool = True,
    intercept: bool = True,
    clusters: ArrayLike | None = None,
) -> Coefficient:
    """Regress an outcome on regressors and return the coefficient of one of them.

    Logistic regressions are fitted by maximum likelihood, linear ones by least squares
    (statsmodels). With several `clusters` (sessions) the error is robust to dependence inside
    them: the sandwich of Liang and Zeger (1986), referred to Student's t with one degree of
    freedom less than there are clusters. Otherwise rows are taken as independent.

    Parameters
    ----------
    of
        Name of the regressor of interest.
    outcome
        0 or 1 in a logistic regression, any number in a linear one; [rows].
    regressors
        By name, [rows] each.
    clusters
        What rows belong together, [rows].

    Returns
    -------
    Coefficient
        NaN with a status where there is no estimate: too few rows, regressors that depend on each
        other, outcomes that do not vary, or that the regressors separate (the estimate is infinite
        then; by linear programming, Konis 2007), or a search that does not end. A linear
        regression that explains its outcomes to the last digits has a value, and neither error nor
        test: what is left over comes from rounding.
    """
    import statsmodels.api as sm
    from statsmodels.tools.sm_exceptions import (
        ConvergenceWarning,
        HessianInversionWarning,
        PerfectSeparationWarning,
    )

    y = np.asarray(outcome, dtype=float)
    names = [*(["intercept"] if intercept else []), *regressors]
    columns = [np.asarray(column, dtype=float) for column in regressors.values()]
    x = np.column_stack([*([np.ones(len(y))] if intercept else []), *columns])
    n, k = x.shape
    if n <= k:
        return _none(n, "too few rows")
    if logistic and (y == y[0]).all():
        return _none(n, "all outcomes are the same")
    spread = float(np.ptp(y)) if intercept else float(np.abs(y).max())
    if spread <= ROUNDING * np.abs(y).max():
        return _none(n, "no variation")
    if np.linalg.matrix_rank(x) < k:
        return _none(n, "regressors that depend on each other")
    together = np.zeros(n) if clusters is None else np.asarray(clusters)
    groups = np.unique(together, return_inverse=True)[1]
    several = int(groups.max()) > 0
    robust = {"cov_type": "cluster", "cov_kwds": {"groups": groups}} if several else {}
    with warnings.catch_warnings():
        for known in (ConvergenceWarning, HessianInversionWarning, PerfectSeparationWarning):
            warnings.simplefilter("ignore", known)
        warnings.simplefilter("ignore", RuntimeWarning)  # of infinite estimates on their way
        try:
            if logistic:
                fit = sm.Logit(y, x).fit(disp=0, maxiter=100, **robust)
            else:
                fit = sm.OLS(y, x).fit(**robust)
        except np.linalg.LinAlgError:
            return _none(n, "separation" if logistic and _separates(x, y) else "no convergence")
        if logistic:
            converged = bool(fit.mle_retvals["converged"])
            wild = not converged or np.abs(x @ fit.params).max() > EXTREME
            if wild and _separates(x, y):
                return _none(n, "separation")
            if not converged:
                return _none(n, "no convergence")
        at = names.index(of)
        value, error = float(fit.params[at]), float(fit.bse[at])
    # A coefficient this small moves the outcome by nothing, and an error this small is none.
    least = ROUNDING * spread / float(np.ptp(x[:, at]) or np.abs(x[:, at]).max())
    if abs(value) <= least:
        value = 0.0
    if not np.isfinite(error) or error <= least:
        return Coefficient(value, np.nan, np.nan, np.nan, np.nan, n)
    law = (
        scipy.stats.t(int(groups.max()))
        if several
        else scipy.stats.norm
        if logistic
        else scipy.stats.t(n - k)
    )
    half = float(law.ppf(0.975)) * error
    p_value = 2 * float(law.sf(abs(value) / error))
    return Coefficient(value, error, value - half, value + half, p_value, n)


class RegressionMeasure(Measure):
    """A coefficient of a regression over the trials of all subjects.

    Errors are robust to dependence within subjects (within sessions, if there is one subject). The
    truth is simulated: the coefficient in many sessions of the agents, from a fixed seed, the same
    for all, so that it grows smoothly with a dial; agents of other `kinds` have the null value.

    Attributes
    ----------
    of, unit
        The regressor whose coefficient it is, and what a row of the regression is.
    sign
        1, or -1 where the negative of the coefficient counts.
    logistic, intercept, clustered
        Of the regression; rows are taken as independent if not `clustered`.
    kinds
        Agents that may have another value than the null, unless they are rational.
    """

    of: str
    unit: str = "trial"
    sign: float = 1.0
    logistic: bool = True
    intercept: bool = True
    clustered: bool = True
    kinds: type[Any] = Agent

    @abstractmethod
    def design(self, trials: Trials) -> tuple[NDArray[np.bool_], Array, dict[str, Array]]:
        """Return which trials count, outcomes (NaN without an answer), and regressors, [rows]."""

    def estimate(self, trials: Trials) -> Estimate:
        """Regress the outcomes of all trials that count."""
        counts, outcome, regressors = self.design(trials)
        answered = counts & np.isfinite(outcome)
        clusters = self.clusters(trials.frame[answered])
        regression = coefficient(
            self.of,
            outcome[answered],
            {name: column[answered] for name, column in regressors.items()},
            logistic=self.logistic,
            intercept=self.intercept,
            clusters=clusters if self.clustered else None,
        )
        return self._told(regression, int((counts & ~answered).sum()), clusters)

    def clusters(self, frame: pd.DataFrame) -> ArrayLike:
        """Return what rows belong together, [rows]."""
        several = frame["subject"].nunique() > 1
        return frame["subject" if several else "session"].to_numpy()

    def has_null(self, model: type[Agent]) -> bool:
        """Say whether all agents of a model have the null value."""
        return model.name == self.rational or not issubclass(model, self.kinds)

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the coefficient of each agent alone, [n]."""
        return np.array([self.group_truth(model, row[None]) for row in theta])

    def group_truth(self, model: type[Agent], theta: Array) -> float:
        """Return the coefficient when agents with parameters theta[n, P] are pooled."""
        if self.has_null(model):
            return self.null
        each = -(-SESSIONS // len(theta))
        environment = make(self.environments[0])
        return self.estimate(
            simulate(model, np.repeat(theta, each, axis=0), environment, SEED)
        ).value

    def _told(self, coefficient: Coefficient, unanswered: int, clusters: ArrayLike) -> Estimate:
        """Return a coefficient as the estimate of the measure.

        Parameters
        ----------
        unanswered
            How many rows were left out, since there was no answer.
        clusters
            Of the rows, if the measure is `clustered`.
        """
        excluded = {"no answer": unanswered}
        note = ""
        if coefficient.status != "ok":
            excluded[coefficient.status] = coefficient.n
        elif not np.isfinite(coefficient.low):
            note = "no interval: nothing is left unexplained"
        elif not self.clustered or len(np.unique(np.asarray(clusters))) < 2:
            note = f"{self.unit}s taken as independent"
        low, high = sorted((self.sign * coefficient.low, self.sign * coefficient.high))
        return Estimate(
            measure=self.name,
            value=self.sign * coefficient.value + 0.0,  # no -0
            standard_error=coefficient.standard_error,
            low=low,
            high=high,
            n=coefficient.n,
            unit=self.unit,
            p_value=coefficient.p_value,
            excluded=excluded,
            note=note,
        )


def _separates(x: Array, y: NDArray[np.float64]) -> bool:
    """Say whether some combination of the regressors tells the outcomes apart, if only in part."""
    sided = np.unique(np.where(y > 0, 1.0, -1.0)[:, None] * x, axis=0)
    result = scipy.optimize.linprog(
        -sided.sum(axis=0), A_ub=-sided, b_ub=np.zeros(len(sided)), bounds=(-1, 1)
    )
    return bool(result.status == 0 and result.fun is not None and result.fun < -1e-8)


def _none(n: int, status: str) -> Coefficient:
    return Coefficient(np.nan, np.nan, np.nan, np.nan, np.nan, n, status)
