import numpy as np
import pytest

from knownminds.environments import Choice, Coins, Dice, Preference
from knownminds.environments.chance.context_grid import MARKS
from knownminds.inference.chance.belief_biases import belief_biases
from knownminds.inference.chance.revealed_belief import (
    Belief,
    DescribedContext,
    RevealedBeliefs,
    set_ups_of,
)
from knownminds.llm_adapters import TokenLogProbability
from knownminds.llm_adapters.continuations.continuation_tree import extends

FITTED = 1e-5  # how near a fit that has arrived is to the exact parameters
PLACES = (Dice(1, 12), Coins(3), Choice(4), Preference())


def believed(set_up, temperature=1.0, **biases):
    """What a belief sampler has for each outcome."""
    with np.errstate(divide="ignore"):
        height = np.log(np.asarray(set_up.truth)) / temperature
    for mark, bias in biases.items():
        height = height + bias * set_up.marks[:, MARKS.index(mark)]
    weight = np.exp(height - height.max())
    return weight / weight.sum()


def exact(temperature=1.0, places=PLACES, **biases):
    parts = []
    for set_up in (s for place in places for s in set_ups_of(place)):
        p = 0.9 * believed(set_up, temperature, **biases)
        parts.append(Belief.of(set_up, "exact", p))
    return RevealedBeliefs(tuple(parts))


def of(found, scenario, mark):
    return next(b for b in found.itertuples() if (b.scenario, b.mark) == (scenario, mark))


@pytest.mark.parametrize(
    ("mark", "scenarios"),
    [
        ("first", ("dice", "coins", "choice", "preference")),
        ("middle", ("dice", "coins", "choice")),
        ("round", ("dice",)),
        ("repeat", ("dice", "coins", "choice", "preference")),
        ("heads", ("preference",)),
        ("left", ("preference",)),
    ],
)
def test_a_single_bias_of_a_sampler_is_its_difference_of_log_odds(mark, scenarios):
    found = belief_biases(exact(**{mark: 0.6}))
    assert set(found[found["mark"] == mark]["scenario"]) == set(scenarios)
    for scenario in scenarios:
        bias = of(found, scenario, mark)
        assert bias.log_odds == pytest.approx(0.6, abs=FITTED)
        assert bias.value > 0.02
        assert bias.log_odds_low <= 0.6 + FITTED
    away = belief_biases(exact(**{mark: -0.6}))
    assert of(away, scenarios[0], mark).value < 0


def test_top_k_bounds_hold_the_bias_of_the_whole_table():
    marks = np.zeros((6, len(MARKS)), dtype=bool)
    marks[0, MARKS.index("first")] = marks[2, MARKS.index("middle")] = True
    set_up = DescribedContext("six", tuple("ABCDEF"), [1 / 6] * 6, "choice", "", marks)
    p = np.array([0.3, 0.2, 0.15, 0.15, 0.06, 0.04])
    tables = [tuple((n + ".", float(np.log(x))) for n, x in zip("ABCD", p, strict=False))] * 4
    beliefs = RevealedBeliefs(
        tuple(
            Belief.top_k(set_up, [[TokenLogProbability(*table[0], table)]], extends)
            for table in tables
        )
    )
    bias = of(belief_biases(beliefs), "choice", "first")
    # 0.2 was not listed: A has 0.3 to 0.5 of at most 1.
    assert bias.least == pytest.approx(0.3 / 1.0 - 1 / 6)
    assert bias.most == pytest.approx(0.5 / 1.0 - 1 / 6)
    assert bias.least < bias.value < bias.most
    assert bias.value == pytest.approx(0.3 / 0.8 - 1 / 6)
    assert (bias.low, bias.high) == pytest.approx((bias.least, bias.most))
    # Beliefs in which the missing 0.2 lie somewhere. A, C (in the middle) and four others: the
    # nearest sampler has these three shares, so that its bias is the log-odds of A and a fourth
    # of the others.
    tried = []
    for spread in np.random.default_rng(1).dirichlet(np.full(7, 0.2), 20000)[:, :6] * 0.2:
        q = np.array([0.3, 0.2, 0.15, 0.15, 0.0, 0.0]) + spread
        q /= q.sum()
        tried.append(np.log(4 * q[0] / (1 - q[0] - q[2])))
    assert min(tried) >= bias.log_odds_low - 1e-6
    assert max(tried) <= bias.log_odds_high + 1e-6


@pytest.mark.long
def test_a_bias_that_looks_like_another_is_not_told():
    # In the first of two options the option before was always A: both marks are the same.
    same = np.zeros((2, len(MARKS)), dtype=bool)
    same[0, [MARKS.index("first"), MARKS.index("repeat")]] = True
    set_up = DescribedContext("two", ("A", "B"), [0.5, 0.5], "choice", "A", same)
    counts = RevealedBeliefs((Belief.counted(set_up, [30, 20], 0),))
    for bias in belief_biases(counts).itertuples():
        assert np.isnan(bias.log_odds)
        assert "cannot be distinguished from temperature and other biases" in bias.reason
        assert bias.value == pytest.approx(0.1)


@pytest.mark.parametrize("source", ["exact", "sampled", "top-k"])
def test_unbiased_samplers_have_no_bias_and_planted_ones_come_back_from_every_source(source):
    """Over all scenarios and biases; with exact and top-k tables there is no sampling error."""
    inside, differences = [], []
    for k, bent in enumerate(
        [{}, {"temperature": 1.7}, {"temperature": 0.8, **dict.fromkeys(MARKS, 0.5)}]
    ):
        for bias in belief_biases(seen(source, 100 + k, **bent)).itertuples():
            wanted = bent.get(bias.mark, 0.0)
            if source != "sampled":
                assert bias.log_odds == pytest.approx(wanted, abs=FITTED)
            inside.append(bias.log_odds_low - FITTED <= wanted <= bias.log_odds_high + FITTED)
            if not bent:
                differences.append(bias.low - FITTED <= 0.0 <= bias.high + FITTED)
    assert len(inside) == 42
    assert len(differences) == 14
    if source == "sampled":
        # 95% of 42 and of 14, less 3.5 standard errors (1.41 and 0.82).
        assert sum(inside) >= 35
        assert sum(differences) >= 10
    else:
        assert all(inside)
        assert all(differences)


def seen(source, seed, temperature=1.0, **biases):
    """What a sampler reveals: exactly, by 100 draws, or by all tokens of its replies."""
    if source == "exact":
        return exact(temperature, **biases)
    rng, parts = np.random.default_rng(seed), []
    for set_up in (s for place in PLACES for s in set_ups_of(place)):
        q = believed(set_up, temperature, **biases)
        if source == "sampled":
            counts = rng.multinomial(100, np.append(0.9 * q, 0.1))
            parts.append(Belief.counted(set_up, counts[:-1], counts[-1]))
        else:
            names = zip(set_up.outcomes, q, strict=True)
            table = tuple((f"{name}\n", float(np.log(p))) for name, p in names if p > 0)
            reply = [TokenLogProbability(*table[0], table)]
            parts.append(Belief.top_k(set_up, [reply], extends))
    return RevealedBeliefs(tuple(parts))
