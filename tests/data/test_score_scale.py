"""The scale from random answers to a reference."""

import numpy as np
import pandas as pd
import pytest

from knownminds.validation.data.score_scale import read_csv, scaled


def scale(value, zero, one, error=0.0, **more):
    given = {"value": value, "standard_error": 0.1, "low": value - 0.2, "high": value + 0.2}
    given |= {"random": zero, "random_error": error, "reference": one}
    return scaled(pd.DataFrame([given]), **more).iloc[0]


def test_the_scale_is_the_share_of_the_way_from_random_answers_to_the_reference():
    assert [scale(x, 1.0, 20.0)["normalised"] for x in (20.0, 1.0, 39.0)] == [1.0, 0.0, 2.0]
    other = scale(-0.1, 0.0, 0.2)
    assert other["normalised"] == pytest.approx(-0.5)  # the sign is kept
    assert (other["normalised_low"], other["normalised_high"]) == pytest.approx((-1.5, 0.5))
    unsigned = scale(-0.1, 0.0, 0.2, unsigned=True)
    assert unsigned["normalised"] == pytest.approx(0.5)  # as released, it has none
    assert (unsigned["normalised_low"], unsigned["normalised_high"]) == pytest.approx((0.0, 1.5))
    assert np.isnan(scale(3.0, 1.0, 1.0)["normalised"])  # between two that are alike is no scale
    assert np.isnan(scale(3.0, 1.0, np.nan)["normalised"])
    # Half of the way, an error of random answers counts half.
    known, unsure = (scale(0.5, 0.0, 1.0, error=error) for error in (0.0, 0.1))
    assert unsure["normalised_error"] == pytest.approx(np.hypot(known["normalised_error"], 0.05))
    half = (known["normalised_high"] - 0.5, unsure["normalised_high"] - 0.5)
    assert half[1] == pytest.approx(np.hypot(half[0], 1.96 * 0.05))


def test_a_table_of_any_columns_that_cannot_be_read_is_one_sentence(tmp_path):
    (tmp_path / "words.csv").write_text("a,b\n1,2,3\n1,2,3,4\n")
    with pytest.raises(ValueError, match=r"^A reference is a CSV file; words.csv cannot be read"):
        read_csv("A reference", tmp_path / "words.csv", ())
