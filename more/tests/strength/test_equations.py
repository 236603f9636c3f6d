"""Judges of causal strength against their equations: by hand, and in exact fractions."""

import numpy as np
import pytest
from plain_equations import exact_support

from knownminds.agents import AGENTS, simulate
from knownminds_more.strength.causal_strength import CausalStrength
from knownminds_more.strength.contingency import causal_support


@pytest.mark.parametrize(
    "counts", [(6, 2, 2, 6), (8, 0, 8, 0), (0, 8, 0, 8), (8, 0, 0, 8), (1, 6, 3, 0), (12, 9, 4, 15)]
)
def test_causal_support_is_the_integral_in_fractions(counts):
    assert causal_support(*counts) == pytest.approx(exact_support(*counts), abs=1e-9)


def test_support_of_many_tables_is_that_of_each():
    tables = np.random.default_rng(1).integers(0, 9, (4, 3, 5))
    each = [[exact_support(*tables[:, i, j].tolist()) for j in range(5)] for i in range(3)]
    assert causal_support(*tables) == pytest.approx(np.array(each), abs=1e-9)
    with pytest.raises(ValueError, match=r"whole numbers from 0 on; got 1\.5"):
        causal_support(1.5, 1, 1, 1)


def noiseless(name, **theta):
    """What a judge answers to each table without noise, with the table."""
    mind = AGENTS[name]
    values = np.array([[theta.get(p, 1e-9) for p in mind.parameters.names]])
    return simulate(mind, values, CausalStrength(), seed=3).frame


@pytest.mark.parametrize("name", ["power_pc", "delta_p", "strength_judge", "causal_support"])
def test_judges_answer_by_hand(name):
    frame = noiseless(name, w=0.3, bias=0.4, gain=0.8)
    for row in frame.to_dict("records"):
        p, q = row["both"] / 8, row["effect"] / 8
        contrast, room = (q - p, q) if row["kind"] else (p - q, 1 - q)
        power = contrast / room
        counts = [row[n] for n in ("both", "cause", "effect", "neither")]
        a, b, c, d = counts
        support = exact_support(*((b, a, d, c) if row["kind"] else counts))
        hand = {
            "power_pc": power,
            "delta_p": contrast,
            "strength_judge": 0.3 * power + 0.7 * contrast,
            "causal_support": 1 / (1 + np.exp(-(0.4 + 0.8 * support))),
        }[name]
        assert row["response"] == pytest.approx(100 * hand, abs=1e-5)
