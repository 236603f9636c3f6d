"""The group model: one operation, two backends, and the group it was drawn from comes back."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from stored_runs import keep, stored

from knownminds.agents import RandomResponder, RescorlaWagner, RescorlaWagnerDual, simulate
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.inference import (
    GroupModel,
    ModelData,
    Unknowns,
    hierarchical,
    leave_one_subject_out,
    maximum_a_posteriori,
    maximum_likelihood,
)
from knownminds.inference.posteriors.convergence import check_convergence
from knownminds.inference.posteriors.likelihood_op import LogLikelihood
from knownminds.inference.posteriors.sampling import kernel_inputs

MEAN = np.array([-0.3, 1.1, 0.2])
SPREAD = np.array([0.8, 0.4, 0.4])


def group(n, seed=3, visits=24, effect=0.0):
    rng = np.random.default_rng(seed)
    z = MEAN + SPREAD * rng.normal(size=(n, 3))
    condition = np.arange(n) % 2
    z[:, 0] += effect * condition
    theta = RescorlaWagner.parameters.constrain(z)
    frame = simulate(RescorlaWagner, theta, InstrumentalLearning(visits), seed).to_frame()
    frame["condition"] = np.where(condition, "b", "a")[frame["subject"].astype(int)]
    return theta, Trials.from_frame(frame)


@pytest.fixture(scope="module")
def fitted():
    theta, trials = group(40)
    data = ModelData.read(RescorlaWagner, trials)
    model = GroupModel.build(data)
    return theta, data, model, model.sample(data, seed=1)


@pytest.mark.parametrize("fixed", [{}, {"beta": 2.0}])
@pytest.mark.parametrize("lapse", [False, True])
def test_the_operation_computes_value_and_gradient_in_python_and_compiled(fixed, lapse):
    _, trials = group(5)
    data = ModelData.read(RescorlaWagner, trials)
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


def test_the_group_comes_back_and_the_sampling_is_sound(fitted):
    _, _, _, fit = fitted
    assert fit.verdict == "converged", fit.reasons
    for k, name in enumerate(fit.names):
        mean, spread = fit.group.loc[name], fit.group.loc[f"sd({name})"]
        # The truth lies within 3.5 posterior sds: 6 comparisons fail once in 350 data sets.
        assert abs(mean["mean"] - MEAN[k]) < 3.5 * mean["sd"]
        assert abs(spread["mean"] - SPREAD[k]) < 3.5 * spread["sd"]


def test_shrinkage_beats_separate_estimates(fitted):
    """Against maximum likelihood: a MAP estimate is itself drawn to a prior like this group."""
    theta, data, _, fit = fitted
    separate = maximum_likelihood(RescorlaWagner, data)
    error = [np.sqrt(((e - theta) ** 2).mean(axis=0)) for e in (fit.estimate, separate.estimate)]
    assert (error[0] < error[1]).all()


def test_intervals_of_subjects_hold_the_truth(fitted):
    theta, _, _, fit = fitted
    low, high = fit.interval(0.9)
    held = ((theta >= low) & (theta <= high)).mean()
    # 120 intervals, positively dependent within subjects: at most twice the binomial error.
    assert abs(held - 0.9) < 3 * 2 * np.sqrt(0.09 / 120)


def test_a_second_data_set_gives_another_posterior_and_the_same_as_a_model_of_its_own(fitted):
    _, _, model, first = fitted
    _, trials = group(40, seed=4)
    data = ModelData.read(RescorlaWagner, trials)
    settings = {"seed": 1, "draws": 100, "tune": 200, "rounds": 1}
    second = model.sample(data, **settings)
    assert not np.allclose(second.estimate, first.estimate, atol=0.05)
    alone = GroupModel.build(data).sample(data, **settings)
    np.testing.assert_array_equal(alone.z_draws, second.z_draws)


def test_a_fit_loads_and_compiles_no_graph(fitted):
    """What a fit waited for: PyMC, its compiler, and the sampler that comes with them."""
    code = (
        "import sys, knownminds.inference.posteriors.group_model\n"
        "print([m for m in ('pymc', 'pytensor', 'nutpie') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
    _, _, model, _ = fitted
    assert model._compiled is None


PYMC = {"draws": 500, "tune": 500, "seed": 2}


def agree(own, other, names):
    """Hold the means of two samplers together: 5 Monte-Carlo errors for the largest of three."""
    for name in names:
        a, b = own.loc[name], other[name]
        error = np.hypot(a["sd"] / np.sqrt(a["ess_bulk"]), b["sd"] / np.sqrt(b["ess_bulk"]))
        assert abs(a["mean"] - b["mean"]) < 5 * error, name


@pytest.mark.long
def test_both_samplers_agree_anew(fitted):
    _, data, model, fit = fitted
    other = model.sample(data, sampler="pymc", cores=2, rounds=1, **PYMC).group
    found = other.loc[list(fit.names), ["mean", "sd", "ess_bulk"]].to_dict("index")
    agree(fit.group, found, fit.names)
    agree(fit.group, keep("both_samplers", found, PYMC["seed"], __file__), fit.names)


def test_both_samplers_agree(fitted):
    """The draws of PyMC's own NUTS are stored; a short run shows that it still samples this."""
    _, data, model, fit = fitted
    agree(fit.group, stored("both_samplers"), fit.names)
    own = model.sample(data, sampler="pymc", draws=40, tune=60, chains=2, seed=2, cores=1, rounds=1)
    for name in fit.names:
        # Few and dependent draws, an effective 8 at the least: half a sd and more is their error.
        a, b = fit.group.loc[name], own.group.loc[name]
        assert abs(a["mean"] - b["mean"]) < 5 * a["sd"] / np.sqrt(8), name


def test_a_regressor_of_the_group_mean_is_found():
    _, trials = group(60, seed=6, visits=48, effect=1.2)
    settings = {"seed": 1, "draws": 400, "tune": 500, "rounds": 1}
    fit = hierarchical(RescorlaWagner, trials, formula="alpha ~ condition", **settings)
    row = fit.group.loc["alpha ~ condition[T.b]"]
    assert abs(row["mean"] - 1.2) < 3.5 * row["sd"]
    assert row["low"] > 0


def test_too_little_sampling_is_called_so(fitted):
    _, data, model, _ = fitted
    fit = model.sample(data, draws=20, tune=20, chains=2, seed=3, rounds=1)
    assert fit.verdict == "not converged"
    assert fit.status == ("failed",) * 40
    assert any("effective sample size" in reason or "R-hat" in reason for reason in fit.reasons)


def test_sampling_that_falls_short_goes_on_longer_and_says_so(fitted):
    """No draws of any processor can suffice here.

    The effective size of n draws is taken to be at most n log10(n) (Vehtari et al. 2021): 352 for
    4 chains of 40, and 400 are asked for.
    """
    _, data, model, _ = fitted
    fit = model.sample(data, draws=20, tune=20, seed=3, rounds=2)
    assert (fit.settings.draws, fit.settings.tune) == (40, 40)
    assert fit.posterior.sizes["draw"] == 40
    assert fit.verdict == "not converged"
    assert any(reason.endswith("below 400") for reason in fit.reasons)
    assert set(fit.status) == {"failed"}


@pytest.mark.parametrize("enough", [1, 2, 3])
def test_sampling_stops_at_the_first_round_that_suffices(fitted, monkeypatch, enough):
    """Which round that is stands in for the diagnostics, which depend on the draws."""
    _, data, model, _ = fitted
    rounds = []

    def judged(posterior, effects, divergences):
        rounds.append(posterior.sizes["draw"])
        reasons = () if len(rounds) == enough else ("too few",)
        return replace(check_convergence(posterior, effects, 0), reasons=reasons)

    monkeypatch.setattr("knownminds.inference.posteriors.group_model.check_convergence", judged)
    fit = model.sample(data, draws=10, tune=10, seed=3)
    assert rounds == [10, 20, 40][:enough]
    assert fit.settings.draws == fit.posterior.sizes["draw"] == rounds[-1]
    assert fit.verdict == "converged"


def test_leaving_a_subject_out_prefers_the_model_that_made_the_data(fitted):
    _, data, _, fit = fitted
    right = leave_one_subject_out(fit)
    assert right.unreliable == 0
    chance = data.n_trials * np.log(0.5)
    assert right.total > chance.sum() + 3 * right.standard_error
    # Leaving out can only cost: the density of a subject's trials is below its best likelihood.
    assert (right.elpd < maximum_a_posteriori(RescorlaWagner, data).log_likelihood).all()


def test_misuse_is_answered_with_the_rule(fitted):
    _, data, model, _ = fitted
    _, trials = group(6)
    with pytest.raises(ValueError, match="built for 40 subjects"):
        model.sample(ModelData.read(RescorlaWagner, trials))
    with pytest.raises(ValueError, match="needs a free parameter"):
        GroupModel.build(ModelData.read(RandomResponder, trials))
    with pytest.raises(ValueError, match="Samplers are compiled, nutpie, pymc"):
        model.sample(data, sampler="gibbs")
    for formula, message in (
        ("alpha ~ conditon", "'conditon'.*Did you mean condition"),
        ("alfa ~ condition", "Did you mean alpha"),
        ("alpha condition", "reads"),
        ("alpha ~ 1", "besides the intercept"),
    ):
        with pytest.raises(ValueError, match=message):
            hierarchical(RescorlaWagner, trials, formula=formula)
    with pytest.raises(ValueError, match="least 1"):
        model.sample(data, draws=0)


def test_lapses_and_fixed_values_enter_the_group_model():
    theta = np.tile([0.3, 0.3, 4.0, 0.0], (20, 1))
    trials = simulate(RescorlaWagnerDual, theta, InstrumentalLearning(24), 1, lapse=0.05)
    fit = hierarchical(
        RescorlaWagnerDual,
        trials,
        fixed={"kappa": 0.0, "alpha_negative": 0.3},
        lapse=True,
        draws=300,
        tune=300,
        rounds=1,
    )
    assert fit.names == ("alpha_positive", "beta", "lapse")
    assert fit.group.loc["lapse", "natural_low"] < 0.05 < fit.group.loc["lapse", "natural_high"]
