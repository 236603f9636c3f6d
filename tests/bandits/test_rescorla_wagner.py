"""What is special to the lane kernel: its rescaling, its two members."""

import numpy as np
import pandas as pd

from knownminds.agents import RescorlaWagner, RescorlaWagnerDual, simulate
from knownminds.environments import InstrumentalLearning, Trials
from knownminds.inference import ModelData


def test_the_only_rate_is_both_rates():
    theta = RescorlaWagner.parameters.draw(np.random.default_rng(0), 7)
    wide = np.column_stack([theta[:, 0], theta])
    one = simulate(RescorlaWagner, theta, InstrumentalLearning(), 3)
    two = simulate(RescorlaWagnerDual, wide, InstrumentalLearning(), 3)
    assert one.frame.equals(two.frame)
    left = ModelData.read(RescorlaWagner, one).log_likelihood(theta)
    right = ModelData.read(RescorlaWagnerDual, two).log_likelihood(wide)
    assert np.allclose(left[0], right[0])
    assert np.allclose(left[1][:, 0], right[1][:, 0] + right[1][:, 1])


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
