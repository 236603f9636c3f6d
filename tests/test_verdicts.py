from math import nan

import pytest

from knownminds.validation.verdicts import about_reliability, judge_recovery


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


def test_reliability_in_words():
    assert about_reliability(0.85).startswith("fit to compare individuals")
    assert "noise" in about_reliability(0.2)
    assert about_reliability(nan) == "cannot be computed"
