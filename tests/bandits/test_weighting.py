"""The weights of prior and likelihood: what they are in known agents, and what they refuse."""

import numpy as np

from knownminds.agents import RandomRater, WeightedBayes, simulate
from knownminds.environments import ProbabilisticReasoning
from knownminds.inference import MEASURES

NAMES = [f"{w}_weighting{r}" for w in ("prior", "likelihood") for r in ("", "_released")]


def minds(n, seed=0, **held):
    theta = WeightedBayes.parameters.draw(np.random.default_rng(seed), n)
    for name, value in held.items():
        theta[:, WeightedBayes.parameters.index(name)] = value
    return theta


def test_who_states_any_number_has_no_weights_and_is_found_to_have_some_in_five_percent():
    rejected, n = 0, 150
    for k in range(n):
        trials = simulate(RandomRater, np.empty((40, 0)), ProbabilisticReasoning(), k)
        rejected += MEASURES["likelihood_weighting"].estimate(trials).p_value < 0.05
    assert abs(rejected / n - 0.05) < 3 * np.sqrt(0.05 * 0.95 / n) + 0.01
    for name in NAMES:
        assert MEASURES[name].truth(RandomRater, np.empty((3, 0))).tolist() == [0.0] * 3


def test_the_released_code_takes_a_leaning_for_a_weight_where_priors_are_lopsided():
    environment = ProbabilisticReasoning(
        n_problems=10, informative=(0.7, 0.8, 0.9), uninformative=(0.6,)
    )
    theta = minds(200, b_0=1.0, b_prior=1.0, b_likelihood=1.0, sigma=0.3)
    trials = simulate(WeightedBayes, theta, environment, 1)
    found = MEASURES["prior_weighting"].estimate(trials)
    released = MEASURES["prior_weighting_released"].estimate(trials)
    assert abs(found.value - 1.0) < 4 * found.standard_error
    assert released.value > 1.3
