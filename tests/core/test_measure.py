import json

import cloudpickle
import numpy as np
import pytest
from scipy import stats

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make, session_stream
from knownminds.inference import MEASURES, SubjectMeasure, session_measure
from knownminds.inference.measure import Values, t_tests, welch_tests

# Contract of every measure


# Optimism bias


# Subjects without a value


class Given(SubjectMeasure):
    """A measure whose values are given."""

    def __init__(self, value, reason=()):
        super().__init__(
            name="given", summary="", source="", environments=(), violator="", null=0.5
        )
        self.value, self.reason = np.array(value), reason

    def truth(self, model, theta):
        return theta[:, 0]

    def values(self, trials):
        return Values(self.value, self.reason)


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


def test_a_fitted_measure_of_several_subjects_is_not_pulled_to_the_prior():
    measure, place = MEASURES["optimism_bias"], make("instrumental_learning")
    model, rng = AGENTS["rescorla_wagner_dual"], np.random.default_rng(4)
    z = np.array([0.5, -2.5, 1.0, 0.0]) + 0.5 * rng.standard_normal((40, 4))
    theta = model.parameters.constrain(z)
    trials = simulate(model, theta, place, seed=4)
    found = measure.estimate(trials)
    pulled = measure.over_subjects(measure.values(trials))
    truth = (theta[:, 0] - theta[:, 1]).mean()
    assert found.low < truth < found.high
    assert pulled.high < truth - pulled.standard_error
    assert found.n == 40


# Measures that functions declare


def test_a_session_weighs_the_same_however_long_and_a_trial_if_it_has_a_score():
    theta = np.repeat(AGENTS["balloon_pumper"].parameters.draw(session_stream(3), 2), 3, axis=0)
    trials = simulate(AGENTS["balloon_pumper"], theta, make("balloon_risk"), 4)
    scored = np.isfinite(MEASURES["risk"].weights(trials)) & (MEASURES["risk"].weights(trials) > 0)
    assert scored.sum() < len(trials)  # only the last pump of a balloon has a score
    ended = trials.frame["action"].eq(0) | trials.frame["reward"].lt(1)
    assert np.array_equal(scored, ended.to_numpy())
    whole = trials.frame.groupby("subject", sort=False)
    part = Trials(whole.head(9).reset_index(drop=True))

    @session_measure(
        name="pumps", summary="", source="", environments=("balloon_risk",), violator="",
        columns=("action",), reason="no pump",
    )  # fmt: skip
    def pumps(rows):
        return rows.mean(rows["action"], np.isfinite(rows["action"]))

    for lived in (trials, part):
        sums = lived.frame.assign(w=pumps.weights(lived)).groupby("subject")["w"].sum()
        assert np.allclose(sums, 1.0)


def test_only_trials_that_a_measure_reads_are_counted_as_unanswered():
    measure, place = MEASURES["first_outcome_bias"], make("dice")
    trials = simulate(AGENTS["random_responder"], np.empty((2, 0)), place, 1)
    reads = measure.reads(trials)
    assert 0 < reads.sum() < len(trials)
    for lost in (reads, ~reads):
        frame = trials.to_frame()
        frame["action"] = frame["action"].astype("Int64").mask(lost)
        frame.loc[lost, "outcome"] = "refused"
        expected = int((lost & reads).sum())
        found = measure.unanswered(Trials.from_frame(frame))
        assert found == ({"trials without an answer": expected} if expected else {})


def test_measures_go_to_other_processes_with_the_functions_that_read_them():
    """The standing audit sends them with its tasks; a declared function has a measure's name."""
    there = cloudpickle.loads(cloudpickle.dumps(dict(MEASURES)))
    assert [*there] == [*MEASURES]
