import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm

from knownminds.agents import ChangePointObserver, simulate
from knownminds.agents.bandits.confident_learners import EDGE, Confidence
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
