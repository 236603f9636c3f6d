"""Probabilistic reasoning: the design, its words and answers, its score."""

import numpy as np
import pytest

from knownminds.agents import RandomRater, WeightedBayes, simulate
from knownminds.environments import ProbabilisticReasoning, Session, Trials, session_stream
from knownminds.environments.bandits.probabilistic_reasoning import posterior


def tables(environment, n, seed=0):
    uniforms = np.random.default_rng(seed).random((n, environment.n_draws))
    return environment.tables(uniforms)


@pytest.mark.parametrize("n_problems", [1, 2, 5, 20])
def test_half_of_the_problems_have_an_informative_likelihood(n_problems):
    drawn = tables(ProbabilisticReasoning(n_problems), 400)
    strong, weak = (0.1, 0.2, 0.3, 0.7, 0.8, 0.9), (0.4, 0.5, 0.6)
    of_likelihood = np.isin(drawn["likelihood"], strong) & np.isin(drawn["prior"], weak)
    of_prior = np.isin(drawn["prior"], strong) & np.isin(drawn["likelihood"], weak)
    assert (of_likelihood ^ of_prior).all()
    assert (of_likelihood.sum(axis=1) == -(-n_problems // 2)).all()
    # Mixed order: each place has either kind in about half of the sessions.
    if n_problems % 2 == 0:
        assert (np.abs(of_likelihood.mean(axis=0) - 0.5) < 4 * 0.5 / np.sqrt(400)).all()


def test_urns_follow_the_wheel_and_balls_the_urns():
    drawn = tables(ProbabilisticReasoning(50), 1000)
    prior, likelihood, ball, urn = (drawn[n] for n in ("prior", "likelihood", "ball", "urn"))
    for value in np.unique(prior):
        those = prior == value
        error = np.sqrt(value * (1 - value) / those.sum())
        assert abs(urn[those].mean() - value) < 4 * error
        for red in np.unique(likelihood[those]):
            for held, rate in ((1, red), (0, 1 - red)):
                picked = those & (likelihood == red) & (urn == held)
                error = np.sqrt(rate * (1 - rate) / picked.sum())
                assert abs(ball[picked].mean() - rate) < 4.5 * error
    # .5 stands twice in the list.
    weak = prior[np.isin(prior, (0.4, 0.5, 0.6))]
    assert abs((weak == 0.5).mean() - 0.5) < 4 * 0.5 / np.sqrt(weak.size)
    assert abs(drawn["asked"].mean() - 0.5) < 4 * 0.5 / np.sqrt(50_000)


def test_the_posterior_is_the_share_of_urns_that_were_asked_for():
    drawn = tables(ProbabilisticReasoning(50), 2000)
    exact = posterior(drawn["prior"], drawn["likelihood"], drawn["ball"])
    for value in np.unique(exact.round(12)):
        those = exact.round(12) == value
        error = np.sqrt(value * (1 - value) / those.sum())
        assert abs(drawn["urn"][those].mean() - value) < 4.5 * error
    assert posterior(np.array(0.6), np.array(0.8), np.array(1)) == pytest.approx(0.48 / 0.56)
    assert posterior(np.array(0.6), np.array(0.8), np.array(0)) == pytest.approx(0.12 / 0.44)


def test_who_was_drawn_is_recorded_and_never_shown():
    environment = ProbabilisticReasoning()
    assert "urn" not in Session(environment, environment.draw(session_stream(3))).seen
    frame = simulate(RandomRater, np.empty((3, 0)), environment, 0).frame
    assert set(frame["urn"]) <= {0, 1}


def test_performance_is_one_minus_the_distance_to_the_exact_posterior():
    environment = ProbabilisticReasoning(n_problems=20)
    bayes = simulate(WeightedBayes, [[0.0, 1.0, 1.0, 1e-9]], environment, 2)
    assert np.allclose(environment.performance(bayes), 1.0, atol=1e-8)
    frame = bayes.to_frame()
    frame["response"] = 0.5
    frame.loc[3, "response"] = None
    frame.loc[3, "outcome"] = "empty"
    exact = posterior(*(frame[n].to_numpy() for n in ("prior", "likelihood", "ball")))
    expected = 1 - np.abs(exact - 0.5)
    expected[3] = np.nan
    found = environment.performance(Trials.from_frame(frame))
    assert np.allclose(found, expected, equal_nan=True)
