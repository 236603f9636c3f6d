"""The group model: one operation, two backends, and the group it was drawn from comes back."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from arviz_stats.base import array_stats
from stored_runs import keep

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning
from knownminds.inference import GroupModel, ModelData, Unknowns
from knownminds.inference.groups.sampling import dataset_of, kernel_inputs
from knownminds.inference.posteriors.convergence import check_convergence
from knownminds.inference.posteriors.likelihood_op import LogLikelihood

MEAN = np.array([-0.3, 1.1, 0.2])
SPREAD = np.array([0.8, 0.4, 0.4])


def group(n):
    rng = np.random.default_rng(3)
    z = MEAN + SPREAD * rng.normal(size=(n, 3))
    theta = RescorlaWagner.parameters.constrain(z)
    trials = simulate(RescorlaWagner, theta, InstrumentalLearning(24), 3)
    return theta, ModelData.read(RescorlaWagner, trials)


@pytest.fixture(scope="module")
def fitted():
    theta, data = group(40)
    model = GroupModel.build(data)
    return theta, data, model, model.sample(data, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("fixed", [{}, {"beta": 2.0}])
@pytest.mark.parametrize("lapse", [False, True])
def test_the_operation_computes_value_and_gradient_in_python_and_compiled(fixed, lapse):
    _, data = group(5)
    unknowns = Unknowns.of(RescorlaWagner, fixed, lapse)
    parameters = unknowns.parameters
    value = np.random.default_rng(0).normal(parameters.mean, 1.0, (5, len(parameters)))
    theta = parameters.constrain(value)
    total, slope = unknowns.log_likelihood(data, theta)
    slope = slope * parameters.slope(theta)
    z = pt.dmatrix("z")
    out, _ = LogLikelihood(RescorlaWagner, 2, unknowns)(z, *kernel_inputs(data).values())
    weights = np.arange(1.0, 6.0)
    gradient = pytensor.grad((out * weights).sum(), z)
    # A compiled graph calls what the Python mode calls, so it is made with nothing and with all.
    for mode in ("FAST_COMPILE", "NUMBA") if bool(fixed) == lapse else ("FAST_COMPILE",):
        got, got_gradient = pytensor.function([z], [out, gradient], mode=mode)(value)
        assert np.allclose(got, total)
        assert np.allclose(got_gradient, slope * weights[:, None])


@pytest.mark.long
def test_intervals_of_subjects_hold_the_truth(fitted):
    theta, _, _, fit = fitted
    low, high = fit.interval(0.9)
    inside = ((theta >= low) & (theta <= high)).mean()
    # 120 intervals, positively dependent within subjects: at most twice the binomial error.
    assert abs(inside - 0.9) < 3 * 2 * np.sqrt(0.09 / 120)


PYMC = {"draws": 500, "tune": 500, "seed": 2}


def agree(own, other, names):
    """Hold the means of two samplers together: 5 Monte-Carlo errors for the largest of three."""
    for name in names:
        a, b = own.loc[name], other[name]
        error = np.hypot(a["sd"] / np.sqrt(a["ess_bulk"]), b["sd"] / np.sqrt(b["ess_bulk"]))
        assert abs(a["mean"] - b["mean"]) < 5 * error, name


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # PyTensor of BLAS
def test_both_samplers_agree_anew(fitted):
    _, _, model, fit = fitted
    with model.pymc_model:
        trace = pm.sample(
            draws=PYMC["draws"], tune=PYMC["tune"], random_seed=PYMC["seed"], cores=2,
            progressbar=False, nuts_sampler="pymc", compute_convergence_checks=False,
        )  # fmt: skip
    draws = dataset_of(trace, "posterior")["group_mean"]
    found = {}
    for name in fit.names:
        own = draws.sel(parameter=name).to_numpy()
        ess = array_stats.ess(own, chain_axis=0, draw_axis=1, method="bulk")
        found[name] = {"mean": own.mean(), "sd": own.std(), "ess_bulk": float(ess)}
    agree(fit.group, found, fit.names)
    agree(fit.group, keep("both_samplers", found, PYMC["seed"], __file__), fit.names)


@pytest.mark.parametrize("enough", [1, 2, 3])
def test_sampling_stops_at_the_first_round_that_suffices(monkeypatch, enough):
    """Which round that is stands in for the diagnostics, which depend on the draws."""
    _, data = group(4)
    rounds = []

    def judged(posterior, effects, divergences, group_alone):
        rounds.append(posterior.sizes["draw"])
        reasons = () if len(rounds) == enough else ("too few",)
        return replace(check_convergence(posterior, effects, 0), reasons=reasons)

    monkeypatch.setattr("knownminds.inference.groups.group_model.check_convergence", judged)
    fit = GroupModel.build(data).sample(data, draws=10, tune=10, seed=3)
    assert rounds == [10, 20, 40][:enough]
    assert fit.settings.draws == fit.posterior.sizes["draw"] == rounds[-1]
    assert fit.verdict == "converged"
    # Ten draws are worth few: steps follow correlations, and then tuning is longer as well.
    assert (fit.settings.related, fit.settings.tune) == (enough > 1, {1: 10, 2: 10, 3: 20}[enough])


def test_where_subjects_are_integrated_out_their_own_draws_play_no_part_in_the_verdict():
    rng = np.random.default_rng(0)
    drawn = {name: (("chain", "draw", "parameter"), rng.normal(size=(4, 500, 1)))
             for name in ("group_mean", "group_sd")}  # fmt: skip
    apart = rng.normal(size=(4, 500, 3, 1)) + np.arange(4)[:, None, None, None]
    whole = xr.Dataset(
        {**drawn, "z": (("chain", "draw", "subject", "parameter"), apart)},
        coords={"parameter": ["alpha"]},
    )
    assert "a subject's parameter" in check_convergence(whole, (), 0).reasons[0]
    assert check_convergence(whole, (), 0, group_alone=True).verdict == "converged"
    drawn["group_mean"][1][0] += 1.0
    assert check_convergence(whole.assign(drawn), (), 0, group_alone=True).verdict != "converged"
