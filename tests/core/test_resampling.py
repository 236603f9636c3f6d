import numpy as np
import pytest

from knownminds.inference.resampling import percentile_ends


def test_ends_are_percentiles_of_the_resamples_that_have_a_value():
    rounds = np.arange(201.0)
    found = percentile_ends(np.append(rounds, np.nan))
    assert found[:2] == pytest.approx((5.0, 195.0))
    assert found[2] == pytest.approx(rounds.std(ddof=1))


@pytest.mark.parametrize("rounds", [[], [np.nan, np.inf]])
def test_without_resamples_there_is_no_interval(rounds):
    assert np.isnan(percentile_ends(np.array(rounds))).all()
