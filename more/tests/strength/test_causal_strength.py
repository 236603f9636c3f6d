"""Causal strength: support in fractions, judges by hand, words, measures, judges told apart."""

import numpy as np
import pandas as pd
import pytest
from plain_equations import exact_support

from knownminds import confuse
from knownminds.agents import AGENTS, simulate
from knownminds.environments import session_stream
from knownminds.inference import MEASURES
from knownminds_more.strength.causal_strength import CausalStrength


def test_a_session_has_every_pair_of_shares_but_those_without_room():
    place = CausalStrength()
    table = place.draw(session_stream(1)).table
    rows = set(zip(*(table[n].tolist() for n in ("both", "cause", "effect", "neither", "kind")),
                   strict=True))  # fmt: skip
    shares = range(0, 9, 2)
    hand = {(x, 8 - x, y, 8 - y, 0) for x in shares for y in shares if x >= y and y < 8}
    hand |= {(x, 8 - x, y, 8 - y, 1) for x in shares for y in shares if x <= y and y > 0}
    assert rows == hand
    assert len(hand) == place.n_trials == 28
    for row in range(28):
        a, b, c, d, kind = (
            int(table[n][row]) for n in ("both", "cause", "effect", "neither", "kind")
        )
        counts = (b, a, d, c) if kind else (a, b, c, d)
        assert table["support"][row] == pytest.approx(exact_support(*counts), abs=1e-9)


def test_measures_are_slopes_by_hand():
    mind = AGENTS["strength_judge"]
    trials = simulate(mind, np.array([[0.4, 0.15], [0.8, 0.2]]), CausalStrength(repeats=2), seed=2)
    got = {n: MEASURES[n].values(trials).value for n in ("power_weight", "frequency_illusion")}
    for i, (_, own) in enumerate(trials.frame.groupby("subject", sort=False)):
        own = own.astype(float, errors="ignore")
        p, q, prevents = own["both"] / 8, own["effect"] / 8, own["kind"] == 1
        contrast = np.where(prevents, q - p, p - q)
        power = contrast / np.where(prevents, q, 1 - q)
        y = own["response"] / 100
        slope = ((power - contrast) * (y - contrast)).sum() / ((power - contrast) ** 2).sum()
        assert got["power_weight"][i] == pytest.approx(slope)
        flat = pd.DataFrame({"f": np.where(prevents, 1 - q, q), "y": y, "kind": own["kind"]})
        flat = flat[contrast == 0]
        flat = flat[["f", "y"]] - flat.groupby("kind")[["f", "y"]].transform("mean")
        hand = (flat["f"] * flat["y"]).sum() / (flat["f"] ** 2).sum()
        assert got["frequency_illusion"][i] == pytest.approx(hand)


@pytest.mark.long
def test_power_is_told_from_contrast_and_support():
    """Of 20 data sets each; with 17 of 20 right, chance (1/3) has p < 1e-5."""
    names = ["power_pc", "delta_p", "causal_support"]
    found = confuse("causal_strength", names, replicates=20, seed=1)
    shares = found["Data sets by model"]["best fitted by itself"]["AIC"]
    assert list(shares.index) == names
    assert (shares.map(float) >= 17 / 20).all()
