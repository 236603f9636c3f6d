from collections import Counter
from math import nan, sqrt

import numpy as np
import pytest

from knownminds.environments import session_stream
from knownminds.validation.engine import verdicts
from knownminds.validation.engine.monte_carlo import Agreement
from knownminds.validation.engine.verdicts import (
    More,
    Verdict,
    about_reliability,
    beside,
    judge_recovery,
    judge_region,
    judge_size,
)


@pytest.mark.parametrize(
    ("r", "coverage", "word"),
    [
        (0.8001, 0.90, "recoverable"),
        (0.7999, 0.90, "weak"),
        (0.5001, 0.90, "weak"),
        (0.4999, 0.90, "not identified"),
        (0.95, 0.80, "weak"),  # intervals miss too often
        (0.95, 0.99, "weak"),  # intervals are too wide
        (0.95, 0.85, "recoverable"),
    ],
)
def test_the_table_of_thresholds(r, coverage, word):
    # So many fits that nothing is left to chance: Fisher's error of r is below 1e-5.
    assert judge_recovery(r, coverage, 0.01, n=10**11).word == word


@pytest.mark.parametrize(
    ("r", "n", "word"),
    [
        # Fisher's scale: atanh .8 = 1.0986, atanh .5 = .5493; two errors of 103 fits are .2.
        (0.87, 103, "recoverable"),  # 1.333
        (0.85, 103, "between recoverable and weak"),  # 1.256
        (0.75, 103, "between recoverable and weak"),  # 0.973
        (0.65, 103, "weak"),  # 0.775
        (0.60, 103, "between weak and not identified"),  # 0.693
        (0.40, 103, "between weak and not identified"),  # 0.424
        (0.33, 103, "not identified"),  # 0.343
        (0.65, 12, "between recoverable and not identified"),  # two errors are .667
    ],
)
def test_near_a_threshold_the_word_is_between(r, n, word):
    assert judge_recovery(r, 0.9, 0.01, n=n).word == word
    assert (judge_recovery(r, 0.9, 0.01, n=n).more is not None) == word.startswith("between")


@pytest.mark.parametrize("n", [12, 40, 115])
def test_words_do_not_jump_with_the_draw(n):
    """Estimates whose true r is .50, 115 of them +- .07, are called weak or worse by chance only.

    Either word asks for two errors to its side, a chance of .023 each; of 500 studies that share
    has an error of .0067, four of which are allowed. Without regard to the error each was said of
    half of the studies.
    """
    rng, words = session_stream(n), Counter()
    for _ in range(500):
        truth, noise = rng.normal(size=(2, n))
        agreement = Agreement()
        agreement.add(truth, truth + np.sqrt(3) * noise)
        r = agreement.correlation
        words[judge_recovery(r.value, 0.9, 0.02, n=n, r_error=r.error).word] += 1
    at_least_weak = words["weak"] + words["between recoverable and weak"] + words["recoverable"]
    assert at_least_weak / 500 < 0.023 + 4 * 0.0067
    assert words["not identified"] / 500 < 0.023 + 4 * 0.0067


@pytest.mark.parametrize(("r", "word"), [(0.56, "weak"), (0.85, "recoverable")])
def test_the_number_that_is_said_to_decide_does_so_with_a_chance_of_80_percent(r, word):
    verdict = judge_recovery(r, 0.9, 0.0, n=60)
    assert verdict.word.startswith("between ")
    n, rng = 60 + verdict.more.count, session_stream(2)
    z = np.arctanh(r) + rng.normal(size=2000) / sqrt(n - 3)  # Fisher's law of estimates
    decided = np.mean([judge_recovery(v, 0.9, 0.0, n=n).word == word for v in np.tanh(z)])
    # 80% and up to two hundredths more, since the number is rounded up; its error is .009.
    assert 0.8 - 4 * 0.009 < decided < 0.82 + 4 * 0.009


def test_the_number_comes_in_subjects_or_replicates_or_is_none():
    subjects = judge_recovery(0.55, 0.9, 0.02, n=100)
    assert subjects.more.unit == "subject"
    assert str(subjects).endswith(
        f"About {subjects.more.count:,} more subjects decide (with a chance of 80% if the true "
        "number is the estimated one)."
    )
    replicates = judge_recovery(0.55, 0.9, 0.02, n=100, unit="replicate", size=20)
    assert replicates.more.count == pytest.approx(subjects.more.count / 20, rel=0.1)
    near = judge_recovery(0.501, 0.9, 0.02, n=100)
    assert near.more == More(None, "subject")
    assert "no feasible number of subjects decides" in str(near)
    exact = judge_recovery(0.5, 0.9, 0.02, n=100)
    assert exact.more == More(None, "subject")
    assert judge_recovery(0.3, 0.9, 0.02, n=100).to_dict()["more"] is None
    assert near.to_dict()["more"] == {"count": None, "unit": "subject"}


def test_numbers_do_not_seem_to_reach_what_they_do_not():
    assert beside(0.7961, 0.8) == "0.796"
    assert beside(0.79999, 0.8) == "0.79999"
    assert beside(0.8, 0.8) == "0.80"
    assert beside(0.8496, 0.85, percent=True) == "84.96%"
    assert beside(0.051, 0.05, percent=True) == "5.1%"
    assert beside(0.9, 0.85, 0.95, percent=True) == "90%"


def test_what_cannot_be_judged_is_not_judged():
    assert judge_recovery(0.9, 0.9, 0.01, n=9).word == "not judged"
    assert judge_recovery(nan, 0.9, 0.01, n=100, varies=False).word == "not judged"
    assert judge_recovery(nan, 0.9, 0.01, n=100).word == "not identified"
    # Runaways vary with the subject, but r of them is no number.
    assert judge_recovery(nan, 0.9, 0.01, n=100, finite=False).word == "not judged"
    assert judge_recovery(0.6, 0.9, 0.01, n=100, r_error=nan).word == "not judged"
    assert judge_region(0.6, n=100, error=nan).word == "not judged"


def test_many_failures_bar_the_best_verdict_and_are_named():
    verdict = judge_recovery(0.9, 0.9, 0.01, n=100, failed=0.2)
    assert verdict.word == "weak"
    assert "20% of the fits failed or did not converge: too many." in str(verdict)
    # Six of a hundred are as many as chance gives where five are the rule.
    some = judge_recovery(0.9, 0.9, 0.01, n=100, failed=0.06)
    assert some.word == "between recoverable and weak"
    assert "6% of the fits failed or did not converge, with a standard error of 2.6%" in str(some)


def test_missing_intervals_bar_the_best_verdict():
    assert judge_recovery(0.9, nan, nan, n=100).word == "weak"


def test_coverage_is_given_two_monte_carlo_errors_on_either_side():
    for coverage, error, word in [
        (0.83, 0.011, "between recoverable and weak"),
        (0.83, 0.009, "weak"),
        (0.97, 0.011, "between recoverable and weak"),
        (0.97, 0.009, "weak"),
        (0.50, 0.2, "between recoverable and weak"),
        (0.85, 0.2, "recoverable"),
    ]:
        assert judge_recovery(0.9, coverage, error, n=100).word == word


def test_five_percent_of_failures_are_borne_and_no_more():
    assert judge_recovery(0.9, 0.9, 0.01, n=100, failed=0.05).word == "recoverable"
    assert judge_recovery(0.9, 0.9, 0.01, n=100_000, failed=0.053).word == "weak"
    assert judge_recovery(0.3, 0.9, 0.01, n=100, failed=0.5).word == "not identified"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, "Estimates follow the truth closely (r = 0.90). 90% intervals hold the truth in 90%."),
        ({"r": 0.65}, "Estimates follow the truth loosely (r = 0.65, below 0.8)."),
        ({"r": 0.52}, "How closely estimates follow the truth is open: r = 0.52 is near 0.5."),
        ({"r": 0.82}, "How closely estimates follow the truth is open: r = 0.82 is near 0.8."),
        ({"r": 0.65, "n": 12}, "r = 0.65 may be above 0.8 or below 0.5."),
        ({"r": 0.1}, "Estimates hardly follow the truth (r = 0.10, below 0.5)."),
        ({"r": -0.9}, "Estimates hardly follow the truth (r = -0.90, below 0.5)."),
        ({"coverage": 0.7}, "90% intervals hold the truth too rarely: in 70%."),
        ({"coverage": 0.99}, "90% intervals hold the truth too often: in 99%."),
        (
            {"coverage": 0.84},
            "Whether 90% intervals hold the truth too rarely is open: in 84%, with a standard "
            "error of 1.0%.",
        ),
        ({"coverage": nan}, "There are no 90% intervals."),
        ({"failed": 0.2}, "20% of the fits failed or did not converge: too many."),
        ({"n": 9}, "Usable fits: 9; 10 are needed."),
        ({"finite": False}, "Some estimates are too large for r to be computed."),
        ({"r_error": nan}, "cannot be computed from the fits of a single replicate."),
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


@pytest.mark.parametrize(
    ("width", "word"),
    [
        (0.57, "recoverable"),
        (0.59, "between recoverable and weak"),
        (0.70, "weak"),
        (0.86, "between weak and not identified"),
        (0.90, "not identified"),
    ],
)
def test_widths_within_two_errors_of_a_limit_leave_the_word_open(width, word):
    verdict = judge_region(width, n=100, error=0.012)
    assert verdict.word == word
    assert ("1.2%, leaves the word open" in str(verdict)) == word.startswith("between")


def test_the_limits_of_regions_are_those_of_the_correlation():
    for r, width in (
        (verdicts.RECOVERABLE_R, verdicts.RECOVERABLE_WIDTH),
        (verdicts.WEAK_R, verdicts.WEAK_WIDTH),
    ):
        assert width == pytest.approx(sqrt(1 - r**2), abs=0.005)


@pytest.mark.parametrize(
    ("rejected", "n", "word"),
    [
        # Wilson's intervals at 95%: .038 to .065, .044 to .073, .047 to .077, .077 to .114,
        # .025 to .048, .024 to .047, .008 to .024; of 100, .022 to .112 and .087 to .237.
        (0.05, 1000, "size holds"),
        (0.057, 1000, "size holds"),
        (0.060, 1000, "between size holds and too many false alarms"),
        (0.094, 1000, "too many false alarms"),
        (0.035, 1000, "size holds"),
        (0.034, 1000, "between too few false alarms and size holds"),
        (0.014, 1000, "too few false alarms"),
        (0.05, 100, "between too few false alarms and too many false alarms"),
        (0.15, 100, "too many false alarms"),
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
        f"by more than {verdicts.CLEAR:g} Monte-Carlo standard errors",
        f"with a chance of {verdicts.NOTICED:.0%}",
        f"from {verdicts.MOST_MORE:,} more fits on",
        f"at most {verdicts.MOST_FAILURES:.0%} of the fits",
        f"fewer than {verdicts.LEAST_FITS} fits",
        f"at most {verdicts.RECOVERABLE_WIDTH} times as wide",
        f"at most {verdicts.WEAK_WIDTH} times, and",
        f"are {verdicts.RECOVERABLE_SHARE} or more",
        f"at least {verdicts.ABOVE_CHANCE} above 1 / M",
        f"begins above {verdicts.CONFUSED_SHARE} ",
        f"fewer than {verdicts.LEAST_DATA_SETS} data sets",
        f"is {verdicts.HALF_WIDTH} times as wide as it should be",
        f"in {verdicts.LEAST_SIZE} to {verdicts.MOST_SIZE} of the data sets",
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
