import json

import numpy as np
import pytest
from chance.test_belief_biases import PLACES, believed, exact
from scipy.optimize import minimize

from knownminds.environments.chance.context_grid import MARKS
from knownminds.inference.chance.belief_sampler_fit import SAMPLER, BeliefTable, fit_belief_sampler
from knownminds.inference.chance.revealed_belief import Belief, RevealedBeliefs, set_ups_of

THETA = np.array([1.3, 0.4, -0.3, 0.5, 0.8, 0.2, -0.1])
BIASES = dict(zip(MARKS, THETA[1:], strict=True))
SET_UPS = tuple(s for place in PLACES for s in set_ups_of(place))


def sampled(theta, draws, seed):
    rng = np.random.default_rng(seed)
    biases = dict(zip(MARKS, theta[1:], strict=True))
    parts = []
    for set_up in SET_UPS:
        q = 0.9 * believed(set_up, theta[0], **biases)
        counts = rng.multinomial(draws, np.append(q, 0.1))
        parts.append(Belief.counted(set_up, counts[:-1], counts[-1]))
    return RevealedBeliefs(tuple(parts))


def test_exact_beliefs_give_back_all_parameters():
    found = fit_belief_sampler(exact(THETA[0], **BIASES))
    assert found.fit.names == SAMPLER.names
    np.testing.assert_allclose(found.fit.estimate[0], THETA, rtol=1e-6)
    assert found.fit.status == ("ok",)
    assert found.fit.log_likelihood[0] == pytest.approx(0.0, abs=1e-9)
    assert found.more["elsewhere"] == pytest.approx(0.1)
    assert found.more["leak"] == pytest.approx(0.0, abs=1e-12)
    assert found.fixed == {}
    assert json.loads(found.to_json())[0]["temperature"] == pytest.approx(1.3)


def test_the_fit_of_counts_is_the_maximum_of_the_multinomial_likelihood():
    beliefs = sampled(THETA, 50, 1)
    found = fit_belief_sampler(beliefs)

    def against(z):
        total = 0.0
        for belief in beliefs:
            at = belief.truth > 0
            height = np.log(belief.truth[at]) * np.exp(-z[0]) + belief.marks[at] @ z[1:]
            total -= belief.count[at] @ (height - np.logaddexp.reduce(height))
        return total

    searched = minimize(against, np.zeros(7), method="BFGS", options={"gtol": 1e-3})
    np.testing.assert_allclose(found.fit.z[0], searched.x, atol=1e-4)
    assert found.fit.log_likelihood[0] == pytest.approx(-searched.fun, abs=1e-6)
    # Curvature by finite differences of the value, column by column.
    h, here = 1e-3, found.fit.z[0]
    information = np.linalg.inv(found.fit.covariance[0])
    for k in range(7):
        e = h * np.eye(7)[k]
        second = (against(here + e) - 2 * against(here) + against(here - e)) / h**2
        assert second == pytest.approx(information[k, k], rel=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("draws", [50, 1000])
def test_parameters_are_recovered_from_samples_with_intervals_that_hold_them(draws):
    rng = np.random.default_rng(draws)
    theta = np.column_stack([np.exp(rng.normal(0, 0.3, 30)), rng.normal(0, 0.5, (30, 6))])
    found = [fit_belief_sampler(sampled(t, draws, i)) for i, t in enumerate(theta)]
    low, high = (np.concatenate([one.fit.interval(0.9)[end] for one in found]) for end in (0, 1))
    estimate = np.concatenate([one.fit.estimate for one in found])
    held = (low <= theta) & (theta <= high)
    # 210 intervals: 189 expected, 4 standard errors 17.4
    assert 171 <= held.sum() <= 206
    for k in range(7):
        r = np.corrcoef(estimate[:, k], theta[:, k])[0, 1]
        mixed = np.corrcoef(estimate[::-1, k], theta[:, k])[0, 1]
        assert r > 0.8
        assert abs(mixed) < 0.7  # other minds' parameters are not recovered
    for one in found:
        assert one.more["elsewhere"] == pytest.approx(0.1, abs=0.02)
        assert one.more["elsewhere_low"] < one.more["elsewhere"] < one.more["elsewhere_high"]


def test_the_nearest_belief_within_bounds_is_that_of_a_search():
    rng = np.random.default_rng(5)
    for _ in range(5):
        model, low = rng.dirichlet(np.ones(4)), rng.random(4) * 0.2
        high, missing = low + rng.random(4) * 0.2, 0.15
        edges, counted = np.array([0, 4]), np.array([False])
        table = BeliefTable(np.zeros((4, 7)), edges, low, high, np.array([missing]), counted)
        found = table.nearest(model)
        raised = rng.dirichlet(np.full(5, 0.5), 40000)[:, :4] * missing
        tried = np.minimum(low + raised, high)
        tried /= tried.sum(axis=1, keepdims=True)
        divergence = (tried * np.log(tried / model)).sum(axis=1)
        best = (found * np.log(found / model)).sum()
        assert best <= divergence.min() + 1e-9
        assert divergence.min() - best < 0.01
