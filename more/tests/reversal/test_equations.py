"""Learners of reversals against their equations, written out anew."""

import numpy as np
import pytest

from knownminds.agents import AGENTS

REVERSAL_SESSION = [(0, 1.0), (0, -1.0), (1, 1.0), (1, -1.0), (0, 1.0), (1, 1.0), (1, -1.0)]


def log_odds(name, theta, session):
    """Return the agent's log odds of action 1 before each trial."""
    agent, odds = AGENTS[name](**theta), []
    for t, (action, reward) in enumerate(session):
        p = agent.action_probabilities({"trial": t, "first": 0})
        odds.append(np.log(p[1] / p[0]))
        agent.learn({"trial": t, "first": 0}, action, reward)
    return odds


def reward_punishment(alpha_reward, alpha_punishment, beta):
    v = [0.0, 0.0]
    for a, r in REVERSAL_SESSION:
        yield beta * (v[1] - v[0])
        v[a] += (alpha_reward if r == 1 else alpha_punishment) * (r - v[a])


def fictitious_update_dual(eta_positive, eta_negative, bias, beta):
    d = 0.0  # the value of action 1; that of action 0 is always its opposite
    for a, r in REVERSAL_SESSION:
        yield beta * (2 * d - bias)
        eta = eta_positive if r >= (d if a else -d) else eta_negative
        d += eta * ((r if a else -r) - d)


def fictitious_update(eta, bias, beta):
    return fictitious_update_dual(eta, eta, bias, beta)


def experience_weighted_attraction(phi, rho, beta):
    v, n = [0.0, 0.0], [0.0, 0.0]
    for a, r in REVERSAL_SESSION:
        yield beta * (v[1] - v[0])
        v[a], n[a] = (phi * n[a] * v[a] + r) / (rho * n[a] + 1), rho * n[a] + 1


def hidden_state_reversal(hazard, certainty, beta):
    odds = 1.0  # of action 1 being the better one
    for a, r in REVERSAL_SESSION:
        p = odds / (1 + odds)
        yield beta * (2 * p - 1)
        g = (1 + certainty) / 2
        odds *= (g / (1 - g)) ** (r if a else -r)
        p = odds / (1 + odds)
        p = p * (1 - hazard) + (1 - p) * hazard
        odds = p / (1 - p)


@pytest.mark.parametrize(
    "equations",
    [
        reward_punishment,
        fictitious_update,
        fictitious_update_dual,
        experience_weighted_attraction,
        hidden_state_reversal,
    ],
)
def test_reversal_choices_follow_the_equations(equations):
    parameters = AGENTS[equations.__name__].parameters
    for theta in parameters.draw(np.random.default_rng(0), 5):
        named = dict(zip(parameters.names, theta.tolist(), strict=True))
        expected = list(equations(**named))
        assert log_odds(equations.__name__, named, REVERSAL_SESSION) == pytest.approx(
            expected, abs=1e-9
        )


def test_who_expects_reversals_turns_round_sooner():
    wins = [(0, 1.0)] * 20 + [(0, -1.0)] * 10
    theta = {"certainty": 0.6, "beta": 1.0}
    rare, often = (
        log_odds("hidden_state_reversal", {**theta, "hazard": h}, wins) for h in (0.01, 0.2)
    )
    turned = [next(t for t, x in enumerate(odds) if t > 20 and x > 0) for odds in (rare, often)]
    assert turned[0] > turned[1]
