"""Falls of choice odds: exact tests, their number, and deciders that are known."""

import numpy as np
import pytest
from deciders import decided
from scipy.stats import fisher_exact

from knownminds.inference.diagnosis.monotone_choice import holm, monotone_choice

FRAMES = ("bins", "shares")


def p_falling(found):
    """Holm's p-value of the hypothesis that no share falls anywhere."""
    return holm(found.frames["bins"]["p_value"].to_numpy()).min()


def test_what_was_not_tested_counts_for_no_test():
    assert holm(np.array([0.03, np.nan, 0.02, np.nan])).tolist() == [0.04, 1.0, 0.04, 1.0]


def test_each_pair_of_bins_is_tested_by_fishers_exact_test() -> None:
    found = monotone_choice(decided(1, inverse_temperature=1.0), bootstraps=0)
    fell = 0
    bins, shares = (found.frames[name].set_index(["first", "second"]) for name in FRAMES)
    for pair in bins.index.unique():
        assert len(bins.loc[pair]) == 10
        own = shares.loc[pair].set_index("bin")
        for test in bins.loc[pair].itertuples():
            if own.share[test.low] > own.share[test.high]:
                table = own.loc[[test.low, test.high], ["chose_first", "chose_second"]]
                exact = fisher_exact(table, alternative="greater").pvalue
                assert test.p_value == pytest.approx(exact, rel=1e-9)
                fell += 1
            else:
                assert test.p_value == 1.0
    assert fell > 3


def test_pairs_of_bins_without_either_action_are_not_in_the_denominator() -> None:
    data = decided(1)
    bold = data.frame["plain"] > 0.61
    data.frame.loc[bold, "action"] = 0.0  # Yes alone: Defer against No cannot be tested there
    data.frame.loc[~bold, "action"] = np.where(data.frame["plain"][~bold] < 0.3, 1.0, 2.0)
    found = monotone_choice(data, bootstraps=20)
    bins, shares = (
        found.frames[name].query("first == 'Defer' and second == 'No'") for name in FRAMES
    )
    assert len(bins) < 10
    share = shares.set_index("bin").share
    assert np.isnan(share[4])
    falls = sum(share[j] > share[k] for j, k in zip(bins.low, bins.high, strict=True))
    defer = found.reading("Defer over No falls")
    assert (defer.n, defer.published) == (len(bins), pytest.approx(falls / len(bins)))
    data.frame["action"] = 0.0
    nothing = monotone_choice(data, bootstraps=20).reading("Defer over No falls")
    assert nothing.n == 0
    assert np.isnan(nothing.published)


def test_rational_deciders_are_accused_by_single_tests_and_not_after_holm() -> None:
    found = [monotone_choice(decided(i, inverse_temperature=3.0), bootstraps=0) for i in range(100)]
    single = np.mean([f["published"] > 0 for f in found])
    family = np.mean([p_falling(f) <= 0.05 for f in found])
    assert single > 0.1  # the published reading: a violation somewhere
    # At most .05, standard error .022; three of them.
    assert family <= 0.05 + 0.066
    assert np.mean([f["p_value"] <= 0.05 for f in found]) <= 0.05 + 0.066


def test_a_decider_who_says_yes_less_often_when_surest_is_found_out() -> None:
    found = [monotone_choice(decided(i, turn=1.0), bootstraps=0) for i in range(10)]
    assert all(p_falling(f) < 0.001 for f in found)
    assert all(f["p_value"] < 0.001 for f in found)
    assert found[0]["published"] > 0.1
