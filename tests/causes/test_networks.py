"""Networks of any shape against arithmetic by hand."""

from itertools import product

import pytest

from knownminds.environments import CausalNetwork

# Producing and preventing causes of D, which also stand in a row: A -> B, A -> D, B -| D, C -> D.
STRENGTHS = {("A", "B"): 0.7, ("A", "D"): 0.6, ("B", "D"): -0.4, ("C", "D"): 0.3}
BASE = {"A": 0.35, "B": 0.1, "C": 0.8, "D": 0.05}


def mixed_by_hand(done):
    """The joint distribution of that graph, each factor written out; by state (a, b, c, d)."""
    table = {}
    for a, b, c, d in product((0, 1), repeat=4):
        present = {
            "A": 0.35,
            "B": 1 - 0.9 * (0.3 if a else 1),
            "C": 0.8,
            "D": (1 - 0.95 * (0.4 if a else 1) * (0.7 if c else 1)) * (0.6 if b else 1),
        }
        weight = 1.0
        for name, value in zip("ABCD", (a, b, c, d), strict=True):
            chance = done.get(name, present[name])
            weight *= chance if value else 1 - chance
        table[a, b, c, d] = weight
    return table


def test_every_question_of_a_mixed_graph_is_answered_as_by_hand():
    """Each variable, given any state and intervention of the three others: 3 * 5 ** 3 and more."""
    network = CausalNetwork(STRENGTHS, BASE)
    for query in "ABCD":
        others = [name for name in "ABCD" if name != query]
        for roles in product(("-", "see 0", "see 1", "do 0", "do 1"), repeat=3):
            told = dict(zip(others, roles, strict=True))
            given = {n: int(r[-1]) for n, r in told.items() if r.startswith("see")}
            done = {n: int(r[-1]) for n, r in told.items() if r.startswith("do")}
            table = mixed_by_hand(done)
            fits = [s for s in table if all(s["ABCD".index(n)] == v for n, v in given.items())]
            hand = sum(table[s] for s in fits if s["ABCD".index(query)]) / sum(map(table.get, fits))
            assert network.answer(query, given, done) == pytest.approx(hand, rel=1e-12)


def test_a_producing_cause_explains_away_and_a_preventing_one_does_not():
    """Given the effect, a second producer lowers the first one's probability.

    A preventer multiplies the effect's probability whatever produced it, so that their odds stay;
    given that the effect is absent, it is the preventer that explains this.
    """
    for strength, seen in ((0.6, 1), (-0.6, 0)):
        network = CausalNetwork({("A", "C"): 0.6, ("B", "C"): strength}, 0.2)
        moved = [
            network.answer("A", {"B": 1, "C": c}) - network.answer("A", {"C": c}) for c in (0, 1)
        ]
        assert (moved[1] < -0.1, moved[0] > 0.01) == (strength > 0, strength < 0)
        assert moved[1 - seen] == pytest.approx(0.0, abs=1e-12)
