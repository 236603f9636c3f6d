import numpy as np
import pandas as pd
import pytest

from knownminds.environments import Outcome, Trials, outcome_rates


def test_outcome_rates_are_counted_with_wilsons_interval():
    frame = pd.DataFrame({"subject": "a", "trial": range(10), "action": [0] * 8 + [None] * 2})
    frame["outcome"] = ["ok"] * 7 + ["repaired"] + ["refused"] * 2
    rates = {rate.outcome: rate for rate in outcome_rates(Trials.from_frame(frame))}
    assert list(rates) == [outcome.value for outcome in Outcome]
    assert [rate.count for rate in rates.values()] == [7, 1, 0, 2, 0, 0, 0]
    # Wilson (1927) by hand: 2 of 10 at 95%.
    z = 1.959963985
    middle, half = (
        (2 + z**2 / 2) / (10 + z**2),
        z * np.sqrt(10 * 0.2 * 0.8 + z**2 / 4) / (10 + z**2),
    )
    assert rates["refused"].low == pytest.approx(middle - half)
    assert rates["refused"].high == pytest.approx(middle + half)
    assert np.isnan([rate.share for rate in outcome_rates({})]).all()
