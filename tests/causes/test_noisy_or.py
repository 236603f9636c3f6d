"""Causal reasoners: what they predict, the density of their answers, and what can be recovered."""

import numpy as np
import pytest

from knownminds.agents import NoisyOr, NoisyOrFive, NoisyOrThree, simulate
from knownminds.environments import Collider
from knownminds.inference import maximum_a_posteriori


@pytest.mark.long
def test_eleven_answers_support_three_parameters_and_no_more():
    """Least correlation of estimate and truth among the causal parameters, 400 subjects."""
    least, n = {}, 400
    eleven = Collider(directions="one", domains=("weather",), senses=("ppp",))
    for model in (NoisyOrThree, NoisyOr, NoisyOrFive):
        theta = model.parameters.draw(np.random.default_rng(11), n)
        estimate = maximum_a_posteriori(model, simulate(model, theta, eleven, 12)).estimate
        pairs = zip(theta.T[:-1], estimate.T[:-1], strict=True)
        least[model.name] = np.arctanh(min(np.corrcoef(a, b)[0, 1] for a, b in pairs))
    # Fisher's z has the standard error 1 / sqrt(n - 3) = .05; recoverable means r = .8.
    assert least["noisy_or_three"] > np.arctanh(0.8) + 2 * 0.05
    assert least["noisy_or"] < np.arctanh(0.8) - 2 * 0.05
    assert least["noisy_or_five"] < np.arctanh(0.5) - 2 * 0.05  # the prior of the other cause
