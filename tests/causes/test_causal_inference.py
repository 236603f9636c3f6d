"""Causal inference: exact answers by another sum, words, reasoners told apart, measures by hand."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from knownminds import confuse
from knownminds.agents import AGENTS, simulate
from knownminds.environments import CausalInference, CausalNetwork, Trials, make
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
from knownminds.inference import MEASURES, ModelData

MIXED = {"graph": "A>B, A>C, B>D, C>D", "strengths": (0.7, -0.6, 0.8, -0.3), "told": 3}
BASES = (0.4, 0.2, 0.5, 0.6)


def rows_of(place):
    """Every question that a session asks, as columns."""
    place.reset(seed=1)
    return {name: np.asarray(place.design.table[name], float) for name in (*NETWORK, *QUESTION)}


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


def test_reasoners_answer_by_networks_of_their_own():
    """Scaled strengths are a network of other strengths; neglect and association mix answers."""
    place = CausalInference(**MIXED, bases=BASES)
    columns = rows_of(place)
    n, s, r, k = 0.3, 1.7, 0.6, 0.2
    edges = {
        edge: np.sign(w) * (1 - (1 - abs(w)) ** s) for edge, w in place.network.strengths.items()
    }
    bases = {name: 1 - (1 - b) ** r for name, b in place.network.bases.items()}
    other = {name: np.full(place.n_trials, x) for name, x in
             columns_of(CausalNetwork(edges, bases)).items()}  # fmt: skip
    told = np.stack([columns[name] for name in TOLD])
    share = ((told == 1) | (told == 3)).sum(axis=0) / (told >= 0).sum(axis=0)
    done, seen = (exact_answers({**columns, **other}, seeing) for seeing in (False, True))
    hand = (1 - k) * ((1 - n) * done + n * seen) + k * share
    mind = AGENTS["network_reasoner"](neglect=n, strength_scale=s, base_scale=r, k=k, sigma=0.1)
    for row in range(0, place.n_trials, 5):
        seen_now = {name: column[row] for name, column in columns.items()}
        assert mind.predict(seen_now) == pytest.approx(hand[row], abs=1e-9)


def test_the_likelihood_of_repeated_answers_is_a_sum_over_them():
    """Merged answers, with gradient, against densities one by one and differences."""
    model = AGENTS["network_reasoner"]
    place = CausalInference(interventions="all", repeats=2)
    theta = model.parameters.draw(np.random.default_rng(3), 2)
    trials = simulate(model, theta, place, seed=4)
    data = ModelData.read(model, trials)
    total, slope = data.log_likelihood(theta)
    frame = trials.frame
    for i, (_, own) in enumerate(frame.groupby("subject", sort=False)):
        mind = model.from_theta(theta[i])
        rows = own.to_dict("records")
        alone = sum(mind.log_density(row, row["response"]) for row in rows)
        assert total[i] == pytest.approx(alone, rel=1e-9)
    for j in range(theta.shape[1]):
        step = np.zeros_like(theta)
        step[:, j] = 1e-5 * theta[:, j]
        up, down = (data.log_likelihood(theta + sign * step)[0] for sign in (1, -1))
        assert slope[:, j] == pytest.approx((up - down) / (2 * step[:, j]), rel=1e-4, abs=1e-4)


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


def test_measures_are_differences_of_means_by_hand():
    """Each session's number from a plain loop over pairs of questions of a common effect."""
    place = CausalInference(repeats=2)
    model = AGENTS["network_reasoner"]
    trials = simulate(model, model.parameters.draw(np.random.default_rng(0), 4), place, seed=8)
    frame = trials.frame
    got = {name: MEASURES[name].values(trials).value for name in
           ("do_versus_see", "network_markov_violation", "network_explaining_away")}  # fmt: skip
    for i, (_, own) in enumerate(frame.groupby("subject", sort=False)):
        answer = (own.groupby(list(QUESTION))["response"].mean() / 100).to_dict()
        network = place.network
        x, y, violated, away = [], [], [], []
        for (query, *told), mean in answer.items():
            for v, value in enumerate(told):
                twin = [int(c) for c in told]
                if value in (0, 1):
                    twin[v] = int(value) + 2
                    made = answer.get((query, *twin))
                    if made is not None:
                        at = pd.DataFrame([[query, *told], [query, *twin]], columns=QUESTION)
                        columns = {k: np.full(2, w) for k, w in columns_of(network).items()}
                        exact = exact_answers({**columns, **{k: at[k].to_numpy() for k in at}})
                        x.append(exact[0] - exact[1])
                        y.append(mean - made)
                # The other cause, where nothing is told of the effect; and where it is present.
                if query < 2 and v == 1 - query and told[2] == -1 and value == 1:
                    twin = list(told)
                    twin[v] = 0
                    violated.append(mean - answer[(query, *twin)])
                if query < 2 and v == 1 - query and told[2] == 1 and value in (0, 2):
                    twin = list(told)
                    twin[v] = value + 1
                    away.append(mean - answer[(query, *twin)])
        assert (len(violated), len(away)) == (2, 4)
        slope = np.dot(x, y) / np.dot(x, x)
        assert got["do_versus_see"][i] == pytest.approx(slope)
        assert got["network_markov_violation"][i] == pytest.approx(np.mean(violated))
        assert got["network_explaining_away"][i] == pytest.approx(np.mean(away))


def test_who_ignores_interventions_is_told_from_who_does_not():
    """Of 20 data sets each; with 17 of 20 right, chance (1/3) has p < 1e-5."""
    names = ["network_reasoner_exact", "network_reasoner_seeing", "network_reasoner_associative"]
    found = confuse(make("causal_inference", graph="chain"), names, replicates=20, seed=1)
    [aic] = [one for one in found.confusions if one.criterion == "aic"]
    assert aic.models == tuple(names)
    assert (np.diag(aic.counts) >= 17).all()


def test_performance_is_the_distance_from_the_exact_answer():
    place = CausalInference()
    columns = {k: [v] for k, v in columns_of(place.network).items()}
    row = dict(zip(QUESTION, ([0], [-1], [1], [1], [-1]), strict=True))
    frame = pd.DataFrame({**columns, **row, "subject": ["s"], "session": [0], "trial": [0],
                          "environment": ["causal_inference"], "response": [50.0],
                          "outcome": ["ok"]})  # fmt: skip
    # P(A | B, C): with both present C has 1 - .75 * .25 ** 2, without A 1 - .75 * .25.
    both, one = 0.25 * (1 - 0.75 * 0.25**2), 0.75 * (1 - 0.75 * 0.25)
    exact = both / (both + one)
    got = place.performance(Trials.from_frame(frame))
    assert got == pytest.approx([1 - abs(0.5 - exact)])
