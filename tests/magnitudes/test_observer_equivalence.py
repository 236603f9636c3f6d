"""Which observers are the same model: equal likelihoods where claimed, other ones elsewhere."""

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import MarkerLocation, MazeDistance
from knownminds.inference import ModelData

N = 24
FAST = 1e9  # q/r at which the Kalman observer follows each stimulus entirely


def linear_to_static(theta):
    """One prior mean in all windows: w_prior = 1 - w, mu_prior = b / (1 - w)."""
    w, b, sigma = theta.T
    rows = np.column_stack([1 - w, b / (1 - w), sigma])
    return np.where(((w > 0) & (w < 1))[:, None], rows, np.nan)


def gain_to_plain(theta, offset=0.0):
    """A gain, and an offset, count into w_prior and the means where gain (1 - w_prior) < 1."""
    w, mu, gain, sigma = theta[:, 0], theta[:, 1:4], theta[:, 4], theta[:, -1]
    own = 1 - gain * (1 - w)
    means = ((gain * w)[:, None] * mu + offset) / own[:, None]
    return np.where((own > 0)[:, None], np.column_stack([own, means, sigma]), np.nan)


def affine_to_plain(theta):
    return gain_to_plain(np.delete(theta, 5, axis=1), theta[:, 5:6])


def linear_to_kalman(theta):
    """With a positive slope: the limit in which each stimulus is followed."""
    w, b, sigma = theta.T
    n = len(theta)
    rows = np.column_stack([np.full(n, FAST), np.ones(n), *np.full((3, n), 0.5), w, b, sigma])
    return np.where((w > 0)[:, None], rows, np.nan)


def noisy_to_static(theta):
    """Noise of the measurement is part of sigma; of both precisions only w_prior is left."""
    measure, prior, mu, sigma = theta[:, 0], theta[:, 1], theta[:, 2:5], theta[:, 5]
    w = measure**2 / (measure**2 + prior**2)
    return np.column_stack([w, mu, np.sqrt(sigma**2 + (1 - w) ** 2 * measure**2)])


CLAIMS = [
    *(
        claim
        for scale in ("", "_log")
        for claim in (
            (f"linear_observer{scale}", f"static_bayes_observer_shared{scale}", linear_to_static),
            (f"static_bayes_observer_gain{scale}", f"static_bayes_observer{scale}", gain_to_plain),
            (
                f"static_bayes_observer_affine{scale}",
                f"static_bayes_observer{scale}",
                affine_to_plain,
            ),
            (f"linear_observer{scale}", f"kalman_observer_affine{scale}", linear_to_kalman),
        )
    ),
    ("noisy_bayes_observer", "static_bayes_observer", noisy_to_static),
]


def likelihoods(first, second, translate, environment):
    """Of sessions of the first model: its own, the translated one's, and with other noise."""
    one, other = AGENTS[first], AGENTS[second]
    theta = one.parameters.draw(np.random.default_rng(1), N)
    with np.errstate(divide="ignore", invalid="ignore"):
        translated = translate(theta)
    claimed = np.isfinite(translated).all(axis=1)
    theta, translated = theta[claimed], translated[claimed]
    trials = simulate(one, theta, environment, 1)
    own = ModelData.read(one, trials).log_likelihood(theta)[0]
    data = ModelData.read(other, trials)
    changed = translated.copy()
    changed[:, -1] *= 1.1
    return own, data.log_likelihood(translated)[0], data.log_likelihood(changed)[0]


@pytest.mark.long
@pytest.mark.parametrize("environment", [MarkerLocation(), MazeDistance(repeats=1)])
@pytest.mark.parametrize(("first", "second", "translate"), CLAIMS)
def test_observers_that_are_the_same_have_the_same_likelihood(
    first, second, translate, environment
):
    own, same, changed = likelihoods(first, second, translate, environment)
    assert len(own) >= 3
    # A limit is met to q/r = 1e9, the others to rounding.
    bound = 1e-6 if translate is linear_to_kalman else 1e-8
    assert (np.abs(own - same) < bound * (1 + np.abs(own))).all()
    assert (np.abs(own - changed) > bound * (1 + np.abs(own))).all()
