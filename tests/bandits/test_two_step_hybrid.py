from math import exp, log
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from knownminds.agents import (
    TwoStepHybrid,
    TwoStepModelBased,
    TwoStepModelFree,
    TwoStepReduced,
    simulate,
)
from knownminds.environments import Trials, TwoStep
from knownminds.inference import ModelData, maximum_a_posteriori

HYBRID = TwoStepHybrid.parameters
FAMILY = (TwoStepHybrid, TwoStepModelFree, TwoStepModelBased, TwoStepReduced)
SEVEN = {
    "alpha_1": 0.4,
    "alpha_2": 0.6,
    "lambda_": 0.7,
    "beta_1": 3.0,
    "beta_2": 2.5,
    "w": 0.3,
    "pi": 0.4,
}


def drawn(model, n, seed=1):
    return model.parameters.draw(np.random.default_rng(seed), n)


def session(*days):
    """Make one subject's trials of (shuttle, planet, alien, gems); None for what is missing."""
    rows = []
    for day, (flight, planet, deal, gems) in enumerate(days):
        rows.append((2 * day, 0, -1, flight, np.nan))
        if flight is not None:
            rows.append((2 * day + 1, 1, planet, deal, np.nan if deal is None else gems))
    frame = pd.DataFrame(rows, columns=["trial", "stage", "state", "action", "reward"])
    frame["action"] = frame["action"].astype("Int64")
    frame["subject"], frame["transition"] = "0", 0.7
    frame["outcome"] = np.where(frame["action"].isna(), "malformed", "ok")
    return Trials.from_frame(frame, environment=TwoStep(len(days)))


def value(trials, **values):
    theta = HYBRID.vector(SEVEN | values, "test")
    return ModelData.read(TwoStepHybrid, trials, 2).log_likelihood(theta[None])[0][0]


def log_sigmoid(x):
    return -log(1 + exp(-x))


def test_the_first_day_is_an_even_bet_and_the_second_follows_by_hand():
    one = value(session((1, 1, 0, 1.0), (1, 0, 1, 0.0)))
    # Day 1: d_1 = .5 - .5, d_2 = 1 - .5. Cached: .5 + .4 x .7 x .5 = .64; alien: .5 + .6 x .5 = .8.
    # Plan: (.7 - .3) (.8 - .5) = .12.
    x = 3.0 * (0.3 * 0.12 + 0.7 * 0.14) + 0.4
    # Planet 0, alien 1 against 0: both still .5.
    assert one == pytest.approx(3 * log(0.5) + log_sigmoid(x), abs=1e-12)
    # Rare transition: the plan turns away from the shuttle, the cached value does not.
    two = value(session((1, 0, 0, 1.0), (1, 0, 0, 0.0)))
    x = 3.0 * (-0.3 * 0.12 + 0.7 * 0.14) + 0.4
    assert two == pytest.approx(2 * log(0.5) + log_sigmoid(x) + log_sigmoid(2.5 * 0.3), abs=1e-12)


def test_what_is_learned_on_the_second_day_starts_from_the_first():
    trials = session((1, 1, 0, 1.0), (1, 1, 0, 0.0), (0, 0, 0, 0.0))
    cached, alien = 0.64, 0.8
    x = 3.0 * (0.3 * 0.12 + 0.7 * 0.14) + 0.4
    expected = 2 * log(0.5) + log_sigmoid(x) + log_sigmoid(2.5 * 0.3)
    cached += 0.4 * ((alien - cached) + 0.7 * (0.0 - alien))
    alien += 0.6 * (0.0 - alien)
    # The best alien of planet 1 is now the one that was never met.
    assert alien < 0.5
    x = 3.0 * (0.3 * 0.0 + 0.7 * (cached - 0.5)) + 0.4
    expected += log_sigmoid(-x) + log(0.5)
    assert value(trials) == pytest.approx(expected, abs=1e-12)


def test_a_day_at_home_changes_nothing_and_a_lost_deal_is_a_flight_that_taught_nothing():
    before, after = (1, 1, 0, 1.0), (1, 0, 1, 0.0)
    assert value(session(before, (None, -1, None, 0.0), after)) == value(session(before, after))
    # Only the perseveration tells of the flight to shuttle 0; its deal gave no answer.
    lost = value(session(before, (0, 0, None, 0.0), after), pi=0.0)
    x = 3.0 * (0.3 * 0.12 + 0.7 * 0.14)
    assert lost == pytest.approx(3 * log(0.5) + log_sigmoid(-x) + log_sigmoid(x), abs=1e-12)
    turned = value(session(before, (0, 0, None, 0.0), after))
    assert turned == pytest.approx(
        3 * log(0.5) + log_sigmoid(-x - 0.4) + log_sigmoid(x - 0.4), abs=1e-12
    )


def test_sessions_that_lost_a_deal_are_played_beside_whole_ones():
    """Lanes then stand at different stages of their days."""
    theta = drawn(TwoStepHybrid, 3)
    frame = simulate(TwoStepHybrid, theta, TwoStep(10), 2).to_frame()
    holes = frame[~((frame["subject"] == "1") & frame["trial"].isin([5, 9]))]
    data = ModelData.read(TwoStepHybrid, Trials.from_frame(holes))
    total, gradient = data.log_likelihood(theta)
    for i in range(3):
        alone = holes[holes["subject"] == str(i)]
        one = ModelData.read(TwoStepHybrid, Trials.from_frame(alone))
        for together, apart in zip(
            (total, gradient), one.log_likelihood(theta[i : i + 1]), strict=True
        ):
            assert np.allclose(together[i], apart[0], rtol=1e-13, atol=1e-13)
        agent, plain = TwoStepHybrid.from_theta(theta[i]), 0.0
        for row in alone.to_dict("records"):
            plain += log(agent.probabilities(row)[row["action"]])
            agent.learn(row, row["action"], row["reward"])
        assert total[i] == pytest.approx(plain, rel=1e-12)


@pytest.mark.parametrize("lapse", [None, 0.1])
def test_members_are_the_hybrid_with_some_parameters_held(lapse):
    n = 40
    trials = simulate(TwoStepHybrid, drawn(TwoStepHybrid, n), TwoStep(60), 3)
    rates = None if lapse is None else np.full(n, lapse)
    whole = ModelData.read(TwoStepHybrid, trials)
    held = {
        TwoStepModelFree: lambda v: v | {"w": 0.0},
        TwoStepModelBased: lambda v: v | {"alpha_1": 0.3, "lambda_": 0.6, "w": 1.0},
        TwoStepReduced: lambda v: {
            "alpha_1": v["alpha"],
            "alpha_2": v["alpha"],
            "lambda_": 1.0,
            "beta_1": v["beta"],
            "beta_2": v["beta"],
            "w": v["w"],
            "pi": v["pi"],
        },
    }
    parts = {
        TwoStepReduced: {"alpha": ("alpha_1", "alpha_2"), "beta": ("beta_1", "beta_2")},
    }
    for model, fill in held.items():
        theta = drawn(model, n, seed=4)
        names = model.parameters.names
        filled = fill(dict(zip(names, theta.T, strict=True)))
        wide = np.column_stack([np.broadcast_to(filled[name], n) for name in HYBRID.names])
        total, gradient = ModelData.read(model, trials).log_likelihood(theta, rates)
        expected, slopes = whole.log_likelihood(wide, rates)
        assert np.allclose(total, expected, rtol=1e-13)
        for k, name in enumerate(names):
            of = parts.get(model, {}).get(name, (name,))
            assert np.allclose(gradient[:, k], sum(slopes[:, HYBRID.index(o)] for o in of))
        if lapse is not None:
            assert np.allclose(gradient[:, -1], slopes[:, -1], rtol=1e-12)
        ours = simulate(model, theta, TwoStep(60), 5, lapse=lapse)
        assert ours.frame.equals(simulate(TwoStepHybrid, wide, TwoStep(60), 5, lapse=lapse).frame)


def test_what_a_planner_has_no_use_for_does_not_enter():
    n = 20
    trials = simulate(TwoStepHybrid, drawn(TwoStepHybrid, n), TwoStep(60), 3)
    data, theta = ModelData.read(TwoStepHybrid, trials), drawn(TwoStepHybrid, n)
    theta[:, HYBRID.index("w")] = 1.0
    total, gradient = data.log_likelihood(theta)
    theta[:, [HYBRID.index("alpha_1"), HYBRID.index("lambda_")]] = 0.9
    assert np.array_equal(total, data.log_likelihood(theta)[0])
    assert np.all(gradient[:, [HYBRID.index("alpha_1"), HYBRID.index("lambda_")]] == 0.0)


def test_the_plan_goes_by_the_transition_of_the_experiment():
    theta = drawn(TwoStepModelBased, 200)
    for transition, told in ((0.5, 0.0), (0.9, 0.8)):
        trials = simulate(TwoStepModelBased, theta, TwoStep(20, transition=transition), 1)
        row = trials.frame.iloc[4].to_dict()
        values = dict(zip(TwoStepModelBased.parameters.names, theta[0].tolist(), strict=True))
        mind = TwoStepModelBased.mind(values, 2)
        mind.aliens = np.array([[0.5, 0.2], [0.1, 0.9]])
        mind.last[:] = 0.0
        utilities = mind.respond(SimpleNamespace(**row))
        x = theta[0, 1] * told * (0.9 - 0.5)
        assert utilities[1] - utilities[0] == pytest.approx(x, abs=1e-12)
    # Where both planets are as likely, there is nothing to plan for.
    slopes = ModelData.read(
        TwoStepModelBased, simulate(TwoStepModelBased, theta, TwoStep(20, transition=0.5), 1)
    ).log_likelihood(theta)[1]
    assert np.all(slopes[:, TwoStepModelBased.parameters.index("beta_1")] == 0.0)


@pytest.mark.parametrize("model", FAMILY)
def test_extreme_parameters_give_finite_values(model):
    n = 64
    rng = np.random.default_rng(0)
    trials = simulate(TwoStepHybrid, drawn(TwoStepHybrid, n), TwoStep(300), 3)
    z = 12.0 * rng.choice([-1.0, 1.0], (n, len(model.parameters)))
    data = ModelData.read(model, trials)
    for rates in (None, np.full(n, 1e-6)):
        total, gradient = data.log_likelihood(model.parameters.constrain(z), rates)
        assert np.isfinite(total).all()
        assert np.isfinite(gradient).all()
        assert (total < 0).all()


def stay_shares(theta, environment, seed):
    """Share of repeated first choices by reward of the day before [2] and common transition [2]."""
    frame = simulate(TwoStepHybrid, theta, environment, seed).frame
    first, second = (frame[frame["stage"] == stage] for stage in (0, 1))
    action = first["action"].to_numpy(dtype=int).reshape(len(theta), -1)
    common = second["state"].to_numpy().reshape(len(theta), -1) == action
    reward = second["reward"].to_numpy().reshape(len(theta), -1) > 0.5
    stay, r, c = action[:, 1:] == action[:, :-1], reward[:, :-1], common[:, :-1]
    return np.array([[stay[(r == i) & (c == j)].mean() for j in (0, 1)] for i in (0, 1)])


def test_planners_and_cachers_show_the_pattern_of_the_task():
    n = 4000
    fixed = {"alpha_1": 0.6, "alpha_2": 0.6, "lambda_": 1.0, "beta_1": 5.0, "beta_2": 4.0, "pi": 0}
    shares = {}
    for w in (0.0, 1.0):
        theta = np.tile(HYBRID.vector(fixed | {"w": w}, "test"), (n, 1))
        shares[w] = stay_shares(theta, TwoStep(20), 1)
    # 76,000 days, in the rarest cell about 11,000: a standard error below .005 per share.
    cacher, planner = shares[0.0], shares[1.0]
    assert cacher[1].min() > cacher[0].max() + 0.2  # reward alone decides
    assert planner[1, 1] > planner[0, 1] + 0.05  # after common transitions reward attracts,
    assert planner[1, 0] < planner[0, 0] - 0.05  # after rare ones it repels


@pytest.mark.parametrize("model", FAMILY)
def test_parameters_are_recovered_and_shuffled_days_do_not_recover(model):
    n = 200
    theta = drawn(model, n)
    trials = simulate(model, theta, TwoStep(300), 2)
    # What is recovered from days in another order: how lopsided someone is, no learning.
    frame = trials.to_frame()
    rng = np.random.default_rng(0)
    order = np.concatenate([600 * i + 2 * rng.permutation(300) for i in range(n)])
    order = np.column_stack([order, order + 1]).ravel()
    mixed = frame.iloc[order].reset_index(drop=True)
    mixed["trial"] = frame["trial"]
    fits = [maximum_a_posteriori(model, t) for t in (trials, Trials.from_frame(mixed))]
    truth = model.parameters.unconstrain(theta)
    for k, name in enumerate(model.parameters.names):
        recovered, lost = (np.corrcoef(truth[:, k], fit.z[:, k])[0, 1] for fit in fits)
        # Fisher's z of either has the standard error 1 / sqrt(n - 3); 3.5 of the difference's.
        assert np.arctanh(recovered) - np.arctanh(lost) > 3.5 * np.sqrt(2 / (n - 3)), name
        error = fits[0].z[:, k] - truth[:, k]
        assert abs(error.mean()) < 4 * error.std() / np.sqrt(n) + 0.15, name
