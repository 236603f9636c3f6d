"""Contrast and power of tables of counts, by hand and from networks."""

import numpy as np
import pytest

from knownminds.environments import CausalNetwork
from knownminds_more.strength.contingency import causal_power, delta_p


def test_power_is_the_strength_that_a_network_was_made_with():
    """From what a network does, cell by cell, its strength comes back; the contrast is less."""
    for strength in (0.7, -0.7):
        network = CausalNetwork({("A", "B"): strength}, {"A": 0.5, "B": 0.4})
        cells = [1e3 * network.joint()[i] for i in (3, 2, 1, 0)]
        assert causal_power(*cells) == pytest.approx(strength)
        assert abs(delta_p(*cells)) < 0.5 < abs(causal_power(*cells))


@pytest.mark.parametrize(
    ("counts", "contrast", "power"),
    [
        ((6, 2, 2, 6), 0.5, 2 / 3),  # .75 - .25, of the .75 that are left
        ((2, 6, 6, 2), -0.5, -2 / 3),
        ((8, 0, 8, 0), 0.0, np.nan),  # a ceiling tells nothing of producing
        ((0, 8, 0, 8), 0.0, 0.0),
        ((0, 8, 8, 0), -1.0, -1.0),
        ((0, 0, 1, 1), np.nan, np.nan),
    ],
)
def test_contrast_and_power_of_known_tables(counts, contrast, power):
    assert delta_p(*counts) == pytest.approx(contrast, nan_ok=True)
    assert causal_power(*counts) == pytest.approx(power, nan_ok=True)
