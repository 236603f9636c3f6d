"""Causal strength: support in fractions, judges by hand, words, measures, judges told apart."""

from fractions import Fraction
from math import comb, factorial, log

import numpy as np
import pandas as pd
import pytest

from knownminds import confuse
from knownminds.agents import AGENTS, simulate
from knownminds.environments import CausalStrength, Trials, causal_support, make
from knownminds.inference import MEASURES


def beta(a, b):
    return Fraction(factorial(a - 1) * factorial(b - 1), factorial(a + b - 1))


def exact_support(a, b, c, d):
    """The log Bayes factor by the binomial expansion of (1 - uv)^a, in fractions.

    With u = 1 - w0 and v = 1 - w1: the integral of (1 - uv)^a (uv)^b (1 - u)^c u^d.
    """
    whole = sum(
        (-1) ** k * comb(a, k) * beta(b + d + k + 1, c + 1) * Fraction(1, b + k + 1)
        for k in range(a + 1)
    )
    return log(whole / beta(a + c + 1, b + d + 1))


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


def test_a_session_has_every_pair_of_shares_but_those_without_room():
    place = CausalStrength()
    place.reset(seed=1)
    table = place.design.table
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


@pytest.mark.parametrize("shown", ["table", "list"])
def test_the_counts_can_be_read_off_the_prompt(shown):
    place = CausalStrength(shown=shown, cases=4)
    observation, _ = place.reset(seed=5)
    for _ in range(10):
        text = place.render(observation, ()).messages[0].content
        a, b, c, d = (observation[n] for n in ("both", "cause", "effect", "neither"))
        if shown == "table":
            told = [line for line in text.split("\n") if line.startswith("Of ")]
            assert [line.split()[1] for line in told] == [str(a + b), str(c + d)]
            assert all(f", {n} " in line for n, line in zip((a, c), told, strict=True))
        else:
            lines = [line.split(": ")[1] for line in text.split("\n") if line.startswith("- ")]
            with_cause = [line for line in lines if not line.startswith("no ")]
            got = [sum("; no " not in line for line in part) for part in
                   (with_cause, [line for line in lines if line not in with_cause])]  # fmt: skip
            assert (len(with_cause), len(lines)) == (a + b, 8)
            assert got == [a, c]
        observation, *_ = place.step(10.0)


def test_tables_of_ones_own_are_asked_about_in_their_direction():
    place = CausalStrength(contingencies=[[6, 2, 2, 6], [1, 7, 5, 3], [30, 10, 30, 10]])
    place.reset(seed=0)
    table = place.design.table
    kinds = dict(zip(table["both"].tolist(), table["kind"].tolist(), strict=True))
    assert kinds == {6: 0, 1: 1, 30: 0}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"contingencies": [[8, 0, 8, 0]]}, "room for the cause"),
        ({"contingencies": [[1, 2, -3, 4]]}, "rows of four counts"),
        ({"contingencies": 3}, "rows of four counts"),
        ({"cases": 7}, "a multiple of levels - 1"),
        (
            {"contingencies": [[6, 2, 2, 6]], "kinds": ["prevent"]},
            "no table is of the kind prevent",
        ),
    ],
)
def test_bad_tables_are_refused_in_a_sentence(settings, told):
    with pytest.raises(ValueError, match=told):
        make("causal_strength", **settings)


def test_people_without_a_column_of_support_are_read():
    frame = noiseless("power_pc")
    own = frame.drop(columns="support")
    completed = CausalStrength().complete(Trials.from_frame(own))
    assert completed["support"].to_numpy() == pytest.approx(frame["support"].to_numpy())


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


def test_power_is_told_from_contrast_and_support():
    """Of 20 data sets each; with 17 of 20 right, chance (1/3) has p < 1e-5."""
    names = ["power_pc", "delta_p", "causal_support"]
    found = confuse("causal_strength", names, replicates=20, seed=1)
    [aic] = [one for one in found.confusions if one.criterion == "aic"]
    assert aic.models == tuple(names)
    assert (np.diag(aic.counts) >= 17).all()
