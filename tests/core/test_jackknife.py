"""The jackknife of groups that are not of one size."""

import numpy as np
from scipy.stats import t as student

from knownminds.inference.resampling import jackknife


def test_false_alarms_are_kept_where_one_session_is_whole_and_four_broke_off():
    """A mean that is 0: 5% within three errors; groups taken as equal reject 6.5%."""
    size, n = np.array([96.0, 10, 10, 10, 10]), 20_000
    share = size / size.sum()
    means = np.random.default_rng(3).standard_normal((n, 5)) / np.sqrt(size)
    whole = means @ share
    without = (whole[:, None] - share * means) / (1 - share)
    found = [jackknife(a, b, size) for a, b in zip(whole, without, strict=True)]
    error, freedom = np.array([one[:2] for one in found]).T
    rejects = np.mean(np.abs(whole) > student.ppf(0.975, freedom) * error)
    assert abs(rejects - 0.05) < 3 * np.sqrt(0.05 * 0.95 / n)


def test_equal_groups_have_tukeys_error_and_a_degree_of_freedom_less():
    values = np.array([0.2, 0.9, 0.4, 0.7])
    without = (values.sum() - values) / 3
    error, freedom, _ = jackknife(values.mean(), without, np.full(4, 24.0))
    assert np.isclose(error, values.std(ddof=1) / 2)
    assert np.isclose(freedom, 3)
