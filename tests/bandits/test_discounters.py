"""What is special to discounters: their curves, mirror images, and what a questionnaire tells."""

import itertools

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import (
    ExponentialDiscounter,
    HyperbolicDiscounter,
    QuasiHyperbolicDiscounter,
    simulate,
)
from knownminds.environments import InstrumentalLearning, TemporalDiscounting, Trials
from knownminds.environments.bandits import temporal_discounting as theirs
from knownminds.inference import ModelData, maximum_a_posteriori
from knownminds.validation.recovery.parameter_recovery import shuffled

MODELS = (ExponentialDiscounter, HyperbolicDiscounter, QuasiHyperbolicDiscounter)
every = pytest.mark.parametrize("model", MODELS)


def choice(sooner, soon, later, late):
    return {
        "sooner_amount": sooner, "sooner_delay": soon, "later_amount": later, "later_delay": late,
    }  # fmt: skip


def log_odds(agent, *seen):
    sooner, later = agent.action_probabilities(choice(*seen))
    return np.log(later / sooner)


def test_the_curves_are_those_of_the_textbook():
    tau = 0.2
    exponential = ExponentialDiscounter(k=0.03, tau=tau, eta=1.0)
    hyperbolic = HyperbolicDiscounter(k=0.03, tau=tau, eta=1.0)
    quasi = QuasiHyperbolicDiscounter(beta=0.8, delta=0.97, tau=tau, eta=1.0)
    for agent, curve in (
        (exponential, lambda d: np.exp(-0.03 * d)),
        (hyperbolic, lambda d: 1 / (1 + 0.03 * d)),
        (quasi, lambda d: 0.8 * 0.97**d if d else 1.0),
    ):
        for soon, late in ((0, 1), (0, 24), (6, 30)):
            expected = (curve(late) - 0.4 * curve(soon)) / tau
            assert log_odds(agent, 200, soon, 500, late) == pytest.approx(expected, abs=1e-9)


def test_quasi_hyperbolic_discounting_without_a_present_bias_is_exponential():
    theta = ExponentialDiscounter.parameters.draw(np.random.default_rng(0), 8)
    wide = np.column_stack([np.ones(8), np.exp(-theta[:, 0]), theta[:, 1:]])
    for design in theirs.PLANS:
        environment = TemporalDiscounting(design)
        one = simulate(ExponentialDiscounter, theta, environment, 1)
        two = simulate(QuasiHyperbolicDiscounter, wide, environment, 1)
        assert one.frame.equals(two.frame)
        left = ModelData.read(ExponentialDiscounter, one).log_likelihood(theta)
        right = ModelData.read(QuasiHyperbolicDiscounter, two).log_likelihood(wide)
        assert np.allclose(left[0], right[0])
        # d / d delta = -d / dk / delta
        assert np.allclose(left[1][:, 0], -right[1][:, 1] * wide[:, 1])
        assert np.allclose(left[1][:, 1:], right[1][:, 2:])


@every
def test_losses_are_mirrored_with_their_weight(model):
    theta = model.parameters.draw(np.random.default_rng(1), 5)
    for row in theta:
        agent = model.from_theta(row)
        gain, loss = (log_odds(agent, s * 450, 0, s * 500, 6) for s in (1, -1))
        assert loss == pytest.approx(-row[-1] * gain, rel=1e-6)


@every
def test_only_the_ratio_of_the_sums_matters(model):
    agent = model.from_theta(model.parameters.draw(np.random.default_rng(2), 1)[0])
    assert log_odds(agent, 30, 0, 60, 6) == pytest.approx(log_odds(agent, 3000, 0, 6000, 6))


def test_only_a_curve_that_flattens_reverses_its_preference_when_all_is_put_off():
    near, far = (100, 0, 130, 6), (100, 60, 130, 66)
    hyperbolic = HyperbolicDiscounter(k=0.1, tau=0.05, eta=1.0)
    assert log_odds(hyperbolic, *near) < 0 < log_odds(hyperbolic, *far)
    quasi = QuasiHyperbolicDiscounter(beta=0.7, delta=0.99, tau=0.05, eta=1.0)
    assert log_odds(quasi, *near) < 0 < log_odds(quasi, *far)
    exponential = ExponentialDiscounter(k=0.1, tau=0.05, eta=1.0)
    assert log_odds(exponential, *near) < 0
    assert log_odds(exponential, *far) < 0


def test_a_patient_mind_waits_for_gains_and_pays_at_once():
    theta = np.array([[1e-6, 1e-3, 1.0], [5.0, 1e-3, 1.0]])
    frame = simulate(HyperbolicDiscounter, theta, TemporalDiscounting(), 0).frame
    for subject, waits in (("0", 1), ("1", 0)):
        mine = frame[frame["subject"] == subject]
        baselines = mine[mine["item"] < 3]
        gains = baselines["later_amount"] > 0
        assert (baselines.loc[gains, "action"] == waits).all()
        assert (baselines.loc[~gains, "action"] == 1 - waits).all()


@every
def test_trials_fall_away_in_a_kernel_as_in_the_experiment(model):
    # A kernel's action of a trial that falls away is -1.
    theta = model.parameters.draw(np.random.default_rng(3), 300)
    frame = simulate(model, theta, TemporalDiscounting(), 0).frame
    lengths = frame.groupby("subject").size()
    assert lengths.min() >= 10
    assert lengths.max() <= 13


@every
@pytest.mark.parametrize("lapse", [None, 0.15])
def test_probabilities_of_all_courses_of_a_questionnaire_sum_to_one(model, lapse):
    environment = TemporalDiscounting()
    environment.reset(seed=0)
    design = environment.design
    paths = np.array(list(itertools.product((0, 1), repeat=13)))
    table = {name: np.repeat(c[None], len(paths), axis=0) for name, c in design.table.items()}
    brought = environment.follow(type(design)(table), paths)
    present = brought["present"]
    unique = np.unique(np.where(present, paths, -1), axis=0, return_index=True)[1]
    rows = {name: table[name] for name in environment.fields.stimulus if name in table}
    rows |= {"later_amount": brought["later_amount"], "action": paths}
    rows |= {"trial": np.broadcast_to(np.arange(13), paths.shape)}
    rows |= {"subject": np.broadcast_to(np.arange(len(paths))[:, None], paths.shape)}
    held = present[unique]
    trials = Trials.from_frame(pd.DataFrame({n: c[unique][held] for n, c in rows.items()}))
    assert trials.n_subjects == 6**3 * 2**4
    data = ModelData.read(model, trials)
    theta = np.repeat(model.parameters.draw(np.random.default_rng(4), 1), len(unique), axis=0)
    rates = None if lapse is None else np.full(len(unique), lapse)
    assert np.exp(data.log_likelihood(theta, rates)[0]).sum() == pytest.approx(1.0, abs=1e-10)


@every
def test_extreme_parameters_stay_finite(model):
    z = np.random.default_rng(0).uniform(-12, 12, (300, len(model.parameters)))
    theta = model.parameters.constrain(z)
    trials = simulate(model, theta, TemporalDiscounting("grid"), 0, lapse=0.2)
    data = ModelData.read(model, trials)
    for rates in (None, np.full(300, 1e-5)):
        total, gradient = data.log_likelihood(theta[::-1], rates)
        assert np.isfinite(total).all()
        assert np.isfinite(gradient).all()


@every
def test_parameters_are_recovered_from_the_grid_and_not_from_shuffled_choices(model):
    n = 300
    theta = model.parameters.draw(np.random.default_rng(1), n)
    trials = simulate(model, theta, TemporalDiscounting("grid"), 2)
    truth = model.parameters.unconstrain(theta)
    fit, lost = (maximum_a_posteriori(model, t) for t in (trials, shuffled(trials)))
    # Recovery studies find r of .9 (.8 for the weight of losses) and more; Fisher's z has the
    # standard error 1 / sqrt(n - 3) = .058.
    for k, name in enumerate(model.parameters.names):
        least = np.arctanh(0.8 if name == "eta" else 0.88) - 3.5 * 0.058
        found = np.arctanh(np.corrcoef(truth[:, k], fit.z[:, k])[0, 1])
        assert found > least, name
        shuffled_r = np.corrcoef(truth[:, k], lost.z[:, k])[0, 1]
        assert found - np.arctanh(shuffled_r) > 3.5 * np.sqrt(2) * 0.058, name


def test_a_questionnaire_does_not_tell_the_parameters():
    n = 300
    theta = HyperbolicDiscounter.parameters.draw(np.random.default_rng(1), n)
    fit = maximum_a_posteriori(
        HyperbolicDiscounter, simulate(HyperbolicDiscounter, theta, TemporalDiscounting(), 2)
    )
    truth = HyperbolicDiscounter.parameters.unconstrain(theta)
    for k in (1, 2):
        assert np.corrcoef(truth[:, k], fit.z[:, k])[0, 1] < 0.7


@every
def test_there_must_be_delays(model):
    with pytest.raises(ValueError, match="Choose another model"):
        model.check_plays(InstrumentalLearning())
