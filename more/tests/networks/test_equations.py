"""A network reasoner against a network of other strengths, question by question."""

import numpy as np
import pytest

from knownminds.agents import AGENTS
from knownminds.environments import CausalNetwork
from knownminds_more.networks.causal_inference import CausalInference


def test_the_answers_of_a_network_reasoner_are_those_of_a_network_of_other_strengths():
    """Scaled strengths are a network of its own; neglect and association mix its answers."""
    place = CausalInference(graph="A>B, A>C, B>D, C>D", strengths=(0.7, -0.6, 0.8, -0.3), told=3,
                            bases=(0.4, 0.2, 0.5, 0.6))  # fmt: skip
    n, s, r, k = 0.3, 1.7, 0.6, 0.2
    own = CausalNetwork(
        {edge: np.sign(w) * (1 - (1 - abs(w)) ** s) for edge, w in place.network.strengths.items()},
        {name: 1 - (1 - b) ** r for name, b in place.network.bases.items()},
    )
    mind = AGENTS["network_reasoner"](neglect=n, strength_scale=s, base_scale=r, k=k, sigma=0.1)
    table = place.draw(np.random.default_rng(1)).table
    for row in range(0, place.n_trials, 7):
        seen = {name: float(column[row]) for name, column in table.items()}
        names = ("first", "second", "third", "fourth")
        known_values = {v: int(seen[name]) for v, name in zip("ABCD", names, strict=True)}
        given = {v: x for v, x in known_values.items() if x in (0, 1)}
        done = {v: x - 2 for v, x in known_values.items() if x >= 2}
        query = "ABCD"[int(seen["query"])]
        known = {**given, **done}
        exact = [own.answer(query, given, done), own.answer(query, known, {})]
        hand = (1 - k) * ((1 - n) * exact[0] + n * exact[1]) + k * np.mean(list(known.values()))
        assert mind.predict(seen) == pytest.approx(hand, abs=1e-9)
