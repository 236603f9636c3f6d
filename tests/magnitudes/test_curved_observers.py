"""Observers that are told from a line: their answers by quadrature of the posterior."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from knownminds.agents import AGENTS

GRID = np.linspace(-3, 4, 70_001)


def expected(name, values, x):
    """Return the mean answer, as the definition has it."""
    mind = AGENTS[name].mind(values, 1)
    return mind.respond(SimpleNamespace(value=x)).mean


def posterior_mean(prior, noise, x):
    weight = prior * norm.pdf(x, GRID, noise)
    return (weight * GRID).sum() / weight.sum()


@pytest.mark.parametrize("x", [0.12, 0.35, 0.5, 0.88])
def test_the_answer_is_the_mean_of_the_posterior_by_quadrature(x):
    noise = 0.09
    flat = ((GRID >= 0.25) & (GRID <= 0.75)).astype(float)
    own = {"middle": 0.5, "width": 0.5, "noise": noise, "sigma": 0.05}
    assert expected("uniform_observer", own, x) == pytest.approx(
        posterior_mean(flat, noise, x), abs=2e-4
    )
    wide = 0.12  # standard deviation of either mode
    own = {"middle": 0.45, "gap": 0.4, "sigma": 0.05, "spread": np.hypot(wide, noise),
           "w_prior": noise**2 / (noise**2 + wide**2)}  # fmt: skip
    for name, share in (("bimodal_observer", 0.5), ("skewed_observer", 0.25)):
        prior = share * norm.pdf(GRID, 0.65, wide) + (1 - share) * norm.pdf(GRID, 0.25, wide)
        assert expected(name, own, x) == pytest.approx(posterior_mean(prior, noise, x), abs=2e-4)
    own = {"rho": 0.3 / 0.2, "mu": 0.4, "weber": 0.1}
    mean = posterior_mean(norm.pdf(GRID, 0.4, 0.2), 0.3 * x, x)
    assert expected("weber_observer", own, x) == pytest.approx(mean, abs=2e-4)


def test_traces_of_two_rates_draw_the_answers():
    own = {"w_fast": 0.3, "weight_slow": 0.5, "rate_fast": 0.8, "rate_slow": 0.1, "sigma": 0.05}
    mind = AGENTS["two_scale_observer"].mind(own, 1)
    fast = slow = 0.5
    for x in (0.2, 0.9, 0.4):
        trial = SimpleNamespace(value=x)
        mean = 0.35 * x + 0.3 * fast + 0.35 * slow
        assert float(mind.respond(trial).mean) == pytest.approx(mean)
        mind.update(trial)
        fast, slow = fast + 0.8 * (x - fast), slow + 0.1 * (x - slow)
