"""The weights of prior and likelihood: what they are in known minds, and what they refuse."""

import numpy as np

from knownminds.agents import RandomRater, WeightedBayes, simulate
from knownminds.environments import ProbabilisticReasoning, Trials
from knownminds.inference import MEASURES

NAMES = [f"{w}_weighting{r}" for w in ("prior", "likelihood") for r in ("", "_released")]


def minds(n, seed=0, **held):
    theta = WeightedBayes.parameters.draw(np.random.default_rng(seed), n)
    for name, value in held.items():
        theta[:, WeightedBayes.parameters.index(name)] = value
    return theta


def test_intervals_hold_the_truth_of_one_mind_with_many_sessions_as_often_as_they_say():
    theta, held, n = minds(1, seed=8), 0, 120
    for k in range(n):
        trials = simulate(WeightedBayes, np.repeat(theta, 20, 0), ProbabilisticReasoning(), k)
        found = MEASURES["prior_weighting"].estimate(trials)
        held += found.low < theta[0, 1] < found.high
    # 95% up to three standard errors of the share, and one point for the sandwich of 20 clusters.
    assert abs(held / n - 0.95) < 3 * np.sqrt(0.95 * 0.05 / n) + 0.01


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


def test_unanswered_problems_are_counted_and_certainties_are_held_at_the_limit():
    frame = simulate(WeightedBayes, minds(20), ProbabilisticReasoning(), 5).to_frame()
    frame.loc[:4, "response"] = None
    frame.loc[:4, "outcome"] = "refused"
    frame.loc[5, "response"] = 0.0
    found = MEASURES["prior_weighting"].estimate(Trials.from_frame(frame))
    assert (found.n, found.excluded["no answer"]) == (35, 5)
    frame.loc[5, "response"] = 1e-5
    assert MEASURES["prior_weighting"].estimate(Trials.from_frame(frame)).value == found.value


def test_no_estimate_is_told_with_its_reason():
    frame = simulate(WeightedBayes, minds(20), ProbabilisticReasoning(), 5).to_frame()
    frame["prior"] = 0.5
    found = MEASURES["prior_weighting"].estimate(Trials.from_frame(frame))
    assert np.isnan([found.value, found.standard_error, found.p_value]).all()
    assert any("regressors" in reason and count for reason, count in found.excluded.items())
