"""Tests of nested models: statistics by two fits, tails by simulation, failures are counted."""

import numpy as np
import pytest
import scipy

from knownminds.agents import AGENTS, simulate
from knownminds.environments import make
from knownminds.inference import maximum_likelihood
from knownminds.inference.fits.nested_tests import nested_tests

MODEL = AGENTS["bayesian_observer"]
PLACE = make("marker_location", modality="all", condition="numeric_biased")


@pytest.fixture(scope="module")
def trials():
    theta = MODEL.parameters.draw(np.random.default_rng(1), 12)
    return simulate(MODEL, theta, PLACE, 1)


def test_statistics_and_tails_are_those_of_the_two_fits(trials):
    rows = nested_tests(MODEL, trials, workers=1)
    whole = maximum_likelihood(MODEL, trials, workers=1).log_likelihood
    held = {"static": 1, "equal": 1, "unsteered": 2, "flat": 4}
    for name, freedom in held.items():
        inner = AGENTS[f"bayesian_observer_{name}"]
        mine = rows[rows["without"] == inner.name].set_index("subject")
        expected = 2 * (whole - maximum_likelihood(inner, trials, workers=1).log_likelihood)
        assert mine["statistic"].to_numpy() == pytest.approx(expected, abs=1e-3)
        assert (mine["freedom"] == freedom).all()
        assert mine["aic"].to_numpy() == pytest.approx(expected - 2 * freedom, abs=1e-3)
        x, law = mine["statistic"].to_numpy(), scipy.stats.chi2
        tails = {  # one of both at an end; with the prior two are, and the whole law is taken
            "static": law.sf(x, 1) / 2, "equal": law.sf(x, 1) / 2,
            "unsteered": (law.sf(x, 1) + law.sf(x, 2)) / 2, "flat": law.sf(x, 4),
        }  # fmt: skip
        some = x > 1e-6
        assert mine["p_value"].to_numpy()[some] == pytest.approx(tails[name][some])
    assert set(rows["without"]) == {f"bayesian_observer_{name}" for name in held}


def test_a_power_law_contains_the_observer_at_exponent_one(trials):
    rows = nested_tests(AGENTS["bayesian_observer_power"], trials, workers=1)
    assert set(rows["without"]) == {"bayesian_observer"}
    assert rows["p_value"].to_numpy() == pytest.approx(scipy.stats.chi2.sf(rows["statistic"], 1))


def test_a_fit_that_failed_has_no_p():
    narrow = {"short": (0.1, 0.3), "medium": (0.2, 0.4), "long": (0.3, 0.5)}
    place = make("marker_location", ranges=narrow)
    seen = simulate(AGENTS["static_bayes_observer"], [[0.3, 0.2, 0.3, 0.4, 0.05]], place, 1)
    rows = nested_tests(MODEL, seen, workers=1)
    assert len(rows) == 4
    assert rows[["statistic", "aic", "p_value"]].isna().all(axis=None)
