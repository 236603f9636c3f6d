from collections import Counter
from math import nan, sqrt

import numpy as np
import pytest

from knownminds.environments import session_stream
from knownminds.validation.engine.scores import Score, agreement
from knownminds.validation.engine.verdicts import judge_recovery, judge_region, judge_size


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
    assert judge_recovery(Score(r, 0.0), Score(coverage, 0.01), n=10**11).word == word


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
    assert judge_recovery(Score(r, 0.0), Score(0.9, 0.01), n=n).word == word
    assert (
        judge_recovery(Score(r, 0.0), Score(0.9, 0.01), n=n).more is not None
    ) == word.startswith("between")


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
        r = agreement(truth, truth + np.sqrt(3) * noise).r
        words[judge_recovery(r, Score(0.9, 0.02), n=n).word] += 1
    at_least_weak = words["weak"] + words["between recoverable and weak"] + words["recoverable"]
    assert at_least_weak / 500 < 0.023 + 4 * 0.0067
    assert words["not identified"] / 500 < 0.023 + 4 * 0.0067


@pytest.mark.parametrize(("r", "word"), [(0.56, "weak"), (0.85, "recoverable")])
def test_the_number_that_is_said_to_decide_does_so_with_a_chance_of_80_percent(r, word):
    verdict = judge_recovery(Score(r, 0.0), Score(0.9, 0.0), n=60)
    assert verdict.word.startswith("between ")
    n, rng = 60 + verdict.more.count, session_stream(2)
    z = np.arctanh(r) + rng.normal(size=2000) / sqrt(n - 3)  # Fisher's law of estimates
    decided = np.mean(
        [judge_recovery(Score(v, 0.0), Score(0.9, 0.0), n=n).word == word for v in np.tanh(z)]
    )
    # 80% and up to two hundredths more, since the number is rounded up; its error is .009.
    assert 0.8 - 4 * 0.009 < decided < 0.82 + 4 * 0.009


def test_what_cannot_be_judged_is_not_judged():
    assert judge_recovery(Score(0.9, 0.0), Score(0.9, 0.01), n=9).word == "not judged"
    assert judge_recovery(Score(nan), Score(0.9, 0.01), n=100, varies=False).word == "not judged"
    assert judge_recovery(Score(nan), Score(0.9, 0.01), n=100).word == "not identified"
    # Runaways vary with the subject, but r of them is no number.
    assert judge_recovery(Score(nan), Score(0.9, 0.01), n=100, finite=False).word == "not judged"
    assert judge_recovery(Score(0.6, nan), Score(0.9, 0.01), n=100).word == "not judged"
    assert judge_region(Score(0.6, nan), n=100).word == "not judged"


def test_many_failures_bar_the_best_verdict():
    verdict = judge_recovery(Score(0.9, 0.0), Score(0.9, 0.01), n=100, failed=0.2)
    assert verdict.word == "weak"
    # Six of a hundred are as many as chance gives where five are the rule.
    some = judge_recovery(Score(0.9, 0.0), Score(0.9, 0.01), n=100, failed=0.06)
    assert some.word == "between recoverable and weak"


def test_coverage_is_given_two_monte_carlo_errors_on_either_side():
    for coverage, error, word in [
        (0.83, 0.011, "between recoverable and weak"),
        (0.83, 0.009, "weak"),
        (0.97, 0.011, "between recoverable and weak"),
        (0.97, 0.009, "weak"),
        (0.50, 0.2, "between recoverable and weak"),
        (0.85, 0.2, "recoverable"),
    ]:
        assert judge_recovery(Score(0.9, 0.0), Score(coverage, error), n=100).word == word


def test_the_table_of_regions():
    words = [judge_region(Score(width, 0.0), n=100).word for width in (0.60, 0.61, 0.87, 0.88)]
    assert words == ["recoverable", "weak", "weak", "not identified"]


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
