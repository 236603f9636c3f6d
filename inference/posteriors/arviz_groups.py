"""Groups of data that ArviZ expects beside a posterior: log-likelihoods, priors, predictions."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.agents.sequences import numbered
from knownminds.inference.fits.model_data import ModelData, Unknowns
from knownminds.inference.groups.hyperprior import HyperpriorDraws
from knownminds.inference.groups.population_draws import marginal_log_likelihood

if TYPE_CHECKING:
    from knownminds.inference.groups.group_model import HierarchicalFit

DRAWS = 500  # log-likelihoods are kept for so many draws of the posterior, at most
LEAST_DRAWS = 40
# For a subject's log-likelihood given the group. Its error is then a tenth of its variation over
# draws of the group.
PROPOSALS = 128
VALUES = 2_000_000  # values of a variable by trial that are kept, unless the fewest draws have more
TRIALS = 100_000_000  # trials whose likelihoods are computed, unless the fewest draws take more
AT_ONCE = 2_000_000  # rows of prefixes that are held in memory


def log_likelihood_group(fit: HierarchicalFit) -> xr.Dataset:
    """Return log-likelihoods of some draws, evenly from each chain.

    `trial` [chain, draw, row] is the log-likelihood of each trial, given the trials before it and
    the subject's parameters. `subject` [chain, draw, subject] is that of all trials of a subject
    given the group alone: the subject's parameters are integrated out, so that `arviz.loo` leaves
    subjects out. `trial` is missing if the model's trials have no likelihoods of their own.
    """
    posterior = fit.posterior
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    n_rows = int(fit.data.sequences.length.sum())
    each = _prefixes(fit.data)
    wanted = min(DRAWS, VALUES // max(n_rows, 1), TRIALS // max(each, 1))
    count = int(np.clip(max(wanted, LEAST_DRAWS) // chains, 1, draws))
    kept = np.unique(np.linspace(0, draws - 1, count).round().astype(np.int64))
    chosen = (np.arange(chains)[:, None] * draws + kept).ravel()
    shape = (chains, len(kept))
    by_subject = marginal_log_likelihood(fit, chosen, 0, PROPOSALS)
    result: dict[str, Any] = {
        "subject": (("chain", "draw", "subject_name"), by_subject.reshape(*shape, -1))
    }
    trials = trial_log_likelihood(fit.data, fit.unknowns, fit.draws[chosen])
    if trials is not None:
        values = trials.astype(np.float32).reshape(*shape, -1)
        result["trial"] = (("chain", "draw", "row"), values)
    coordinates = {
        "chain": posterior["chain"].to_numpy(),
        "draw": posterior["draw"].to_numpy()[kept],
        "subject_name": list(fit.design.subjects),
    }
    return xr.Dataset(result, coords=coordinates)


def trial_log_likelihood(data: ModelData, unknowns: Unknowns, theta: Array) -> Array | None:
    """Return the log-likelihood of each trial given those before it, for theta [S, N, K], [S,
    rows].

    Rows are in the order of `Sequences.in_order`. The value of a trial is the difference between
    the likelihoods of its sequence up to and including the trial, and before it. None if the values
    do not add up to the subjects' likelihoods.
    """
    sequence, within, position = data.sequences.in_order()
    subject = data.sequences.subject[sequence]
    result = np.empty((len(theta), len(sequence)))
    first = np.arange(len(sequence)) - within
    length = within + 1 if data.model.remembers else np.ones_like(within)
    begin = first if data.model.remembers else np.arange(len(sequence))
    cut = np.searchsorted(np.cumsum(length), np.arange(AT_ONCE, length.sum() + AT_ONCE, AT_ONCE))
    edges = np.unique([0, *cut, len(sequence)])
    for a, b in pairwise(edges.tolist()):
        rows = np.arange(a, b)
        n_trials = length[rows]
        owner, inner = numbered(n_trials)
        row = position[begin[rows][owner] + inner]
        columns = dict(zip(data.model.columns, (c[row] for c in data.flat), strict=True))
        prefix = ModelData.of_columns(
            data.model, [str(k) for k in rows], owner, [np.zeros_like(owner)], columns,
            data.n_actions,
        )  # fmt: skip
        for s, values in enumerate(theta):
            result[s, a:b] = unknowns.log_likelihood(prefix, values[subject[rows]])[0]
    if data.model.remembers:
        before = np.concatenate([np.zeros((len(theta), 1)), result[:, :-1]], axis=1)
        result = result - np.where(within == 0, 0.0, before)
    total = np.zeros(len(data))
    np.add.at(total, subject, result[0])
    whole = unknowns.log_likelihood(data, theta[0])[0]
    return result if np.allclose(total, whole, rtol=1e-6, atol=1e-6) else None


def prior_group(fit: HierarchicalFit) -> xr.Dataset:
    """Draw from the hyperpriors: group_mean, group_sd, and the z and theta of all subjects.

    There are also effect, slope_sd and correlation if the group has them; crossed levels are left
    out.
    """
    parameters, n, k = fit.parameters, len(fit.design.subjects), len(fit.names)
    rng, dims = np.random.default_rng([0, 11]), ("chain", "draw")
    deviations = fit.design.deviations
    drawn = HyperpriorDraws.of(parameters, fit.design, DRAWS, rng)
    away = rng.standard_normal((DRAWS, n, len(deviations.names)))
    z = (drawn.expected + deviations.enter(away @ np.swapaxes(drawn.roots(deviations), 1, 2)))[None]
    mean, sd = drawn.mean[None], drawn.spread[None, :, :k]
    more: dict[str, Any] = {}
    if fit.effects:
        more["effect"] = ((*dims, "term"), drawn.effect[None])
    if fit.slopes:
        more["slope_sd"] = ((*dims, "slope"), drawn.spread[None, :, k:])
    if fit.correlated:
        correlation = deviations.correlations(drawn.turn, np.ones_like(drawn.spread))
        more["correlation"] = ((*dims, "pair"), correlation[None])
    values = {
        "group_mean": ((*dims, "parameter"), mean),
        "group_sd": ((*dims, "parameter"), sd),
        "z": ((*dims, "subject", "parameter"), z.astype(np.float32)),
        "theta": ((*dims, "subject", "parameter"), parameters.constrain(z).astype(np.float32)),
        **more,
    }
    coordinates = {
        "chain": [0],
        "draw": np.arange(DRAWS),
        "subject": list(fit.subjects),
        "parameter": list(fit.names),
    }
    named = {"effect": ("term", fit.effects), "slope_sd": ("slope", fit.slopes)}
    named["correlation"] = ("pair", fit.pairs)
    coordinates |= {d: list(names) for name, (d, names) in named.items() if name in more}
    return xr.Dataset(values, coords=coordinates)


def predicted_group(
    data: ModelData, rows: dict[str, NDArray[np.float32]], observed: xr.Dataset
) -> xr.Dataset:
    """Return simulated answers [R, rows of the data, in order of time] as a group.

    Its rows are reordered to those of `observed`.
    """
    _, _, position = data.sequences.in_order()
    values = {
        name: (("chain", "draw", "row"), result[None][..., position])
        for name, result in rows.items()
        if name in observed
    }
    count = len(next(iter(rows.values()), ()))
    return xr.Dataset(values, coords={"chain": [0], "draw": np.arange(count)})


def _prefixes(data: ModelData) -> int:
    """Return how many trials must be read for the likelihoods of all trials, for one draw."""
    length = np.asarray(data.sequences.length)
    return int((length * (length + 1) // 2).sum() if data.model.remembers else length.sum())
