from math import log

import numpy as np
import pytest

from knownminds.agents import (
    TwoStepHybrid,
    simulate,
)
from knownminds.environments import Trials, TwoStep
from knownminds.inference import ModelData

HYBRID = TwoStepHybrid.parameters


def drawn(model, n, seed=1):
    return model.parameters.draw(np.random.default_rng(seed), n)


def test_sessions_that_lost_a_deal_are_played_beside_whole_ones():
    """Lanes then stand at different stages of their days."""
    theta = drawn(TwoStepHybrid, 3)
    frame = simulate(TwoStepHybrid, theta, TwoStep(10), 2).to_frame()
    holes = frame[~((frame["subject"] == "1") & frame["trial"].isin([5, 9]))]
    data = ModelData.read(TwoStepHybrid, Trials.from_frame(holes))
    total, gradient = data.log_likelihood(theta)
    for i in range(3):
        alone = holes[holes["subject"] == str(i)]
        one = ModelData.read(TwoStepHybrid, Trials.from_frame(alone))
        for together, apart in zip(
            (total, gradient), one.log_likelihood(theta[i : i + 1]), strict=True
        ):
            assert np.allclose(together[i], apart[0], rtol=1e-13, atol=1e-13)
        agent, plain = TwoStepHybrid.from_theta(theta[i]), 0.0
        for row in alone.to_dict("records"):
            plain += log(agent.probabilities(row)[row["action"]])
            agent.learn(row, row["action"], row["reward"])
        assert total[i] == pytest.approx(plain, rel=1e-12)


def test_what_a_planner_has_no_use_for_does_not_enter():
    n = 20
    trials = simulate(TwoStepHybrid, drawn(TwoStepHybrid, n), TwoStep(60), 3)
    data, theta = ModelData.read(TwoStepHybrid, trials), drawn(TwoStepHybrid, n)
    theta[:, HYBRID.index("w")] = 1.0
    total, gradient = data.log_likelihood(theta)
    theta[:, [HYBRID.index("alpha_1"), HYBRID.index("lambda_")]] = 0.9
    assert np.array_equal(total, data.log_likelihood(theta)[0])
    assert np.all(gradient[:, [HYBRID.index("alpha_1"), HYBRID.index("lambda_")]] == 0.0)
