"""Differences of two conditions that share sessions: errors of intervals and tests by simulation.

Sessions have a level of their own in both conditions, so that what is read off both correlates.
"""

import numpy as np
import pytest
from scipy import stats

from knownminds.agents import WeightedBayes, simulate
from knownminds.environments import Trials, make
from knownminds.inference import MEASURES
from knownminds.inference.differences import Side, difference
from knownminds.inference.performance import performance_of
from knownminds.inference.regression import coefficient


def measured(values, names=None):
    """The mean over sessions, [n]."""
    n = len(values)
    names = range(n) if names is None else names
    moved = (values - values.mean()) / np.sqrt(n * (n - 1))
    error = float(values.std(ddof=1) / np.sqrt(n))
    return Side(
        float(values.mean()), error, n - 1.0, dict(zip(map(str, names), moved, strict=True))
    )


def alone(one):
    return Side(one.value, one.standard_error, one.freedom, {})


def within(share, expected, n):
    """Within 3.5 Monte-Carlo errors."""
    return abs(share - expected) < 3.5 * np.sqrt(expected * (1 - expected) / n)


def test_shared_sessions_are_the_paired_t_test_and_others_welch():
    a, b = np.random.default_rng(0).normal(size=(2, 9))
    pairs, apart = (stats.ttest_rel(a, b), stats.ttest_ind(a, b, equal_var=False))
    found = difference(measured(a), measured(b))
    assert found.p_value == pytest.approx(pairs.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(pairs.confidence_interval()))
    assert (found.shared, found.freedom) == (9, 8)
    assert found.correlation == pytest.approx(np.corrcoef(a, b)[0, 1])
    exact = stats.permutation_test((a, b), lambda x, y: np.mean(x - y), permutation_type="samples")
    assert found.swaps == pytest.approx(exact.pvalue)
    other = difference(measured(a), measured(b, range(9, 18)))
    assert other.p_value == pytest.approx(apart.pvalue)
    assert (other.shared, np.isnan(other.swaps)) == (0, True)


@pytest.mark.parametrize("name", ["prior_weighting", "probabilistic_reasoning"])
def test_measures_say_what_each_session_does_to_them(name):
    place = make("probabilistic_reasoning")
    theta = np.tile([0.3, 0.6, 0.8, 0.3], (6, 1))  # b_0, b_prior, b_likelihood, sigma
    lived = simulate(WeightedBayes, theta, place, 3).to_frame()
    trials = Trials(lived.assign(session=lived["subject"], subject="m"))
    measure = MEASURES[name] if name in MEASURES else performance_of(place)
    found = measure.estimate(trials)
    assert sorted(found.influence) == sorted(set(lived["subject"]))
    squares = np.square(list(found.influence.values()))
    assert squares.sum() == pytest.approx(found.standard_error**2)


@pytest.mark.long
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("sessions", [5, 10, 40])
def test_a_contrast_of_pairs_keeps_its_promises_and_finds_more(correlation, sessions):
    """Taken as independent, .9 gives no false alarm at all and hides most effects."""
    rng, n, law = np.random.default_rng(6), 2000, [[1.0, correlation], [correlation, 1.0]]
    counts = dict.fromkeys(("alarm", "swaps", "covers", "found", "found before", "before"), 0)
    for _ in range(n):
        a, b = rng.multivariate_normal([0.0, 0.0], law, sessions).T
        null = difference(measured(a), measured(b))
        real = difference(measured(a + 0.5), measured(b))
        counts["alarm"] += null.p_value < 0.05
        counts["swaps"] += null.swaps < 0.05
        counts["covers"] += real.low < 0.5 < real.high
        counts["found"] += real.p_value < 0.05
        counts["before"] += difference(alone(measured(a)), alone(measured(b))).p_value < 0.05
        before = difference(alone(measured(a + 0.5)), alone(measured(b)))
        counts["found before"] += before.p_value < 0.05
    shares = {name: count / n for name, count in counts.items()}
    print(sessions, correlation, shares)
    assert within(shares["alarm"], 0.05, n)
    assert within(shares["covers"], 0.95, n)
    # Of 2**G swaps, a p-value can lie a step below .05.
    assert shares["swaps"] < 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / n)
    if correlation:
        assert shares["before"] < 0.05 - 3.5 * np.sqrt(0.05 * 0.95 / n)
        assert shares["found"] > shares["found before"]


@pytest.mark.long
def test_conditions_that_differ_by_design_are_swapped_as_whole_designs():
    """Three wordings of each design; in some designs the condition helps, in others it harms."""
    rng, n, designs, wordings = np.random.default_rng(7), 2000, 10, 3
    whole = single = 0
    for _ in range(n):
        shape = (2, designs, wordings)
        answers = rng.normal(size=(2, designs, 1)) + rng.normal(size=(1, designs, 1))
        answers = answers + rng.normal(size=shape)
        whole += difference(*map(measured, answers.mean(axis=2))).swaps < 0.05
        single += difference(*(measured(each.ravel()) for each in answers)).swaps < 0.05
    assert within(whole / n, 0.05, n)
    assert single / n > 0.1


@pytest.mark.long
@pytest.mark.parametrize("logistic", [False, True])
@pytest.mark.parametrize("sessions", [5, 10, 20])
def test_regressions_of_two_conditions_on_the_same_sessions(sessions, logistic):
    """Slopes differ between sessions and are shared by both conditions."""
    rng, n, trials = np.random.default_rng(8), 600, 40
    alarm = before = held = 0
    session = np.repeat(np.arange(sessions), trials)
    for _ in range(n):
        slope = rng.normal(0.0, 0.8, sessions)[session]
        found = []
        for _ in range(2):
            x = rng.normal(size=len(session))
            eta = slope * x
            y = rng.random(len(x)) < 1 / (1 + np.exp(-eta)) if logistic else eta + rng.normal(
                size=len(x)
            )  # fmt: skip
            one = coefficient("x", y, {"x": x}, logistic=logistic, clusters=session)
            found.append(Side(one.value, one.standard_error, one.freedom, one.influence))
        gap = difference(*found)
        alarm += gap.p_value < 0.05
        held += gap.low < 0 < gap.high
        before += difference(*map(alone, found)).p_value < 0.05
    print(sessions, logistic, alarm / n, before / n)
    assert alarm / n < 0.05 + 3.5 * np.sqrt(0.05 * 0.95 / n)
    assert before < alarm
