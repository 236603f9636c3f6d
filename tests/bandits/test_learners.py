"""What each learner of the literature does, by its equation worked out in another way."""

import numpy as np
import pytest
from scipy.stats import beta as beta_law

from knownminds.agents import (
    ActorCritic,
    ChoiceKernel,
    DecayingRateLearner,
    ForgettingLearner,
    LeakyBeta,
    OutcomeSensitivity,
    PearceHall,
    RescorlaWagnerChoiceKernel,
)

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


def test_what_is_not_chosen_is_forgotten():
    # One choice of 0, then n of 1 that pay nothing: V[0] = (1 - phi)**n V, V[1] = (1 - alpha)**n.
    course = [(0, 1)] + [(1, 0)] * 4
    first = (0.5 + 0.3 * 0.5, 0.5 * 0.9)
    found = lead(ForgettingLearner, course, alpha=0.3, phi=0.1, beta=2.0, kappa=0.0)
    assert found == pytest.approx(2.0 * (first[1] * 0.7**4 - first[0] * 0.9**4))


def test_associability_goes_from_one_towards_the_size_of_the_surprises():
    values = {"alpha": 0.5, "beta": 3.0, "kappa": 0.0}
    once = 0.5 + 0.5 * 0.5  # at associability 1
    assert lead(PearceHall, [(1, 1)], eta=0.4, **values) == pytest.approx(3.0 * (once - 0.5))
    associability = 0.6 + 0.4 * 0.5
    twice = once + 0.5 * associability * (1 - once)
    found = lead(PearceHall, [(1, 1), (1, 1)], eta=0.4, **values)
    assert found == pytest.approx(3.0 * (twice - 0.5))
    # What has stopped to surprise teaches little when it turns.
    before = [(1, 1)] * 60
    turned = [lead(PearceHall, [*before, (1, 0)], eta=eta, **values) for eta in (0.0, 0.5)]
    assert turned[0] < turned[1] - 0.5


def test_a_rate_of_one_over_n_makes_the_mean_of_all_rewards_and_one_half():
    means = [np.mean([0.5, *rewards_of(action)]) for action in (0, 1)]
    found = lead(DecayingRateLearner, omega=1.0, beta=4.0, kappa=0.0)
    assert found == pytest.approx(4.0 * (means[1] - means[0]))


def test_wins_and_their_absence_weigh_apart():
    felt = {1: 3.0, 0: -1.0}
    values = []
    for action in (0, 1):
        rewards = rewards_of(action)
        weights = [0.2 * 0.8 ** (len(rewards) - 1 - k) for k in range(len(rewards))]
        values.append(sum(w * felt[r] for w, r in zip(weights, rewards, strict=True)))
    found = lead(OutcomeSensitivity, alpha=0.2, rho_win=3.0, rho_loss=1.0, kappa=0.0)
    assert found == pytest.approx(values[1] - values[0])


def test_an_actor_prefers_what_brought_more_than_the_context_is_worth():
    worth, preference = 0.5, [0.0, 0.0]
    for action, reward in COURSE:
        preference[action] += 1.5 * (reward - worth)
        worth = 0.3 * reward + 0.7 * worth
    found = lead(ActorCritic, alpha_critic=0.3, alpha_actor=1.5, kappa=0.0)
    assert found == pytest.approx(preference[1] - preference[0])


def test_counts_that_do_not_fade_make_the_beta_laws_of_bayes():
    laws = [
        beta_law(1 + sum(rewards_of(a)), 1 + len(rewards_of(a)) - sum(rewards_of(a)))
        for a in (0, 1)
    ]
    found = lead(LeakyBeta, leak=0.0, beta=3.0, bonus=-2.0)
    expected = 3.0 * (laws[1].mean() - laws[0].mean()) - 2.0 * (laws[1].std() - laws[0].std())
    assert found == pytest.approx(expected)
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
