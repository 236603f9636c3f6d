"""Subjects predicted by a model from the others, with their parameters integrated out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from knownminds.agents.parameters import Array
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.posteriors.arviz_scores import LARGEST_PARETO_K, smooth_weights
from knownminds.inference.posteriors.comparison import LeaveOneOut

from .deviations import Deviations
from .formulas import GroupDesign
from .group_model import GroupModel, HierarchicalFit, SamplingOptions, expected_of
from .hyperprior import HyperpriorDraws
from .population_draws import PopulationDraws, marginal_log_likelihood, marginals_of_others

CHAINS, DRAWS, TUNE = 4, 250, 500  # sampling of the group
USED = 500  # draws of the group by which subjects are predicted, evenly spaced
PROPOSALS = 128  # of each subject and draw of the group, a power of two
MOST_REFITS = 12  # new fits without a subject, at most: those with the largest Pareto k


@dataclass(frozen=True)
class PredictedSubjects:
    """A group by one model, and how well it predicts left-out subjects.

    Parameters
    ----------
    unknowns : The estimated parameters.
    there : Whether a subject has an answer, [N]; the others have no information and are left out.
    left_out : elpd [N], NaN for subjects without an answer. A subject whose Pareto k is above 0.7
        is predicted by a group drawn without it; there are at most `MOST_REFITS` of these. If a
        group has not converged, the k of those that it predicts is infinite.
    expected : Posterior medians of the group's expectation of its rows of parameters, [M or 1, K],
        unconstrained.
    root : Root of the covariance of subjects' deviations, [Q, Q]: posterior medians of the spreads,
        and the mean correlations.
    rows : How deviations enter rows; None if each subject has a row and deviates in it alone.
    """

    unknowns: Unknowns
    there: NDArray[np.bool_]
    left_out: LeaveOneOut
    expected: Array
    root: Array
    rows: Deviations | None = None

    def draw(self, rng: np.random.Generator, n: int) -> Array:
        """Draw theta [n, K] on the natural scale: agents that each resemble a row of parameters.

        If a formula makes rows differ, all rows are equally likely.
        """
        deviations = rng.normal(size=(n, len(self.root))) @ self.root.T
        which = np.zeros(n, dtype=np.int64)
        if len(self.expected) > 1:
            which = rng.integers(len(self.expected), size=n)
        if self.rows is not None:
            onto = np.eye(len(self.unknowns.parameters))[self.rows.moved]
            deviations = (self.rows.weight[which] * deviations) @ onto
        return self.unknowns.parameters.constrain(self.expected[which] + deviations)


def predict_left_out(
    data: ModelData,
    *,
    design: GroupDesign | None = None,
    correlated: bool = False,
    fixed: Mapping[str, float] | None = None,
    lapse: bool = False,
    seed: int = 0,
    workers: int | None = None,
) -> PredictedSubjects:
    """Predict each subject from the others: p(y_i | y_others) = E[p(y_i | group)].

    The group is that of `hierarchical`. At each draw of the group, each subject's parameters are
    integrated out by importance sampling with bounded weights. A subject's own draws only say where
    to propose, so that the group counts as converged by its own terms: its means, spreads, effects
    and correlations. The subject is left out by PSIS
    (Merkle, Furr and Rabe-Hesketh 2019; Vehtari, Gelman and Gabry 2017), with all its rows of
    parameters at once. The columns that formulas read of a subject are known when it is predicted.

    Parameters
    ----------
    data : The data, by the design's rows of parameters if it has columns within subjects.
    design : The design of the formulas, see `GroupDesign.of`.
    correlated, fixed, lapse : Arguments as in `hierarchical`.
    """
    unknowns = Unknowns.of(data.model, fixed, lapse)
    design = design or GroupDesign.plain(unknowns.parameters, data.subjects, correlated)
    owner, names = design.deviations.subject, design.subjects
    there = np.bincount(owner, np.asarray(data.n_trials), minlength=len(names)) > 0
    n = len(names)
    elpd, pareto_k = np.full(n, np.nan), np.full(n, -np.inf)
    refitted = np.zeros(n, dtype=np.int64)
    k = len(unknowns.parameters)
    if k == 0:
        certain = unknowns.log_likelihood(data, np.zeros((len(data), 0)))[0]
        elpd[there] = np.bincount(owner, certain, minlength=n)[there]
        leave_one_out = LeaveOneOut(data.model.name, names, elpd, pareto_k, refitted)
        return PredictedSubjects(unknowns, there, leave_one_out, np.zeros((1, 0)), np.zeros((0, 0)))
    sampling: SamplingOptions = {
        "chains": CHAINS, "draws": DRAWS, "tune": TUNE, "seed": seed, "cores": workers,
        "group_alone": True,
    }  # fmt: skip
    whole = GroupModel.build(data, fixed=fixed, lapse=lapse, design=design)
    group = whole.only(np.flatnonzero(there))
    fit = group.sample(group.data, **sampling)
    converged = fit.verdict == "converged"
    chosen = _spaced(fit)
    marginal = marginal_log_likelihood(fit, chosen, seed, PROPOSALS).T
    log_weights, own_k = smooth_weights(-marginal)
    own_k = np.where(converged, own_k, np.inf)
    predicted = logsumexp(log_weights + marginal, axis=1)
    poor = np.flatnonzero(~(own_k <= LARGEST_PARETO_K))
    worst_first = poor[np.argsort(-own_k[poor], kind="stable")]
    again = np.zeros(len(own_k), dtype=np.int64)
    # Without a subject, the group is sampled as it was with it in the round that converged.
    last = fit.settings
    sampling |= {"draws": last.draws, "tune": last.tune, "related": last.related}
    for i in worst_first[:MOST_REFITS] if converged else ():
        without, sure = _population_without(group, int(i), sampling)
        exact = marginals_of_others(fit, without, np.array([i]), seed, PROPOSALS)
        predicted[i] = logsumexp(exact) - np.log(len(exact))
        own_k[i], again[i] = (-np.inf if sure else np.inf), 1
    elpd[there], pareto_k[there], refitted[there] = predicted, own_k, again
    leave_one_out = LeaveOneOut(data.model.name, names, elpd, pareto_k, refitted)
    population = PopulationDraws.of(fit)
    root = np.diag(np.median(population.spread[chosen], axis=0))
    if population.root is not None:
        standard = population.root[chosen] / population.spread[chosen][:, :, None]
        whole = (standard @ np.swapaxes(standard, 1, 2)).mean(axis=0)
        root = root @ np.linalg.cholesky(whole)
    expected = np.median(population.expected[chosen], axis=0)
    return PredictedSubjects(unknowns, there, leave_one_out, expected, root, population.rows)


def _spaced(fit: HierarchicalFit) -> NDArray[np.int64]:
    """Return the positions of the draws that are used, evenly spaced among all chains."""
    count = fit.posterior.sizes["chain"] * fit.posterior.sizes["draw"]
    return np.linspace(0, count - 1, min(USED, count)).astype(np.int64)


def _population_without(
    group: GroupModel, i: int, sampling: SamplingOptions
) -> tuple[PopulationDraws, bool]:
    """Return the population by a group without a subject, and whether that group converged."""
    n = len(group.design.subjects)
    one = group.only(np.array([i])).design
    parameters = group.unknowns.parameters
    rows = None if one.deviations.simple else one.deviations
    if n == 1:  # no subject is left, so the group is drawn from its prior
        rng = np.random.default_rng([sampling["seed"], 5])
        drawn = HyperpriorDraws.of(parameters, one, CHAINS * DRAWS, rng)
        root = drawn.roots(one.deviations) if len(one.deviations.pairs) else None
        return PopulationDraws(drawn.expected, drawn.spread, root, rows), True
    others = group.only(np.delete(np.arange(n), i))
    fit = others.sample(others.data, **sampling)
    chosen = _spaced(fit)
    mean = expected_of(fit.posterior, parameters, one.regressors)[chosen]
    root = fit.covariance_roots[chosen] if fit.correlated else None
    return PopulationDraws(mean, fit.spreads[chosen], root, rows), fit.verdict == "converged"
