"""Many small problems minimised in step, against functions whose minima are known."""

import numpy as np
import pytest

from knownminds.inference.fits.quasi_newton import minimise


def rosenbrock(z, rows):
    x, y = z.T
    value = (1 - x) ** 2 + 100 * (y - x**2) ** 2
    slope = np.column_stack([-2 * (1 - x) - 400 * x * (y - x**2), 200 * (y - x**2)])
    return value, slope


def settings(k, reach=10.0):
    return {"scale": np.ones(k), "centre": np.zeros(k), "reach": np.full(k, reach)}


def test_finds_the_minimum_of_rosenbrock_from_everywhere():
    starts = np.random.default_rng(0).uniform(-2, 2, (200, 2))
    ends = minimise(rosenbrock, starts, **settings(2))
    assert np.allclose(ends.z, 1.0, atol=1e-3)
    assert ends.converged.all()


def test_each_problem_ends_at_its_own_minimum():
    targets = np.random.default_rng(1).normal(0, 3, (50, 3))

    def objective(z, rows):
        away = z - targets[rows]
        return (away**4 + away**2).sum(axis=1), 4 * away**3 + 2 * away

    ends = minimise(objective, np.zeros((50, 3)), **settings(3, reach=20.0))
    assert np.allclose(ends.z, targets, atol=1e-4)


def test_a_runaway_stops_at_the_end_of_its_reach():
    def objective(z, rows):
        return np.exp(-z[:, 0]) + z[:, 1] ** 2, np.column_stack([-np.exp(-z[:, 0]), 2 * z[:, 1]])

    ends = minimise(objective, np.ones((4, 2)), **settings(2), tolerance=1e-30)
    assert np.allclose(ends.z, [10.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_function_without_a_value_does_not_converge(value):
    def objective(z, rows):
        return np.full(len(z), value), np.zeros_like(z)

    assert not minimise(objective, np.zeros((3, 2)), **settings(2)).converged.any()
