"""Median of the posterior: held against a grid that knows priors and noise only."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from knownminds.agents import AGENTS

GRID = np.linspace(-1, 2, 60_001)  # steps of 5e-5
NOISE, WIDE = 0.09, 0.07


def of_grid(prior, x):
    weight = prior * norm.pdf(x, GRID, NOISE)
    mass = weight.cumsum()
    return GRID[np.searchsorted(mass, mass[-1] / 2)]


@pytest.mark.parametrize("x", [0.05, 0.12, 0.35, 0.52, 0.63, 0.88])
def test_the_answer_is_that_of_a_grid(x):
    trial = SimpleNamespace(value=x)
    own = {"middle": 0.45, "width": 0.5, "noise": NOISE, "sigma": 0.05}
    flat = ((GRID >= 0.2) & (GRID <= 0.7)).astype(float)
    mean = AGENTS[f"uniform_observer_median"].mind(own, 1).respond(trial).mean
    assert float(mean) == pytest.approx(of_grid(flat, x), abs=2e-4)
    own = {"middle": 0.45, "gap": 0.4, "sigma": 0.05, "spread": np.hypot(WIDE, NOISE),
           "w_prior": NOISE**2 / (NOISE**2 + WIDE**2)}  # fmt: skip
    for name, share in (("bimodal", 0.5), ("skewed", 0.25)):
        prior = share * norm.pdf(GRID, 0.65, WIDE) + (1 - share) * norm.pdf(GRID, 0.25, WIDE)
        mean = AGENTS[f"{name}_observer_median"].mind(own, 1).respond(trial).mean
        assert float(mean) == pytest.approx(of_grid(prior, x), abs=2e-4)
