"""The compiled density of a group is that of the PyMC model, and nutpie samples it."""

import numpy as np
import pytest
from scipy.stats import beta, kstest

from knownminds.agents import RescorlaWagner, simulate
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.inference import GroupModel, ModelData, Unknowns, hierarchical
from knownminds.inference.groups import sampling
from knownminds.inference.groups.crossed_levels import Levels
from knownminds.inference.groups.deviations import Deviations
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.groups.population_draws import marginal_log_likelihood

N = 6


@pytest.fixture(scope="module")
def trials():
    z = np.array([-0.3, 1.1, 0.2]) + 0.6 * np.random.default_rng(3).normal(size=(N, 3))
    theta = RescorlaWagner.parameters.constrain(z)
    frame = simulate(RescorlaWagner, theta, InstrumentalLearning(8), 3).to_frame()
    number = frame["subject"].astype(int)
    return Trials.from_frame(frame.assign(age=number * 0.3, place=number % 2, drug=number // 2))


def kinds(trials):
    """Every kind of group model: what is handed to `GroupModel.build`."""
    parameters = Unknowns.of(RescorlaWagner).parameters
    formula = ["alpha ~ age", "beta ~ C(place)"]
    return {
        "plain": {},
        "held and lapse": {"fixed": {"beta": 2.0}, "lapse": True},
        "regressors": {"design": GroupDesign.of(formula, trials.frame, RescorlaWagner, parameters)},
        "correlated": {"correlated": True, "lapse": True},
        "crossed": {"levels": Levels.of(["place", "drug"], trials, trials.frame["subject"])},
    }


def within(trials, formula, **more):
    """A group of which each subject has several rows of parameters, and what these rows read."""
    parameters = Unknowns.of(RescorlaWagner).parameters
    design = GroupDesign.of(formula, trials.frame, RescorlaWagner, parameters, **more)
    return design, ModelData.read(RescorlaWagner, trials, rows=design.of_trial)


def has_the_slope_of_differences(model, data):
    density, step = model.density(data), 1e-6
    point = 0.7 * np.random.default_rng(0).normal(size=density.size)
    _, slope = density.at(point)
    differences = [
        (density.at(point + h)[0] - density.at(point - h)[0]) / (2 * step)
        for h in step * np.eye(density.size)
    ]
    # Values of some hundred are known to 1e-13 of themselves, so differences to 1e-5.
    np.testing.assert_allclose(slope, differences, rtol=1e-6, atol=1e-5)


def agrees_with_the_graph(model, data):
    graph, compiled = model.pymc_model, model.density(data)
    function = graph.compile_fn(
        [graph.logp(), graph.dlogp()],
        inputs=graph.value_vars,
        point_fn=False,
        mode="FAST_COMPILE",  # in Python: nothing is compiled for it
    )
    # PyMC has the log odds of (1 + r) / 2 where the density has the r's inverse tangent: twice it.
    names = [one.name.replace("partial_correlation_logodds__", "turn") for one in graph.value_vars]
    scales = [2.0 if name == "turn" else 1.0 for name in names]
    parts = [compiled.parts[name] for name in names]
    rng, found = np.random.default_rng(1), []
    for _ in range(4):
        point = rng.standard_normal(compiled.size)
        given = [
            scale * point[place].reshape(shape)
            for scale, (place, shape) in zip(scales, parts, strict=True)
        ]
        ours, own_slope = compiled.at(point)
        value, slope = function(*given)
        by_graph = np.split(slope, np.cumsum([np.prod(s) for _, s in parts], dtype=int))
        for scale, (place, _), theirs in zip(scales, parts, by_graph, strict=False):
            np.testing.assert_allclose(own_slope[place], scale * theirs, rtol=1e-9, atol=1e-9)
        found.append(ours - float(value))
    # Equal up to a constant, on the scale of the values themselves.
    np.testing.assert_allclose(found, found[0], atol=1e-10 * max(1.0, abs(ours)))


@pytest.mark.parametrize("kind", ["plain", "held and lapse", "regressors", "correlated", "crossed"])
def test_the_slope_of_the_density_is_that_of_differences(trials, kind):
    data = ModelData.read(RescorlaWagner, trials)
    has_the_slope_of_differences(GroupModel.build(data, **kinds(trials)[kind]), data)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["plain", "held and lapse", "regressors", "correlated", "crossed"])
def test_the_compiled_density_is_that_of_the_pymc_model(trials, kind):
    data = ModelData.read(RescorlaWagner, trials)
    agrees_with_the_graph(GroupModel.build(data, **kinds(trials)[kind]), data)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["together", "apart", "correlated", "crossed"])
def test_the_density_of_formulas_within_subjects_is_that_of_the_pymc_model(trials, kind):
    bar = "||" if kind == "apart" else "|"
    formula = [
        f"alpha ~ age + side * place + (side {bar} subject)",
        "beta ~ dose + (dose | subject)",
    ]
    design, data = within(halves(trials), formula, correlated=kind == "correlated")
    assert len(data) == 2 * N
    more = {}
    if kind == "crossed":
        more["levels"] = Levels.of(["drug"], trials, trials.frame["subject"])
    model = GroupModel.build(data, design=design, correlated=kind == "correlated", **more)
    pairs = {"together": 2, "apart": 1, "correlated": 10, "crossed": 2}
    assert len(model.design.deviations.pairs) == pairs[kind]
    assert model.design.deviations.slopes == ("alpha ~ side[T.right]", "beta ~ dose")
    has_the_slope_of_differences(model, data)
    agrees_with_the_graph(model, data)


def halves(trials):
    """The same trials with columns that change within subjects: contexts are learned apart."""
    late = trials.frame["context"].astype(int) % 2
    side = np.where(late, "right", "left")
    return Trials.from_frame(
        trials.frame.assign(side=side, dose=late * (1.5 + trials.frame["age"]))
    )


def test_what_ends_at_its_time_has_not_converged_and_an_interrupt_leaves_no_fit(
    trials, monkeypatch
):
    endless = {"chains": 2, "draws": 100_000, "tune": 20, "cores": 2}
    with pytest.raises(ValueError, match="Give it more time"):
        hierarchical(RescorlaWagner, trials, seconds=0.0, **endless | {"tune": 100_000})
    fit = hierarchical(RescorlaWagner, trials, seconds=1.5, **endless)
    assert fit.verdict == "not converged"
    draws = fit.posterior.sizes["draw"]
    assert fit.reasons[-1].startswith(f"broken off at the limit of time: {draws} of 100000 draws")
    monkeypatch.setattr(sampling, "FIRST_WORD", 1.0)
    heard = []

    def interrupt(line):
        heard.append(line)
        if line.startswith("still"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hierarchical(RescorlaWagner, trials, tell=interrupt, **endless)
    assert heard[1:] == ["still sampling after 1 s"]


def test_correlations_have_the_law_they_are_said_to_have():
    """Given 3 parameters and the shape 2, each is 2 Beta - 1 with both exponents 2 + 1/2."""
    made = Deviations.plain(RescorlaWagner.parameters, 2, True)
    rng, n = np.random.default_rng(2), 40_000
    partial = np.stack([2.0 * rng.beta(e, e, n) - 1.0 for e in made.exponents], axis=1)
    signs = rng.choice([-1.0, 1.0], (n, 3))
    found = made.correlations(np.arctanh(partial), signs)
    for pair in found.T:
        # The critical value of Kolmogorov's test at 1 in 10,000 is 2.23 / sqrt(n).
        assert kstest((pair + 1) / 2, beta(2.5, 2.5).cdf).statistic < 2.23 / np.sqrt(n)
    root = made.roots(np.arctanh(partial[:5]))
    np.testing.assert_allclose(np.einsum("sij,sij->si", root, root), 1.0)


@pytest.mark.long
def test_correlated_parameters_are_found_to_be():
    rng = np.random.default_rng(5)
    standard = rng.normal(size=(40, 3))
    standard[:, 1] = 0.9 * standard[:, 0] + np.sqrt(1 - 0.9**2) * standard[:, 1]
    z = np.array([-0.3, 1.1, 0.2]) + np.array([0.9, 0.5, 0.5]) * standard
    theta = RescorlaWagner.parameters.constrain(z)
    trials = simulate(RescorlaWagner, theta, InstrumentalLearning(64), 3)
    fit = hierarchical(
        RescorlaWagner, trials, correlated=True, draws=300, tune=300, rounds=1, seed=1, cores=1
    )
    assert fit.pairs == ("alpha, beta", "alpha, kappa", "beta, kappa")
    row = fit.group.loc["cor(alpha, beta)"]
    assert abs(row["mean"] - np.corrcoef(z[:, 0], z[:, 1])[0, 1]) < 3.5 * row["sd"]
    assert row["low"] > 0
    assert fit.group.loc["cor(alpha, kappa)", "low"] < 0 < fit.group.loc["cor(beta, kappa)", "high"]
    # Leaving subjects out integrates over the covariance that the correlations make.
    roots = fit.covariance_roots
    spread = fit.posterior["group_sd"].stack(s=("chain", "draw")).transpose("s", ...).to_numpy()
    np.testing.assert_allclose((roots**2).sum(axis=2), spread**2, rtol=1e-9)
    found = fit.posterior["correlation"].stack(s=("chain", "draw")).sel(pair="alpha, beta")
    whole = (roots @ np.swapaxes(roots, 1, 2))[:, 0, 1]
    np.testing.assert_allclose(whole / (spread[:, 0] * spread[:, 1]), found, rtol=1e-6)
    assert np.isfinite(marginal_log_likelihood(fit, np.array([0, 300]))).all()
