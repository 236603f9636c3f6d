import numpy as np
import pytest

from knownminds.agents import BalloonPumper, RescorlaWagnerDual, WeightedBayes, simulate
from knownminds.environments import BalloonRisk, InstrumentalLearning, ProbabilisticReasoning
from knownminds.inference import ModelData
from knownminds.inference.centring import Centring
from knownminds.inference.model_data import Unknowns


def data_of(model, environment, n=20, seed=1):
    theta = model.parameters.draw(np.random.default_rng(seed), n)
    return ModelData.read(model, simulate(model, theta, environment, seed))


def test_subjects_who_say_little_are_deviations_and_those_who_say_much_are_as_they_are():
    few = Centring.of(
        data_of(RescorlaWagnerDual, InstrumentalLearning(2)), Unknowns.of(RescorlaWagnerDual)
    )
    many = Centring.of(
        data_of(WeightedBayes, ProbabilisticReasoning(50)), Unknowns.of(WeightedBayes)
    )
    assert not few.centred.any()
    assert many.centred.all()


@pytest.mark.parametrize("fixed", [{}, {"eta": 0.05}])
def test_coordinates_are_turned_into_values_and_keep_the_law(fixed):
    """The law of z in the sampler's coordinates is that of z, but for a constant."""
    data, unknowns = data_of(BalloonPumper, BalloonRisk(4)), Unknowns.of(BalloonPumper, fixed)
    chosen = Centring.of(data, unknowns)
    k = len(unknowns.parameters)
    rng = np.random.default_rng(3)
    coordinates = rng.normal(size=(5, 20, k))
    mean, sd = rng.normal(size=(5, 1, k)), rng.uniform(0.3, 1.0, (5, k))
    z = chosen.values(coordinates, mean, sd)
    for d in range(5):
        for i in range(20):
            for p in range(k):
                if not chosen.centred[i, p]:
                    assert z[d, i, p] == pytest.approx(
                        mean[d, 0, p] + sd[d, p] * coordinates[d, i, p]
                    )
                else:
                    own = chosen.centre[i] + chosen.root[i] @ coordinates[d, i]
                    assert z[d, i, p] == pytest.approx(own[p])


def test_both_kinds_of_coordinates_sample_the_same_posterior(monkeypatch):
    from knownminds.inference import centring, hierarchical

    data = data_of(WeightedBayes, ProbabilisticReasoning(20), n=20)
    fits = []
    for most in (0.3, -1.0):  # with the second, nothing is centred
        monkeypatch.setattr(centring, "ALL", most)
        assert Centring.of(data, Unknowns.of(WeightedBayes)).centred.any() == (most > 0)
        fits.append(hierarchical(WeightedBayes, data, draws=800, tune=800, seed=2, rounds=1))
    one, other = (fit.convergence.table for fit in fits)
    posts = [fit.posterior for fit in fits]
    for name in ("group_mean", "group_sd", "z"):
        means = [p[name].mean(("chain", "draw")).to_numpy() for p in posts]
        spread = posts[0][name].std(("chain", "draw")).to_numpy()
        # Monte-Carlo error with 200 effective draws or more is below .07 of a standard deviation
        # each; four of the difference's.
        assert np.abs((means[0] - means[1]) / spread).max() < 4 * np.sqrt(2 / 200)
    assert min(one["ess_bulk"].min(), other["ess_bulk"].min()) > 200
