"""What the tests of coherence do to known deciders."""

import numpy as np
import pytest

from knownminds import audit

RATIONAL, PEEKER = ("random_utility", 0.0), ("outcome_peeker", 0.5)


@pytest.fixture(scope="module")
def findings():
    settings = {"contexts": 80, "repeats": 3, "permutations": 99, "bootstraps": 60}
    settings |= {name: [dial] for name, dial in (RATIONAL, PEEKER)}
    table = audit("coherence", settings=settings, replicates=12)["Findings"].sort_index()
    return table[["rejected", "published", "percentile"]].map(float)


@pytest.mark.long
def test_the_peeker_is_found_out_and_the_rational_decider_is_not(findings) -> None:
    rejected = findings["rejected"]
    for test in ("conditional independence", "calibrated", "predictive gain"):
        assert rejected[(*PEEKER, test)] > 0.7
        # Of 12 true nulls more than 3 are rejected at .05 in 2 of 1,000 seeds.
        assert rejected[(*RATIONAL, test)] <= 3 / 12
    assert rejected[(*PEEKER, "monotone choice")] <= 3 / 12


@pytest.mark.long
def test_the_paper_calls_no_ratio_and_no_distance_a_violation(findings) -> None:
    for test in ("iterated expectation", "elicitation consistency"):
        assert np.isnan(findings["published"][(*RATIONAL, test)])
    assert np.isnan(findings["percentile"][(*RATIONAL, "predictive gain")])


@pytest.mark.long
def test_rational_deciders_are_accused_by_percentiles_and_not_by_the_published_reading(
    findings,
) -> None:
    row = findings.loc[(*RATIONAL, "conditional independence")]
    # Of 12 intervals that lie above zero in 2.5% each, more than 2 do so in 3 of 1,000 seeds.
    assert row["published"] <= 2 / 12
    assert row["percentile"] >= row["published"]
