"""Regressions of choices on what was known: one coefficient, and how far it can be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from knownminds.agents import Model, simulate
from knownminds.agents.parameters import Array
from knownminds.environments import Trials, make

from .measure import Estimate, Measure, designs_of

EXTREME = 15.0  # from such log-odds on, separation is suspected
SEED = 1994  # seed of the sessions from which a truth is computed
SESSIONS = 2**11  # sessions that are simulated for a truth, over all agents together
SEPARATED = "separation: penalised likelihood (Firth 1993), rows taken as independent"
ROUGH = 4.0  # degrees of freedom below which errors over clusters are rough (Tipton 2015)
ROUNDING = 1e-9  # share of the spread of y below which a number is rounding


def coefficient(
    of: str,
    dependent: ArrayLike,
    regressors: Mapping[str, ArrayLike],
    *,
    logistic: bool = True,
    intercept: bool = True,
    clusters: ArrayLike | None = None,
    penalised: bool = False,
) -> Estimate:
    """Regress a variable on regressors and return the coefficient of one of them.

    Logistic regressions are fitted by maximum likelihood, linear ones by least squares
    (statsmodels). With several `clusters` (sessions) the error is robust to dependence inside them,
    see `cluster_influence`. Without clusters, rows count as independent.

    Parameters
    ----------
    of : Name of the regressor of interest.
    dependent : The dependent variable: 0 or 1 in a logistic regression, any number in a linear one,
        [rows].
    regressors : The regressors by name, [rows] each.
    clusters : The name of each row's cluster, [rows].
    penalised : Whether there is a penalised estimate if the regressors separate zeros and ones, see
        `firth`. Its rows count as independent.

    Returns
    -------
    Estimate : NaN, with all rows excluded, if there is no estimate: too few rows, regressors that
        depend on each other, a dependent variable that does not vary or that the regressors
        separate (the estimate would be infinite; found by linear programming, Konis 2007), or a
        search that does not end. A linear regression that explains it to the last digits has a
        value, but neither error nor test: its residuals are rounding.
    """
    import statsmodels.api as sm
    from statsmodels.tools.sm_exceptions import (
        ConvergenceWarning,
        HessianInversionWarning,
        PerfectSeparationWarning,
    )

    y = np.asarray(dependent, dtype=float)
    names = [*(["intercept"] if intercept else []), *regressors]
    columns = [np.asarray(column, dtype=float) for column in regressors.values()]
    x = np.column_stack([*([np.ones(len(y))] if intercept else []), *columns])
    n, k = x.shape
    if n <= k:
        return _none(of, n, "too few rows")
    if logistic and (y == y[0]).all():
        return _none(of, n, "the dependent variable does not vary")
    spread = float(np.ptp(y)) if intercept else float(np.abs(y).max())
    if spread <= ROUNDING * np.abs(y).max():
        return _none(of, n, "no variation")
    if np.linalg.matrix_rank(x) < k:
        return _none(of, n, "regressors that depend on each other")
    together = np.zeros(n) if clusters is None else np.asarray(clusters)
    groups = np.unique(together, return_inverse=True)[1]
    several = int(groups.max()) > 0
    with warnings.catch_warnings():
        for known in (ConvergenceWarning, HessianInversionWarning, PerfectSeparationWarning):
            warnings.simplefilter("ignore", known)
        warnings.simplefilter("ignore", RuntimeWarning)  # from infinite estimates on their way
        try:
            fit = sm.Logit(y, x).fit(disp=0, maxiter=100) if logistic else sm.OLS(y, x).fit()
            converged = not logistic or bool(fit.mle_retvals["converged"])
        except np.linalg.LinAlgError:
            converged = False
        wild = logistic and (not converged or np.abs(x @ fit.params).max() > EXTREME)
        if wild and _separates(x, y):
            found = firth(x, y, names.index(of)) if penalised else None
            if found is None:
                return _none(of, n, "separation")
            return Estimate(of, *found[:4], n, "row", found[4], {}, note=SEPARATED)
        if not converged:
            return _none(of, n, "no convergence")
        at = names.index(of)
        value, error = float(fit.params[at]), float(fit.bse[at])
        freedom, influence = np.inf if logistic else float(n - k), np.zeros(0)
        if several:
            p = scipy.special.expit(x @ fit.params) if logistic else x @ fit.params
            weight = p * (1 - p) if logistic else np.ones(n)
            influence, freedom = cluster_influence(x, y - p, weight, groups, at)
            error = float(np.sqrt((influence**2).sum()))
    # A coefficient this small moves y by nothing, and an error this small counts as none.
    least = ROUNDING * spread / float(np.ptp(x[:, at]) or np.abs(x[:, at]).max())
    if abs(value) <= least:
        value = 0.0
    if not np.isfinite(error) or error <= least:
        note = "no interval: nothing is left unexplained"
        return Estimate(of, value, np.nan, np.nan, np.nan, n, "row", np.nan, {}, note=note)
    law = scipy.stats.t(freedom)
    half = float(law.ppf(0.975)) * error
    p_value = 2 * float(law.sf(abs(value) / error))
    ends = value - half, value + half
    moved = dict(zip(np.unique(together).astype(str).tolist(), influence.tolist(), strict=False))
    return Estimate(
        of, value, error, *ends, n, "row", p_value, {}, freedom=freedom, influence=moved
    )


def cluster_influence(
    x: Array, residual: Array, weight: Array, groups: NDArray[np.int64], at: int
) -> tuple[Array, float]:
    """Return how far each cluster moves a coefficient, and the degrees of freedom of its error.

    The sum of squares is the variance CR2 (Bell and McCaffrey 2002): the sandwich of Liang and
    Zeger (1986) with the residuals of each cluster e_g taken as (I - H_gg)^(-1/2) e_g, where H is
    the hat matrix. So it has no bias if rows are independent. Degrees of freedom are those of
    Satterthwaite (1946) in that case. Of a logistic regression, rows are those of the last weighted
    least squares (Pustejovsky and Tipton 2018). With 3 to 20 clusters a nominal .05 is .02 to .07,
    and .08 with 3 whose regressors differ much in spread (the sandwich without these: .33, a wild
    cluster bootstrap: .01).

    Parameters
    ----------
    x, residual, weight : Regressors [rows, k], y minus its expectation, and its variance, [rows].
    groups : The cluster of each row, from 0, [rows].
    at : Which coefficient.

    Returns
    -------
    tuple : [clusters], and the degrees of freedom, at most one less than there are clusters.
    """
    root = np.sqrt(np.maximum(weight, np.finfo(float).tiny))
    basis, triangle = np.linalg.qr(root[:, None] * x)  # basis @ basis.T is the hat matrix
    errors, chosen = residual / root, basis @ np.linalg.inv(triangle)[at]
    n_groups = int(groups.max()) + 1
    moved, squares = np.zeros((2, n_groups))
    through = np.zeros((n_groups, x.shape[1]))
    for g in range(n_groups):
        mine = groups == g
        left, size, _ = np.linalg.svd(basis[mine], full_matrices=False)
        rest = np.maximum(1.0 - size**2, 0.0)
        # What one cluster alone determines leaves no residual there, and adds nothing.
        factor = np.where(rest > ROUNDING, 1.0 / np.sqrt(np.where(rest > ROUNDING, rest, 1.0)), 0.0)
        loading = chosen[mine] + left @ ((factor - 1.0) * (left.T @ chosen[mine]))
        moved[g], squares[g] = loading @ errors[mine], loading @ loading
        through[g] = basis[mine].T @ loading
    covariance = np.diag(squares) - through @ through.T
    return moved, float(np.trace(covariance) ** 2 / (covariance**2).sum())


def firth(x: Array, y: Array, at: int) -> tuple[float, float, float, float, float] | None:
    """Return a coefficient of a logistic regression by Firth's penalised likelihood (1993).

    The penalty is half the logarithm of the determinant of the information (Jeffreys' prior). So
    there is an estimate also where the regressors separate. Interval and test are those of the
    profile of the penalised likelihood (Heinze and Schemper 2002).

    Returns
    -------
    tuple : Value, standard error, low and high (95%), and p-value; None if a search does not end.
    """

    def fit(held: float | None = None) -> Any:
        """Maximise over all coefficients, or over those besides the one that is held."""
        free = np.full(x.shape[1], held is None) | (np.arange(x.shape[1]) != at)

        def loss(some: Array) -> tuple[float, Array]:
            beta = np.full(x.shape[1], held or 0.0)
            beta[free] = some
            eta = x @ beta
            p = scipy.special.expit(eta)
            basis, triangle = np.linalg.qr(np.sqrt(p * (1 - p))[:, None] * x)
            size = np.abs(np.diag(triangle))  # whose product is the root of the determinant
            if not (size > 0).all():
                return np.inf, np.zeros(free.sum())
            score = x.T @ (y - p + (basis**2).sum(axis=1) * (0.5 - p))
            value = y @ eta - np.logaddexp(0.0, eta).sum() + np.log(size).sum()
            return -float(value), -score[free]

        return scipy.optimize.minimize(loss, np.zeros(free.sum()), jac=True, method="BFGS")

    whole = fit()
    p = scipy.special.expit(x @ whole.x)
    try:
        covariance = np.linalg.inv((p * (1 - p) * x.T) @ x)
    except np.linalg.LinAlgError:
        return None
    value, error = float(whole.x[at]), float(np.sqrt(covariance[at, at]))
    law = scipy.stats.chi2(1)

    def excess(held: float) -> float:
        return 2.0 * float(fit(held).fun - whole.fun) - float(law.ppf(0.95))

    ends = []
    for side in (-1.0, 1.0):
        far = value + side * error
        for _ in range(20):
            if excess(far) > 0:
                break
            far += side * error
        else:
            return None
        ends.append(float(scipy.optimize.brentq(excess, value, far, xtol=1e-6)))
    p_value = float(law.sf(max(0.0, excess(0.0) + float(law.ppf(0.95)))))
    return value, error, ends[0], ends[1], p_value


Design = tuple[NDArray[np.bool_], Array, dict[str, Array]]


@dataclass(eq=False)
class RegressionMeasure(Measure):
    """A coefficient of a regression over the trials of all subjects.

    The truth is simulated: the coefficient in many sessions of the agents. All agents have the same
    fixed seed, so that the truth grows smoothly with a dial.

    Parameters
    ----------
    design : A function of trials that returns which ones count, the dependent variable (NaN without
        an answer), and regressors, [rows].
    of, unit : The regressor whose coefficient is the measure, and the name of a row of the
        regression.
    sign : 1, or -1 if the negative of the coefficient counts.
    logistic, penalised, intercept : Whether the regression is logistic, whether it then has a
        penalised estimate under separation, and whether it has an intercept.
    clustered_by : Rows depend on each other within these: "subject" (within sessions, if there is
        one subject); "" if rows count as independent.
    parameter : Parameter that is the coefficient's truth, 0 in models without it; "" if the truth
        is simulated.
    has_null : Whether all agents of a model have the null value, besides those of the rational
        model.
    """

    design: Callable[[Trials], Design]
    _: KW_ONLY
    of: str
    unit: str = "trial"
    sign: float = 1.0
    logistic: bool = True
    penalised: bool = False
    intercept: bool = True
    clustered_by: Literal["subject", ""] = "subject"
    parameter: str = ""
    has_null: Callable[[type[Model]], bool] | None = None

    def estimate(self, trials: Trials) -> Estimate:
        """Regress over all trials that count."""
        counts, dependent, regressors = self.design(trials)
        rows = counts & np.isfinite(dependent)
        subject = trials.frame["subject"]
        several = subject.nunique() > 1
        clusters = (subject if several else designs_of(trials)).astype(str).to_numpy()[rows]
        result = coefficient(
            self.of,
            dependent[rows],
            {name: column[rows] for name, column in regressors.items()},
            logistic=self.logistic,
            intercept=self.intercept,
            clusters=clusters if self.clustered_by and len(clusters) else None,
            penalised=self.penalised,
        )
        note = result.note
        alone = not self.clustered_by or len(set(clusters)) < 2
        if np.isfinite(result.low) and alone and not note:
            note = f"{self.unit}s taken as independent"
        low, high = sorted((self.sign * result.low, self.sign * result.high))
        excluded = {"no answer": int((counts & ~rows).sum()), **result.excluded}
        value = self.sign * result.value + 0.0  # never -0
        if np.isfinite(result.low) and result.freedom < ROUGH and not note:
            note = f"{result.freedom:.1f} degrees of freedom: the interval is rough"
        influence = {} if several else {k: self.sign * v for k, v in result.influence.items()}
        shown = replace(
            result, measure=self.name, value=value, low=low, high=high, influence=influence
        )
        return self.with_remark(
            replace(shown, unit=self.unit, excluded=excluded, note=note), trials
        )

    def truth(self, model: type[Model], theta: Array) -> Array:
        """Return the coefficient of each agent alone, [n]."""
        if self.parameter:
            names = model.parameters.names
            known = self.parameter in names
            return theta[:, names.index(self.parameter)] if known else np.zeros(len(theta))
        return np.array([self.group_truth(model, row[None]) for row in theta])

    def group_truth(self, model: type[Model], theta: Array) -> float:
        """Return the coefficient when agents with parameters theta[n, P] are pooled."""
        if self.parameter:
            return float(self.truth(model, theta).mean())
        if self.has_null is not None and self.has_null(model):
            return self.null
        environment = make(self.environments[0])
        each = -(-SESSIONS // len(theta))
        several = np.repeat(theta, each, axis=0)
        return self.estimate(simulate(model, several, environment, SEED)).value


def _separates(x: Array, y: NDArray[np.float64]) -> bool:
    """Say whether a combination of the regressors separates zeros and ones, even if in part."""
    sided = np.unique(np.where(y > 0, 1.0, -1.0)[:, None] * x, axis=0)
    result = scipy.optimize.linprog(
        -sided.sum(axis=0), A_ub=-sided, b_ub=np.zeros(len(sided)), bounds=(-1, 1)
    )
    return bool(result.status == 0 and result.fun is not None and result.fun < -1e-8)


def _none(of: str, n: int, reason: str) -> Estimate:
    return Estimate(of, np.nan, np.nan, np.nan, np.nan, n, "row", np.nan, {reason: n})
