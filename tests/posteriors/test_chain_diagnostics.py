"""Convergence, Monte-Carlo errors and smoothed weights are ArviZ's numbers, draw for draw."""

import arviz as az
import numpy as np
import pytest
import xarray as xr
from scipy.signal import lfilter

from knownminds.inference.posteriors import chain_diagnostics as ours
from knownminds.inference.posteriors.pareto_smoothing import smooth_weights

SHARE = 0.05


def chains(count, draws, seed=0):
    """Quantities that are independent, sticky, alternating, apart, on a line, few-valued."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(count, draws, 7))
    for k, carried in ((1, 0.9), (2, -0.7), (3, 0.995)):
        noise[:, :, k] = lfilter([1.0], [1.0, -carried], noise[:, :, k], axis=1)
    noise[0, :, 4] += 1.0
    noise[:, :, 5] = rng.integers(3, size=(count, draws))  # ties
    noise[:, :, 6] = 2.5  # which never moves
    return noise


def by_arviz(draws, what, **more):
    """Ask ArviZ, either generation, for a score of each quantity."""
    data = xr.Dataset({"x": (("chain", "draw", "k"), draws)})
    found = getattr(az, what)(data, **more)
    return found["x"].to_numpy()


@pytest.mark.parametrize(("count", "draws"), [(4, 300), (2, 101), (1, 64), (3, 5)])
@pytest.mark.filterwarnings("ignore")
def test_scores_are_those_of_arviz(count, draws):
    x = chains(count, draws)
    close = {"rtol": 1e-8, "equal_nan": True}
    if count > 1:
        np.testing.assert_allclose(ours.r_hat(x)[:6], by_arviz(x, "rhat")[:6], **close)
    tails = {"method": "tail", "prob": ours.TAILS}  # those that Vehtari and others (2021) ask for
    for mine, how in (
        (ours.ess_bulk, {"method": "bulk"}),
        (ours.ess_tail, tails),
        (ours.ess_mean, {"method": "mean"}),
    ):
        np.testing.assert_allclose(mine(x), by_arviz(x, "ess", **how), **close)
    some = x[:, :, :4]
    np.testing.assert_allclose(
        ours.error_of_mean(some), by_arviz(some, "mcse", method="mean"), **close
    )
    errors = [ours.error_of_quantile(some[:, :, k], SHARE) for k in range(4)]
    theirs = by_arviz(some, "mcse", method="quantile", prob=SHARE)
    np.testing.assert_allclose(errors, theirs, **close)


def test_what_cannot_be_known_is_nan():
    x = chains(2, 50)
    x[1, 3, 2] = np.inf
    for score in (ours.r_hat, ours.ess_bulk, ours.ess_tail):
        assert np.isnan(score(x)).tolist()[2]
        assert np.isfinite(score(x)[[0, 1, 3]]).all()
    assert np.isnan(ours.r_hat(x[:1])).all()
    assert np.isnan(ours.ess_bulk(x[:, :3])).all()
    assert np.isnan(ours.error_of_quantile(x[:, :, 2], SHARE))


@pytest.mark.skipif(not az.__version__.startswith("0."), reason="ArviZ 1 cuts the tail elsewhere")
def test_smoothed_weights_are_those_of_arviz():
    rng = np.random.default_rng(2)
    rows = [rng.normal(size=1000), rng.standard_t(2, size=1000), rng.exponential(3, 1000)]
    rows += [rng.normal(scale=400, size=1000), np.full(1000, -np.inf)]
    rows[4][:4] = [0.0, -1.0, -2.0, -3.0]  # four weights and nothing else: no tail
    smoothed, shape = smooth_weights(np.stack(rows))
    for k, row in enumerate(rows):
        theirs, k_hat = az.psislw(row.copy())
        assert shape[k] == pytest.approx(float(k_hat), rel=1e-10)
        np.testing.assert_allclose(smoothed[k], theirs, rtol=1e-10, atol=1e-12)
    assert shape[4] == np.inf
