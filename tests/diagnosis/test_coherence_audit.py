"""What the tests of coherence do to known deciders."""

import numpy as np
import pytest

from knownminds.validation.diagnosis.coherence_audit import coherence_audit


@pytest.fixture(scope="module")
def audited():
    return coherence_audit(
        {"random_utility": (0.0,), "outcome_peeker": (0.5,)},
        replicates=12, contexts=80, repeats=3, permutations=99, bootstraps=60,
    )  # fmt: skip


@pytest.mark.long
def test_the_peeker_is_found_out_and_the_rational_decider_is_not(audited) -> None:
    for test in ("conditional independence", "calibrated", "predictive gain"):
        assert audited.rejected("outcome_peeker", 0.5, test).value > 0.7
        # Of 12 true nulls more than 3 are rejected at .05 in 2 of 1,000 seeds.
        assert audited.rejected("random_utility", 0.0, test).value <= 3 / 12
    assert audited.rejected("outcome_peeker", 0.5, "monotone choice").value <= 3 / 12


@pytest.mark.long
def test_the_paper_calls_no_ratio_and_no_distance_a_violation(audited) -> None:
    for test in ("iterated expectation", "elicitation consistency"):
        assert np.isnan(audited.published("random_utility", 0.0, test).value)
    assert np.isnan(audited.percentile("random_utility", 0.0, "predictive gain").value)


@pytest.mark.long
def test_rational_deciders_are_accused_by_percentiles_and_not_by_the_published_reading(
    audited,
) -> None:
    told = audited.published("random_utility", 0.0, "conditional independence")
    # Of 12 intervals that lie above zero in 2.5% each, more than 2 do so in 3 of 1,000 seeds.
    assert told.value <= 2 / 12
    apart = audited.percentile("random_utility", 0.0, "conditional independence")
    assert apart.value >= told.value
    assert f"{'conditional independence':<26}{apart!s:>14}" in str(audited)
