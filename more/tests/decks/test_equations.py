"""Learners of decks against their equations, written out anew."""

import math

import numpy as np
import pytest

from knownminds.agents import AGENTS

# What was taken, what it brought and what it cost.
SESSION = [
    (0, 100, 0), (0, 100, 150), (2, 50, 0), (2, 50, 50), (3, 50, 0), (1, 100, 0), (1, 100, 1250),
    (3, 50, 250), (2, 50, 25), (3, 50, 0), (3, 50, 0),
]  # fmt: skip


def prospect(x, alpha, loss_aversion):
    return x**alpha if x >= 0 else -loss_aversion * (-x) ** alpha


def expectancy_valence(weight, rate, consistency):
    v = [0.0] * 4
    for t, (a, gain, loss) in enumerate(SESSION, start=1):
        yield [(t / 10) ** consistency * x for x in v]
        u = ((1 - weight) * gain - weight * loss) / 100
        v[a] += rate * (u - v[a])


def prospect_valence_delta(alpha, loss_aversion, rate, beta):
    v = [0.0] * 4
    for a, gain, loss in SESSION:
        yield [beta * x for x in v]
        v[a] += rate * (prospect((gain - loss) / 100, alpha, loss_aversion) - v[a])


def prospect_valence_decay(alpha, loss_aversion, rate, beta):
    v = [0.0] * 4
    for a, gain, loss in SESSION:
        yield [beta * x for x in v]
        v = [rate * x for x in v]
        v[a] += prospect((gain - loss) / 100, alpha, loss_aversion)


def value_plus_perseverance(
    alpha, loss_aversion, rate, epsilon_gain, epsilon_loss, decay, weight, beta
):
    v, p = [0.0] * 4, [0.0] * 4
    for a, gain, loss in SESSION:
        yield [beta * (weight * x + (1 - weight) * y) for x, y in zip(v, p, strict=True)]
        net = (gain - loss) / 100
        v[a] += rate * (prospect(net, alpha, loss_aversion) - v[a])
        p = [decay * y for y in p]
        p[a] += epsilon_gain if net >= 0 else epsilon_loss


def outcome_representation(rate_gain, rate_loss, decay, beta_frequency, beta_perseverance):
    v, f, p = [0.0] * 4, [0.0] * 4, [0.0] * 4
    for a, gain, loss in SESSION:
        terms = zip(v, f, p, strict=True)
        yield [x + beta_frequency * y + beta_perseverance * z for x, y, z in terms]
        net = (gain - loss) / 100
        sign = (net > 0) - (net < 0)
        own, other = (rate_gain, rate_loss) if net >= 0 else (rate_loss, rate_gain)
        v[a] += own * (net - v[a])
        f = [y + (own * (sign - y) if j == a else other * (-sign / 3 - y)) for j, y in enumerate(f)]
        p[a] = 1.0
        p = [z / 3**decay for z in p]


def value_plus_exploration(sensitivity, delta, alpha, phi, beta):
    v, e = [0.0] * 4, [0.0] * 4
    for a, gain, loss in SESSION:
        yield [beta * (x + y) for x, y in zip(v, e, strict=True)]
        v = [delta * x for x in v]
        v[a] += (gain / 100) ** sensitivity - (loss / 100) ** sensitivity
        e = [0.0 if j == a else y + alpha * (phi - y) for j, y in enumerate(e)]


@pytest.mark.parametrize(
    "equations",
    [
        prospect_valence_delta,
        prospect_valence_decay,
        outcome_representation,
        value_plus_perseverance,
        expectancy_valence,
        value_plus_exploration,
    ],
)
def test_choices_follow_the_equations(equations):
    model = AGENTS[equations.__name__]
    for theta in model.parameters.draw(np.random.default_rng(0), 5):
        named = dict(zip(model.parameters.names, theta.tolist(), strict=True))
        agent = model(**named)
        for t, (utilities, card) in enumerate(zip(equations(**named), SESSION, strict=True)):
            action, gain, loss = card
            seen = {"trial": t, "first": 0}
            top = max(utilities)
            shares = [math.exp(u - top) for u in utilities]
            expected = [share / sum(shares) for share in shares]
            assert agent.action_probabilities(seen) == pytest.approx(expected, abs=1e-10)
            agent.learn({**seen, "gain": gain, "loss": loss}, action, gain - loss)
