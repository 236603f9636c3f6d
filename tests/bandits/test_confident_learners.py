import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import kstest, norm

from knownminds.agents import (
    ChangePointObserver,
    simulate,
)
from knownminds.agents.bandits.confident_learners import EDGE, Confidence
from knownminds.agents.exponential import log_ndtr_of, mills_of
from knownminds.environments import RestlessBandit

OBSERVER = {"h": 0.1, "beta": 3.0, "c_0": 0.2, "c_1": 0.6, "s": 0.5}


def density(y, mean, spread):
    return np.exp(Confidence(mean, spread).log_density(y))


@pytest.mark.parametrize(
    ("mean", "spread"), [(0.0, 0.5), (3.0, 1.5), (-8.0, 1.0), (1.0, 0.05), (0, 40)]
)
def test_a_confidence_has_a_density(mean, spread):
    ends = [EDGE, 1 - EDGE]
    middle = float(np.clip(expit(mean), EDGE, 1 - EDGE))
    inner = quad(density, *ends, args=(mean, spread), points=[middle], limit=400)[0]
    edges = EDGE * (density(0.0, mean, spread) + density(1.0, mean, spread))
    assert inner + edges == pytest.approx(1.0, abs=1e-6)
    # The edges hold what a normal law of the log-odds has beyond them.
    assert EDGE * density(1.0, mean, spread) == pytest.approx(
        norm.sf(logit(1 - EDGE), mean, spread), rel=1e-9
    )


def test_confidences_that_are_drawn_have_that_density():
    u = np.random.default_rng(0).random(20_000)
    for mean, spread in ((0.5, 1.0), (4.0, 2.0), (-6.0, 3.0)):
        said = Confidence(mean, spread).at(norm.ppf(u))
        assert np.all((said >= 0) & (said <= 1))
        # Back to uniform numbers: the distribution function at what was said.
        inner = norm.cdf(logit(np.clip(said, EDGE, 1 - EDGE)), mean, spread)
        low, high = norm.cdf(logit([EDGE, 1 - EDGE]), mean, spread)
        below = np.where(said < EDGE, said / EDGE * low, inner)
        above = high + (said - 1 + EDGE) / EDGE * (1 - high)
        assert np.allclose(np.where(said > 1 - EDGE, above, below), u, atol=1e-9)
        edge = said[said > 1 - EDGE]
        assert len(edge) < 100 or kstest(edge, "uniform", (1 - EDGE, EDGE)).pvalue > 1e-4


def test_tails_are_finite_however_far():
    z = np.array([30.0, 3.0, 0.0, -5.0, -34.999, -35.001, -40.0, -1e6])
    assert np.allclose([log_ndtr_of(x) for x in z], norm.logcdf(z), rtol=1e-13, atol=1e-15)
    rate = np.exp(norm.logpdf(z[:6]) - norm.logcdf(z[:6]))  # of which the far ones keep few digits
    assert np.allclose([mills_of(x, log_ndtr_of(x)) for x in z[:6]], rate, rtol=1e-12)
    assert mills_of(-1e6, log_ndtr_of(-1e6)) == pytest.approx(1e6, rel=1e-11)


def test_lapses_are_uniform_in_both_answers():
    theta = np.repeat(ChangePointObserver(**OBSERVER).theta[None], 100, axis=0)
    frame = simulate(ChangePointObserver, theta, RestlessBandit(), 4, lapse=1.0).frame
    n = len(frame)
    assert abs(frame["action"].mean() - 0.5) < 4 * 0.5 / np.sqrt(n)
    assert kstest(frame["response"], "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(frame["action"].astype(float), frame["response"])[0, 1]) < 4 / np.sqrt(n)


def test_sensitivity_separates_confidences_in_right_and_wrong_choices():
    environment, n = RestlessBandit(), 100

    def gap(c_1):
        theta = ChangePointObserver(**{**OBSERVER, "c_1": c_1}).theta
        trials = simulate(ChangePointObserver, np.repeat(theta[None], n, axis=0), environment, 6)
        right = environment.performance(trials) == 1
        return trials.frame["response"][right].mean() - trials.frame["response"][~right].mean()

    # Some 1,500 wrong choices: standard errors are below .01.
    assert gap(0.6) > 0.15
    assert abs(gap(0.0)) < 0.03
    assert gap(-0.6) < -0.15
