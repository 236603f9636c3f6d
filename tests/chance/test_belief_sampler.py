import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.agents.chance.belief_sampler import (
    outcome_places,
)
from knownminds.agents.sequences import Sequences
from knownminds.environments import (
    Dice,
)

PLAIN, STATES = AGENTS["belief_sampler"], AGENTS["belief_sampler_stated"]


def drawn(model, n, seed=1):
    return model.parameters.draw(np.random.default_rng(seed), n)


# ---------------------------------------------------------------- what it reveals


# ---------------------------------------------------------------- kernels


def test_probabilities_as_weights_give_the_cross_entropy():
    environment, theta = Dice(2, 4), drawn(PLAIN, 2)
    cells = environment.cells(np.array([context.values for context in environment.contexts]))
    beliefs = [PLAIN.from_theta(theta[0]).outcome_probabilities(int(cell)) for cell in cells]
    n = environment.n_actions
    whose, columns = outcome_places(
        np.zeros(n * len(cells), dtype=np.int64),
        np.repeat(cells, n),
        np.tile(np.arange(n), len(cells)).astype(float),
        np.concatenate(beliefs),
    )
    parts = Sequences.group(whose, (), 1)
    packed = [parts.pack(column) for column in columns]

    def value(at):
        return PLAIN.log_likelihood(at[None], None, n, parts.row, parts.start, *packed)

    # Of all samplers the one whose beliefs these are is the nearest, and nothing is left to gain.
    entropy = sum((q[q > 0] * np.log(q[q > 0])).sum() for q in beliefs)
    best, gradient = value(theta[0])
    assert best[0] == pytest.approx(entropy, rel=1e-12)
    assert np.allclose(gradient, 0.0, atol=1e-10)
    assert value(theta[1])[0][0] < best[0] - 0.1


def test_sampled_outcomes_have_the_probabilities_the_sampler_states():
    theta, n = drawn(STATES, 1, seed=5), 300
    for environment in (Dice(1, 5), Dice(1, 5, form="stated")):
        frame = simulate(STATES, np.repeat(theta, n, axis=0), environment, 2).frame
        agent, fit, degrees = STATES.from_theta(theta[0]), 0.0, 0
        for _, asked in frame.groupby(["cell", "correct"]):
            p = agent.action_probabilities(asked.iloc[0])
            counts = np.bincount(asked["action"].astype(int), minlength=len(p))
            assert not counts[p == 0].any()
            p, counts = p[p > 0], counts[p > 0]
            expected = p * len(asked)
            # Centred by its mean, with its exact variance given the expected counts.
            fit += ((counts - expected) ** 2 / expected).sum() - (len(p) - 1)
            k = len(p)
            degrees += 2 * (k - 1) + ((1 / p).sum() - k * k - 2 * k + 2) / len(asked)
        assert abs(fit) < 4 * np.sqrt(degrees)


# ---------------------------------------------------------------- where it plays, what it recovers
