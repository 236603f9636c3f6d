from math import nan, sqrt

import pytest

from knownminds.validation import verdicts
from knownminds.validation.verdicts import (
    Verdict,
    about_reliability,
    judge_recovery,
    judge_region,
    judge_size,
)


@pytest.mark.parametrize(
    ("r", "coverage", "word"),
    [
        (0.80, 0.90, "recoverable"),
        (0.79, 0.90, "weak"),
        (0.50, 0.90, "weak"),
        (0.49, 0.90, "not identified"),
        (0.95, 0.80, "weak"),  # intervals too narrow
        (0.95, 0.99, "weak"),  # intervals too wide
        (0.95, 0.84, "recoverable"),  # within two Monte-Carlo errors of the band
    ],
)
def test_the_table_of_thresholds(r, coverage, word):
    assert judge_recovery(r, coverage, 0.01, n=100).word == word


def test_what_cannot_be_judged_is_not_judged():
    assert judge_recovery(0.9, 0.9, 0.01, n=9).word == "not judged"
    assert judge_recovery(nan, 0.9, 0.01, n=100, varies=False).word == "not judged"
    assert judge_recovery(nan, 0.9, 0.01, n=100).word == "not identified"


def test_many_failures_bar_the_best_verdict_and_are_named():
    verdict = judge_recovery(0.9, 0.9, 0.01, n=100, failed=0.06)
    assert verdict.word == "weak"
    assert "6% of the fits failed" in str(verdict)


def test_missing_intervals_bar_the_best_verdict():
    assert judge_recovery(0.9, nan, nan, n=100).word == "weak"


def test_coverage_is_given_two_monte_carlo_errors_on_either_side():
    for coverage, error, word in [
        (0.83, 0.011, "recoverable"),
        (0.83, 0.009, "weak"),
        (0.97, 0.011, "recoverable"),
        (0.97, 0.009, "weak"),
        (0.50, 0.2, "recoverable"),  # so few that nothing can be told against it
    ]:
        assert judge_recovery(0.9, coverage, error, n=100).word == word


def test_five_percent_of_failures_are_borne_and_no_more():
    assert judge_recovery(0.9, 0.9, 0.01, n=100, failed=0.05).word == "recoverable"
    assert judge_recovery(0.9, 0.9, 0.01, n=100, failed=0.051).word == "weak"
    assert judge_recovery(0.4, 0.9, 0.01, n=100, failed=0.5).word == "not identified"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, "Estimates follow the truth closely (r = 0.90). 90% intervals hold the truth in 90%."),
        ({"r": 0.6}, "Estimates follow the truth loosely (r = 0.60, below 0.8)."),
        ({"r": 0.1}, "Estimates hardly follow the truth (r = 0.10, below 0.5)."),
        ({"r": -0.9}, "Estimates hardly follow the truth (r = -0.90, below 0.5)."),
        ({"coverage": 0.7}, "90% intervals hold the truth in only 70%: too narrow."),
        ({"coverage": 0.99}, "90% intervals hold the truth in 99%: too wide."),
        ({"failed": 0.1}, "10% of the fits failed or did not converge."),
        ({"n": 9}, "Only 9 fits are usable; 10 are needed."),
        ({"varies": False}, "The truth is the same for all, so nothing can correlate."),
        ({"r": nan}, "The estimates do not vary with the subject."),
    ],
)
def test_every_verdict_gives_its_reasons(change, named):
    asked = {"r": 0.9, "coverage": 0.9, "coverage_error": 0.01, "n": 100} | change
    verdict = judge_recovery(**asked)
    assert named in str(verdict)
    assert str(verdict).startswith(f"{verdict.word}: ")
    assert all(reason.endswith(".") for reason in verdict.reasons)


def test_a_verdict_is_a_value():
    assert Verdict("weak", ("So.",)) == Verdict("weak", ("So.",))
    assert str(Verdict("weak", ("So.", "And so."))) == "weak: So. And so."


@pytest.mark.parametrize(
    ("width", "word"),
    [
        (0.60, "recoverable"),
        (0.61, "weak"),
        (0.87, "weak"),
        (0.88, "not identified"),
        (1.0, "not identified"),
    ],
)
def test_the_table_of_regions(width, word):
    verdict = judge_region(width, n=100)
    assert verdict.word == word
    assert f"Intervals are {width:.0%} as wide as the prior's." in str(verdict)


def test_regions_of_few_fits_are_not_judged():
    assert judge_region(0.3, n=10).word == "recoverable"
    assert judge_region(0.3, n=9).word == "not judged"
    assert judge_region(nan, n=0).word == "not judged"


def test_the_limits_of_regions_are_those_of_the_correlation():
    for r, width in (
        (verdicts.RECOVERABLE_R, verdicts.RECOVERABLE_WIDTH),
        (verdicts.WEAK_R, verdicts.WEAK_WIDTH),
    ):
        assert width == pytest.approx(sqrt(1 - r**2), abs=0.005)


@pytest.mark.parametrize(
    ("rejected", "n", "word"),
    [
        # 1.96 standard errors of 5% among 1000: 0.0135.
        (0.05, 1000, "size holds"),
        (0.063, 1000, "size holds"),
        (0.064, 1000, "too many false alarms"),
        (0.037, 1000, "size holds"),
        (0.036, 1000, "too few false alarms"),
        (0.08, 100, "size holds"),
        (0.20, 99, "not judged"),
    ],
)
def test_the_table_of_sizes(rejected, n, word):
    verdict = judge_size(rejected, n)
    assert verdict.word == word
    assert str(n) in str(verdict)


def test_a_test_that_often_has_no_estimate_is_not_judged():
    assert judge_size(0.05, 1000, failed=0.05).word == "size holds"
    assert judge_size(0.05, 1000, failed=0.06).word == "not judged"
    assert judge_size(0.50, 1000, failed=0.06).word == "not judged"


def test_the_thresholds_stand_in_the_documented_table():
    text = " ".join((verdicts.__doc__ or "").split())
    for told in (
        f"r >= {verdicts.RECOVERABLE_R}",
        f"r >= {verdicts.WEAK_R}",
        f"{verdicts.LOWEST_COVERAGE} to {verdicts.HIGHEST_COVERAGE}",
        f"up to {verdicts.COVERAGE_ERRORS:g} Monte-Carlo",
        f"at most {verdicts.MOST_FAILURES:.0%} of the fits",
        f"fewer than {verdicts.LEAST_FITS} fits",
        f"at most {verdicts.RECOVERABLE_WIDTH} times as wide",
        f"at most {verdicts.WEAK_WIDTH} times, and",
        f"begin at {verdicts.RECOVERABLE_SHARE} or above",
        f"begins above {verdicts.CONFUSED_SHARE} ",
        f"fewer than {verdicts.LEAST_DATA_SETS} data sets",
        f"fewer than {verdicts.LEAST_REPLICATES} replicates",
        f"beyond {verdicts.CLEAR_ERRORS:g} standard errors",
        f"beyond {verdicts.LEAST_ERRORS:g} if neither",
        f"beyond {1 - verdicts.FURTHEST_MEAN:.1f} to {verdicts.FURTHEST_MEAN}",
        f"fewer than {verdicts.LEAST_FOR_SIZE} data sets",
    ):
        assert told in text, told


def test_reliability_in_words():
    assert about_reliability(0.85).startswith("fit to compare individuals")
    assert "noise" in about_reliability(0.2)
    assert about_reliability(nan) == "cannot be computed"
    assert about_reliability(0.5) == "fit to compare groups, not individuals"
    assert about_reliability(0.8).startswith("fit to compare individuals")
    assert about_reliability(0.49).startswith("mostly noise")
