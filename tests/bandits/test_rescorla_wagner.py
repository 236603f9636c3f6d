"""What is special to the lane kernel: its rescaling, its two members."""

import numpy as np
import pandas as pd

from knownminds.agents import RescorlaWagnerDual
from knownminds.environments import Trials
from knownminds.inference import ModelData


def test_a_thousand_visits_and_huge_temperatures_stay_finite():
    n = 3000
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "subject": "a",
            "trial": np.arange(n),
            "context": 0,
            "action": rng.integers(0, 2, n),
            "reward": rng.integers(0, 2, n).astype(float),
        }
    )
    data = ModelData.read(RescorlaWagnerDual, Trials.from_frame(frame))
    theta = np.array([[0.9, 0.9, 500.0, 0.0]])
    total, gradient = data.log_likelihood(theta)
    assert np.isfinite(total).all()
    assert np.isfinite(gradient).all()
    assert total[0] < -1e4
    mixed, slopes = data.log_likelihood(theta, np.array([0.5]))
    # Every choice has at least probability 1/4 and at most 3/4 under a lapse rate of one half.
    assert n * np.log(0.25) < mixed[0] < n * np.log(0.75)
    assert np.isfinite(slopes).all()
