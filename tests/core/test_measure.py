import dataclasses
import json

import numpy as np
import pytest
from scipy import stats

from knownminds.agents import AGENTS, simulate
from knownminds.environments import make, session_stream
from knownminds.inference import (
    OptimismBias,
    SubjectMeasure,
    maximum_a_posteriori,
)
from knownminds.inference import measure as measures
from knownminds.inference.measure import Values, t_tests, welch_tests

PLACE = "instrumental_learning"
DUAL = AGENTS["rescorla_wagner_dual"]


# Contract of every measure


# Optimism bias


# Subjects without a value


def test_a_failed_fit_is_no_value_and_any_other_status_is(monkeypatch):
    trials = simulate(DUAL, DUAL.parameters.draw(session_stream(4), 5), make(PLACE), 4)
    statuses = ("ok", "failed", "boundary", "flat", "failed")

    def planted(*args, **kwargs):
        return dataclasses.replace(maximum_a_posteriori(*args, **kwargs), status=statuses)

    whole = OptimismBias().values(trials).value
    monkeypatch.setattr(measures, "maximum_a_posteriori", planted)
    values = OptimismBias().values(trials)
    assert np.array_equal(np.isnan(values.value), [s == "failed" for s in statuses])
    assert np.array_equal(values.value[[0, 2, 3]], whole[[0, 2, 3]])
    assert values.reason == ("", "failed fit", "", "", "failed fit")


class Given(SubjectMeasure):
    """A measure whose values are given."""

    name, null = "given", 0.5

    def __init__(self, value, reason=()):
        self.value, self.reason = np.array(value), reason

    def truth(self, model, theta):
        return theta[:, 0]

    def values(self, trials):
        return Values(self.value, self.reason)


def test_an_estimate_is_the_t_test_against_the_null_value():
    sample = session_stream(7).normal(0.7, 0.3, 12)
    found = Given(sample).over_subjects(Values(sample, ("",) * 12))
    expected = stats.ttest_1samp(sample, 0.5)
    low, high = expected.confidence_interval(0.95)
    assert found.p_value == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.standard_error == pytest.approx(stats.sem(sample))
    assert (found.n, found.unit, found.measure) == (12, "subject", "given")


def test_reasons_are_counted_one_by_one():
    value = np.array([0.1, np.nan, 0.4, np.nan, np.nan])
    reason = ("", "failed fit", "", "too few trials", "failed fit")
    found = Given(value).over_subjects(Values(value, reason))
    assert found.excluded == {"failed fit": 2, "too few trials": 1}
    assert found.n == 2


@pytest.mark.parametrize("left", [[], [0.3]])
def test_too_few_values_give_an_estimate_without_a_test(left):
    value = np.array([*left, np.nan, np.nan])
    found = Given(value).over_subjects(Values(value, ("",) * len(left) + ("failed fit",) * 2))
    assert found.n == len(left)
    assert np.isnan([found.standard_error, found.low, found.high, found.p_value]).all()
    told = json.loads(found.to_json())
    assert told["p_value"] is None
    assert told["excluded"] == {"failed fit": 2}
    assert (told["value"] is None) == (not left)


# Tests of many samples at once


def with_gaps(rng, rows, n, mean=0.0, sd=1.0):
    samples = rng.normal(mean, sd, (rows, n))
    samples[rng.random(samples.shape) < 0.2] = np.nan
    samples[:, :2] = rng.normal(mean, sd, (rows, 2))  # two values at least
    return samples


@pytest.mark.parametrize("mass", [0.9, 0.95])
def test_t_tests_are_those_of_scipy_row_by_row(mass):
    samples = with_gaps(session_stream(8), 30, 9, 0.4)
    found = t_tests(samples, 0.3, mass)
    for row, sample in enumerate(samples):
        expected = stats.ttest_1samp(sample, 0.3, nan_policy="omit")
        low, high = expected.confidence_interval(mass)
        held = sample[np.isfinite(sample)]
        assert found.n[row] == len(held)
        assert found.mean[row] == pytest.approx(held.mean())
        assert found.standard_error[row] == pytest.approx(stats.sem(held))
        assert found.p_value[row] == pytest.approx(expected.pvalue)
        assert (found.low[row], found.high[row]) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("mass", [0.9, 0.95])
def test_welch_tests_are_those_of_scipy_row_by_row(mass):
    rng = session_stream(9)
    samples, others = with_gaps(rng, 30, 9), with_gaps(rng, 30, 14, 0.5, 2.0)
    found = welch_tests(samples, others, mass)
    for row, (a, b) in enumerate(zip(samples, others, strict=True)):
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        expected = stats.ttest_ind(b, a, equal_var=False)
        low, high = expected.confidence_interval(mass)
        assert found.n[row] == len(a) + len(b)
        assert found.mean[row] == pytest.approx(b.mean() - a.mean())
        assert found.p_value[row] == pytest.approx(expected.pvalue)
        assert (found.low[row], found.high[row]) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize("n", [2, 3, 5, 6, 10])
@pytest.mark.parametrize("value", [0.0, 0.1, 0.3])
def test_a_sample_without_spread_has_no_test(value, n):
    # The mean of three times .1 is not .1 in floating point, and must not pass for a spread.
    level = np.full((1, n), value)
    gaps = np.array([[np.nan, *level[0]]])
    varied = np.arange(5.0)[None, :]
    for found in (
        t_tests(level, -1.0),
        t_tests(gaps, -1.0),
        welch_tests(level, level),
        welch_tests(level, varied),
        welch_tests(varied, level),
    ):
        assert np.isnan([found.standard_error, found.low, found.high, found.p_value]).all()
        assert np.isfinite(found.mean).all()
