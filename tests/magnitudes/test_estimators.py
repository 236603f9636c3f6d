"""Median of the posterior: held against a grid that knows priors and noise only."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm

from knownminds.agents import AGENTS

GRID = np.linspace(-1, 2, 60_001)  # steps of 5e-5
NOISE = 0.09


def of_grid(prior, x):
    weight = prior * norm.pdf(x, GRID, NOISE)
    mass = weight.cumsum()
    return GRID[np.searchsorted(mass, mass[-1] / 2)]


@pytest.mark.parametrize("x", [0.05, 0.12, 0.35, 0.52, 0.63, 0.88])
def test_the_answer_is_that_of_a_grid(x):
    trial = SimpleNamespace(value=x)
    own = {"middle": 0.45, "width": 0.5, "noise": NOISE, "sigma": 0.05}
    flat = ((GRID >= 0.2) & (GRID <= 0.7)).astype(float)
    mean = AGENTS["uniform_observer_median"].mind(own, 1).respond(trial).mean
    assert float(mean) == pytest.approx(of_grid(flat, x), abs=2e-4)
