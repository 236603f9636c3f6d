"""Learners against their equations, written out anew: probabilities, densities, likelihoods."""

from math import exp, log

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import beta as beta_law
from scipy.stats import norm

from knownminds.agents import (
    ActorCritic,
    ChangePointObserver,
    ChoiceKernel,
    DecayingRateLearner,
    ForgettingLearner,
    HorizonExplorer,
    LeakyBeta,
    OutcomeSensitivity,
    PearceHall,
    RescorlaWagnerChoiceKernel,
    RescorlaWagnerConfidence,
    RescorlaWagnerDual,
    ThompsonExplorer,
    TwoStepHybrid,
    UncertaintyExplorer,
    UpperConfidenceExplorer,
    simulate,
)
from knownminds.environments import Horizon, Trials, TwoStep
from knownminds.inference import ModelData

# Learners


HERE = {"context": 0}


COURSE = ((0, 1), (1, 0), (0, 0), (0, 1), (1, 1), (0, 1))


def lead(model, course=COURSE, **values):
    """Return the log odds of action 1 after a course of actions and rewards."""
    agent = model(**values)
    for action, reward in course:
        agent.learn(HERE, action, float(reward))
    p = agent.action_probabilities(HERE)
    return np.log(p[1] / p[0])


def rewards_of(action):
    return [reward for a, reward in COURSE if a == action]


def test_wins_and_losses_have_rates_of_their_own_and_choices_persist():
    value = [0.5, 0.5]
    for action, reward in COURSE:
        surprise = reward - value[action]
        value[action] += (0.3 if surprise > 0 else 0.1) * surprise
    result = lead(RescorlaWagnerDual, alpha_positive=0.3, alpha_negative=0.1, beta=2.0, kappa=0.4)
    assert result == pytest.approx(2.0 * (value[1] - value[0]) - 0.4)  # the last was 0


def test_what_is_not_chosen_is_forgotten():
    # One choice of 0, then n of 1 that pay nothing: V[0] = (1 - phi)**n V, V[1] = (1 - alpha)**n.
    course = [(0, 1)] + [(1, 0)] * 4
    first = (0.5 + 0.3 * 0.5, 0.5 * 0.9)
    result = lead(ForgettingLearner, course, alpha=0.3, phi=0.1, beta=2.0, kappa=0.0)
    assert result == pytest.approx(2.0 * (first[1] * 0.7**4 - first[0] * 0.9**4))


def test_associability_goes_from_one_towards_the_size_of_the_surprises():
    values = {"alpha": 0.5, "beta": 3.0, "kappa": 0.0}
    once = 0.5 + 0.5 * 0.5  # at associability 1
    assert lead(PearceHall, [(1, 1)], eta=0.4, **values) == pytest.approx(3.0 * (once - 0.5))
    associability = 0.6 + 0.4 * 0.5
    twice = once + 0.5 * associability * (1 - once)
    result = lead(PearceHall, [(1, 1), (1, 1)], eta=0.4, **values)
    assert result == pytest.approx(3.0 * (twice - 0.5))
    # What has stopped to surprise teaches little when it turns.
    before = [(1, 1)] * 60
    turned = [lead(PearceHall, [*before, (1, 0)], eta=eta, **values) for eta in (0.0, 0.5)]
    assert turned[0] < turned[1] - 0.5


def test_a_rate_of_one_over_n_makes_the_mean_of_all_rewards_and_one_half():
    means = [np.mean([0.5, *rewards_of(action)]) for action in (0, 1)]
    result = lead(DecayingRateLearner, omega=1.0, beta=4.0, kappa=0.0)
    assert result == pytest.approx(4.0 * (means[1] - means[0]))


def test_wins_and_their_absence_weigh_apart():
    felt = {1: 3.0, 0: -1.0}
    values = []
    for action in (0, 1):
        rewards = rewards_of(action)
        weights = [0.2 * 0.8 ** (len(rewards) - 1 - k) for k in range(len(rewards))]
        values.append(sum(w * felt[r] for w, r in zip(weights, rewards, strict=True)))
    result = lead(OutcomeSensitivity, alpha=0.2, rho_win=3.0, rho_loss=1.0, kappa=0.0)
    assert result == pytest.approx(values[1] - values[0])


def test_an_actor_prefers_what_brought_more_than_the_context_is_worth():
    worth, preference = 0.5, [0.0, 0.0]
    for action, reward in COURSE:
        preference[action] += 1.5 * (reward - worth)
        worth = 0.3 * reward + 0.7 * worth
    result = lead(ActorCritic, alpha_critic=0.3, alpha_actor=1.5, kappa=0.0)
    assert result == pytest.approx(preference[1] - preference[0])


def test_counts_that_do_not_fade_make_the_beta_laws_of_bayes():
    laws = [
        beta_law(1 + sum(rewards_of(a)), 1 + len(rewards_of(a)) - sum(rewards_of(a)))
        for a in (0, 1)
    ]
    result = lead(LeakyBeta, leak=0.0, beta=3.0, bonus=-2.0)
    expected = 3.0 * (laws[1].mean() - laws[0].mean()) - 2.0 * (laws[1].std() - laws[0].std())
    assert result == pytest.approx(expected)
    # What faded long ago is as if it had never been.
    assert lead(LeakyBeta, [(1, 1)] + [(0, 1), (0, 0)] * 200, leak=0.5, beta=0.0, bonus=1.0) > 0


@pytest.mark.parametrize("model", [ChoiceKernel, RescorlaWagnerChoiceKernel])
def test_a_choice_kernel_is_a_share_of_choices_that_weighs_late_ones_more(model):
    actions = [action for action, _ in COURSE]
    weights = 0.3 * 0.7 ** np.arange(len(actions))[::-1]
    share = [sum(w for w, a in zip(weights, actions, strict=True) if a == k) for k in (0, 1)]
    values = {"alpha_c": 0.3, "beta_c": 2.5}
    if model is RescorlaWagnerChoiceKernel:
        values |= {"alpha": 0.4, "beta": 0.0}
    assert lead(model, **values) == pytest.approx(2.5 * (share[1] - share[0]))


def test_contexts_are_learned_apart():
    agent = ForgettingLearner(alpha=0.5, phi=0.5, beta=5.0, kappa=1.0)
    agent.learn({"context": 1}, 1, 1.0)
    assert agent.action_probabilities(HERE).tolist() == [0.5, 0.5]


# Explorers of uncertainty


SEEN = {"game": 0, "horizon": 6, "mean_0": 58.0, "mean_1": 47.0, "count_0": 3, "count_1": 1}


def explorer_lead(agent, **seen):
    p = agent.action_probabilities({**SEEN, **seen})
    return np.log(p[1] / p[0])


def after(plays):
    """Follow a Kalman filter from play to play; return mean and variance."""
    mean, variance = 50.0, 16.0**2
    for points in plays:
        gain = variance / (variance + 8.0**2)
        mean, variance = mean + gain * (points - mean), (1 - gain) * variance
    return mean, variance


def test_beliefs_are_those_of_a_kalman_filter():
    (mean_0, variance_0), (mean_1, variance_1) = after([50, 60, 64]), after([47])
    value, total = (mean_1 - mean_0) / 10, np.sqrt(variance_0 + variance_1) / 10
    unsure = (np.sqrt(variance_1) - np.sqrt(variance_0)) / 10
    both = UncertaintyExplorer(w_value=0.7, w_directed=1.5, w_random=0.4)
    assert explorer_lead(both) == pytest.approx(0.7 * value + 1.5 * unsure + 0.4 * value / total)
    bonus = UpperConfidenceExplorer(w_value=0.7, w_directed=1.5)
    assert explorer_lead(bonus) == pytest.approx(0.7 * value + 1.5 * unsure)


def test_drawing_a_value_from_each_belief_is_thompson_exploration():
    agent = ThompsonExplorer(w_random=1.7)
    for mean_0 in (30.0, 45.0, 52.0, 60.0, 75.0):
        (value_0, variance_0), (value_1, variance_1) = after([mean_0] * 3), after([47])
        larger = norm.cdf((value_1 - value_0) / np.sqrt(variance_0 + variance_1))
        # The logistic with 1.7 is nowhere further than .0095 from the normal distribution.
        odds = agent.action_probabilities({**SEEN, "mean_0": mean_0})[1]
        assert odds == pytest.approx(larger, abs=0.0096)


# Explorers of horizons


HORIZON_SEEN = {"horizon": 6, "mean_0": 40.0, "mean_1": 52.0, "count_0": 1, "count_1": 3}


MIND = {"A_1": 0.2, "A_6": 0.9, "B": -0.3, "s_1": 0.5, "s_6": 0.8}


def share(mind=MIND, **seen):
    return HorizonExplorer(**mind).probabilities({**HORIZON_SEEN, **seen})[1]


def test_the_probability_is_the_published_one():
    # 52 - 40 points are 1.2 tens, and machine 1 is the one that is known better.
    assert share() == pytest.approx(1 / (1 + np.exp(-(1.2 - 0.9 - 0.3) / 0.8)))
    assert share(count_1=1) == pytest.approx(1 / (1 + np.exp(-(1.2 - 0.3) / 0.8)))
    assert share(horizon=1) == pytest.approx(1 / (1 + np.exp(-(1.2 - 0.2 - 0.3) / 0.5)))
    assert share(horizon=10) == share()


def test_first_free_choices_alone_can_be_fitted():
    theta = np.array([[0.2, 0.9, 0.1, 0.5, 0.8]] * 2)
    trials = simulate(HorizonExplorer, theta, Horizon(30), 2)
    first = Trials.from_frame(trials.frame[trials.frame["play"] == 0])
    agent = HorizonExplorer.from_theta(theta[0])
    rows = first.frame[first.frame["subject"] == "0"].to_dict("records")
    plain = sum(np.log(agent.probabilities(row)[row["action"]]) for row in rows)
    kernel = ModelData.read(HorizonExplorer, first).log_likelihood(theta)[0][0]
    assert kernel == pytest.approx(plain, rel=1e-12)


# Planners and cachers


HYBRID = TwoStepHybrid.parameters


SEVEN = {
    "alpha_1": 0.4,
    "alpha_2": 0.6,
    "lambda_": 0.7,
    "beta_1": 3.0,
    "beta_2": 2.5,
    "w": 0.3,
    "pi": 0.4,
}


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


# Learners with a confidence


SHOWN = {"trial": 0, "first": 0}


OBSERVER = {"h": 0.1, "beta": 3.0, "c_0": 0.2, "c_1": 0.6, "s": 0.5}


LEARNER = {"alpha": 0.4, "beta": 5.0, "kappa": 0.3, "c_0": 0.2, "c_1": 0.6, "s": 0.5}


def test_the_observer_follows_bayes_rule():
    agent, b = ChangePointObserver(**OBSERVER), 0.5
    rng = np.random.default_rng(1)
    for _ in range(40):
        p = expit(3.0 * (2 * b - 1))
        assert agent.action_probabilities(SHOWN)[1] == pytest.approx(p, abs=1e-12)
        for action in (0, 1):
            best = b if action else 1 - b
            mean = 0.2 + 0.6 * logit(best)
            y = rng.uniform(0.05, 0.95)
            exact = norm.logpdf(logit(y), mean, 0.5) - np.log(y * (1 - y))
            assert agent.log_density(SHOWN, y, action) == pytest.approx(exact, rel=1e-9)
        action, reward = int(rng.integers(2)), rng.normal(50, 12)
        agent.learn(SHOWN, action, reward)
        good, bad = norm.pdf(reward, 60, 8), norm.pdf(reward, 40, 8)
        one, other = (good, bad) if action else (bad, good)
        b = b * one / (b * one + (1 - b) * other)
        b = b * 0.9 + (1 - b) * 0.1


def test_choices_are_those_of_the_plain_learner_on_scaled_rewards():
    agent = RescorlaWagnerConfidence(**LEARNER)
    rng, value, last = np.random.default_rng(2), [0.5, 0.5], 0
    for _ in range(30):
        lead = 5.0 * (value[1] - value[0])
        p = agent.action_probabilities(SHOWN)
        assert p[1] == pytest.approx(expit(lead + 0.3 * last), abs=1e-12)
        exact = norm.logpdf(0.0, 0.2 - 0.6 * lead, 0.5) - np.log(0.25)
        assert agent.log_density(SHOWN, 0.5, 0) == pytest.approx(exact, rel=1e-9)
        action, reward = int(rng.integers(2)), float(round(rng.normal(50, 12)))
        agent.learn(SHOWN, action, reward)
        value[action] += 0.4 * ((reward - 20) / 60 - value[action])
        last = 2 * action - 1
