"""Falls of choice odds: exact tests, their number, and deciders that are known."""

import numpy as np
import pytest
from deciders import decided
from scipy.stats import fisher_exact

from knownminds.inference.diagnosis.monotone_choice import monotone_choice


def test_each_pair_of_bins_is_tested_by_fishers_exact_test() -> None:
    found = monotone_choice(decided(1, inverse_temperature=1.0), bootstraps=0)
    fell = 0
    for pair in found.pairs:
        assert pair.testable == 10
        for low, high, p_value in zip(pair.low, pair.high, pair.p_value, strict=True):
            if pair.share[low] > pair.share[high]:
                table = [pair.counts[low], pair.counts[high]]
                exact = fisher_exact(table, alternative="greater").pvalue
                assert p_value == pytest.approx(exact, rel=1e-9)
                fell += 1
            else:
                assert p_value == 1.0
    assert fell > 3


def test_pairs_of_bins_without_either_action_are_not_in_the_denominator() -> None:
    data = decided(1)
    bold = data.frame["plain"] > 0.61
    data.frame.loc[bold, "action"] = 0.0  # Yes alone: Defer against No cannot be tested there
    data.frame.loc[~bold, "action"] = np.where(data.frame["plain"][~bold] < 0.3, 1.0, 2.0)
    found = monotone_choice(data, bootstraps=20)
    defer = found.pairs[2]
    assert (defer.first, defer.second) == ("Defer", "No")
    assert defer.testable < 10
    assert np.isnan(defer.share[4])
    assert defer.violated == defer.testable - sum(
        defer.share[j] <= defer.share[k] for j, k in zip(defer.low, defer.high, strict=True)
    )
    data.frame["action"] = 0.0
    nothing = monotone_choice(data, bootstraps=20).pairs[2]
    assert nothing.testable == 0
    assert np.isnan(nothing.fraction)


def test_rational_deciders_are_accused_by_single_tests_and_not_after_holm() -> None:
    found = [monotone_choice(decided(i, inverse_temperature=3.0), bootstraps=0) for i in range(100)]
    single = np.mean([any(pair.violated for pair in f.pairs) for f in found])
    family = np.mean([f.p_falling <= 0.05 for f in found])
    assert single > 0.1  # the published reading: a violation somewhere
    # At most .05, standard error .022; three of them.
    assert family <= 0.05 + 0.066
    assert np.mean([f.p_turning <= 0.05 for f in found]) <= 0.05 + 0.066


def test_a_decider_who_says_yes_less_often_when_surest_is_found_out() -> None:
    found = [monotone_choice(decided(i, turn=1.0), bootstraps=0) for i in range(10)]
    assert all(f.p_falling < 0.001 for f in found)
    assert all(f.p_turning < 0.001 for f in found)
    assert found[0].fraction > 0.1
