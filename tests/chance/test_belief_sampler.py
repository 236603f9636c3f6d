import numpy as np

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Dice

STATES = AGENTS["belief_sampler_stated"]


def test_sampled_outcomes_have_the_probabilities_the_sampler_states():
    theta, n = STATES.parameters.draw(np.random.default_rng(5), 1), 300
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
