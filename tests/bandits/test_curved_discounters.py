"""What is special to discounters with a bend or a cost."""

import numpy as np
import pytest

from knownminds.agents import (
    ConstantSensitivityDiscounter,
    FixedCostDiscounter,
    GeneralisedHyperbolicDiscounter,
    RachlinDiscounter,
)

TAU = 0.2


def log_odds(agent, sooner, soon, later, late):
    sooner_p, later_p = agent.action_probabilities(
        {
            "sooner_amount": sooner,
            "sooner_delay": soon,
            "later_amount": later,
            "later_delay": late,
        }
    )
    return np.log(later_p / sooner_p)


@pytest.mark.parametrize(
    ("model", "curve"),
    [
        (GeneralisedHyperbolicDiscounter, lambda d: (1 + 0.05 * d) ** -1.4),
        (RachlinDiscounter, lambda d: 1 / (1 + 0.05 * d**1.4)),
        (ConstantSensitivityDiscounter, lambda d: np.exp(-((0.05 * d) ** 1.4))),
    ],
)
def test_the_curves_are_those_of_the_sources(model, curve):
    agent = model(k=0.05, s=1.4, tau=TAU, eta=2.0)
    for soon, late in ((0, 1), (0, 24), (6, 30)):
        expected = (curve(late) - 0.4 * curve(soon)) / TAU
        assert log_odds(agent, 200, soon, 500, late) == pytest.approx(expected, abs=1e-9)
        assert log_odds(agent, -200, soon, -500, late) == pytest.approx(-2 * expected, abs=1e-9)


def test_a_cost_of_waiting_stays_the_same_whatever_the_sum_and_however_long():
    free, costly = (FixedCostDiscounter(k=0.02, b=b, tau=TAU, eta=1.0) for b in (0.0, 30.0))

    def cost(*seen):
        """Return what waiting costs, in the unit of the sums."""
        return (log_odds(free, *seen) - log_odds(costly, *seen)) * TAU * max(seen[0], seen[2])

    assert cost(200, 0, 500, 1) == pytest.approx(30.0)
    assert cost(200, 0, 500, 48) == pytest.approx(30.0)
    assert cost(2000, 0, 5000, 1) == pytest.approx(30.0)
    assert cost(200, 6, 500, 12) == pytest.approx(0.0)  # either way one waits
