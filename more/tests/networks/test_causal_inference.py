"""Causal inference: exact answers by another sum, words, reasoners told apart, measures by hand."""

from itertools import product

import numpy as np
import pytest

from knownminds import confuse
from knownminds.environments import CausalNetwork, make, session_stream
from knownminds.environments.causes.network_questions import (
    NETWORK,
    QUESTION,
    TOLD,
    columns_of,
    exact_answers,
    network_of,
    questions,
    separated,
)
from knownminds_more.networks.causal_inference import CausalInference

MIXED = {"graph": "A>B, A>C, B>D, C>D", "strengths": (0.7, -0.6, 0.8, -0.3), "told": 3}
BASES = (0.4, 0.2, 0.5, 0.6)


def rows_of(place):
    """Every question that a session asks, as columns."""
    table = place.draw(session_stream(1)).table
    return {name: np.asarray(table[name], float) for name in (*NETWORK, *QUESTION)}


def by_network(network, columns, row):
    told = [int(columns[name][row]) for name in TOLD]
    names = network.variables
    given = {n: x for n, x in zip(names, told, strict=False) if x in (0, 1)}
    done = {n: x - 2 for n, x in zip(names, told, strict=False) if x >= 2}
    return network.answer(names[int(columns["query"][row])], given, done)


def test_exact_answers_are_those_of_the_network():
    place = CausalInference(**MIXED, bases=BASES)
    columns = rows_of(place)
    network = place.network
    assert len(questions(4, 3, "some")) == place.n_trials == 320
    hand = [by_network(network, columns, row) for row in range(place.n_trials)]
    assert exact_answers(columns) == pytest.approx(hand, rel=1e-12)
    seen = {n: np.where(columns[n] >= 2, columns[n] - 2, columns[n]) for n in TOLD}
    assert exact_answers(columns, seeing=True) == pytest.approx(exact_answers({**columns, **seen}))
    again = network_of({name: column[0] for name, column in columns.items()})
    assert columns_of(again) == columns_of(network)


def test_separation_is_independence_whatever_the_strengths():
    """Two draws of strengths: what is screened off changes no answer, what is not changes one."""
    rng = np.random.default_rng(5)
    found = set()
    for graph, (_, query, given) in product(
        ("A>B, B>C, C>D", "A>C, B>C, C>D", "A>B, A>C, B>D, C>D", "B>A, B>C, A>D"),
        ((0, 3, ()), (0, 3, (1,)), (0, 3, (2,)), (1, 2, (0,)), (0, 1, ()), (0, 1, (3,))),
    ):
        pairs = [tuple(edge.split(">")) for edge in graph.split(", ")]
        network = CausalNetwork(
            dict(zip(pairs, rng.uniform(0.3, 0.8, len(pairs)), strict=True)), 0.3
        )
        for variable in range(4):
            if variable in (query, *given):
                continue
            told = {name: [-1, -1] for name in TOLD}
            for other in given:
                told[TOLD[other]] = [1, 1]
            told[TOLD[variable]] = [1, 0]
            columns = {k: np.full(2, v) for k, v in columns_of(network).items()}
            columns |= {"query": np.full(2, query), **{k: np.array(v) for k, v in told.items()}}
            one, other = exact_answers(columns)
            assert separated(columns, variable, 0) == (abs(one - other) < 1e-12)
            found.add(abs(one - other) < 1e-12)
    assert found == {True, False}


@pytest.mark.long
def test_who_ignores_interventions_is_told_from_who_does_not():
    """Of 20 data sets each; with 17 of 20 right, chance (1/3) has p < 1e-5."""
    names = ["network_reasoner_exact", "network_reasoner_seeing", "network_reasoner_associative"]
    found = confuse(make("causal_inference", graph="chain"), names, replicates=20, seed=1)
    shares = found["Data sets by model"]["best fitted by itself"]["AIC"]
    assert list(shares.index) == names
    assert (shares.map(float) >= 17 / 20).all()
