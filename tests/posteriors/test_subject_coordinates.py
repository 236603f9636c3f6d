"""Coordinates of a group's subjects: the same law whatever they are, and round in all groups."""

import numpy as np
import pytest
from scipy.stats import norm

from knownminds.agents import WeightedBayes, simulate
from knownminds.environments import ProbabilisticReasoning
from knownminds.inference import ModelData, Unknowns
from knownminds.inference.posteriors.sampling import kernel_inputs
from knownminds.inference.posteriors.subject_coordinates import SubjectCoordinates
from knownminds.inference.posteriors.subject_law import SubjectLaw

pytestmark = pytest.mark.long  # each compiles a law of its own
N = 6


def data_of(model, environment, n=N, spread=1.0, seed=1):
    parameters = model.parameters
    own = np.random.default_rng(seed).standard_normal((n, len(parameters)))
    theta = parameters.constrain(parameters.mean + spread * parameters.sd * own)
    return ModelData.read(model, simulate(model, theta, environment, seed))


@pytest.fixture(scope="module", params=["all", "one fixed and a lapse"])
def case(request):
    """Data, coordinates, the compiled law, and a point (u, expected, spreads)."""
    model, plain = WeightedBayes, request.param == "all"
    unknowns = Unknowns.of(model, {} if plain else {"sigma": 0.3}, not plain)
    data = data_of(model, ProbabilisticReasoning(6))
    chosen = SubjectCoordinates.of(data, unknowns)
    law, inputs = SubjectLaw(model, data.n_actions, unknowns), kernel_inputs(data, unknowns.lapse)
    k, rng = len(unknowns.parameters), np.random.default_rng(2)
    mean = unknowns.parameters.mean + 0.5 * rng.standard_normal((N, k))
    # Spreads of either sign: a group is the same for both.
    point = rng.standard_normal((N, k)), mean, rng.standard_normal(k)

    def density(u, mean, sd):
        return law.call(u, mean, sd, chosen.information, chosen.score, *inputs.values())

    return data, unknowns, chosen, density, point


def slopes(function, at, step=1e-5):
    """Central differences of function(at) [N] by each column of at, [N, K]."""
    columns = []
    for column in np.eye(at.shape[-1]):
        up, down = function(at + step * column), function(at - step * column)
        columns.append((up - down) / (2 * step))
    return np.stack(columns, axis=-1)


def test_the_gradient_is_that_of_finite_differences(case):
    *_, density, (u, mean, sd) = case
    _, *exact = density(u, mean, sd)
    numeric = (
        slopes(lambda x: density(x, mean, sd)[0], u),
        slopes(lambda x: density(u, x, sd)[0], mean),
        slopes(lambda x: density(u, mean, x)[0], sd),
    )
    for one, other in zip(exact, numeric, strict=True):
        assert np.allclose(one, other, rtol=1e-6, atol=1e-6)


def test_the_law_is_that_of_values_from_the_group_and_of_their_trials(case):
    data, unknowns, chosen, density, (u, mean, sd) = case
    parameters, k = unknowns.parameters, len(sd)

    def values(u):
        return chosen.values(u[None], mean[None], sd[None])[0]

    z = values(u)
    volume = np.empty(N)
    for n in range(N):
        turn = np.array([(values(u + e) - values(u - e))[n] / 2e-4 for e in 1e-4 * np.eye(k)])
        volume[n] = np.log(abs(np.linalg.det(turn)))
    trials, _ = unknowns.log_likelihood(data, parameters.constrain(z))
    group = norm.logpdf(z, mean, abs(sd)).sum(axis=1) + k * np.log(2 * np.pi) / 2
    assert np.allclose(density(u, mean, sd)[0], trials + group + volume, rtol=1e-6, atol=1e-6)
