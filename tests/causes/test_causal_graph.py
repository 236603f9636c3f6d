import numpy as np
import pytest

from knownminds.environments.causes.causal_graph import (
    EDGES,
    GRAPHS,
    TASKS,
    direction_of,
    noisy_or_table,
    questions,
    task_of,
)
from knownminds.environments.causes.network_questions import BASES, STRENGTHS, exact_answers

MINDS = np.random.default_rng(1).uniform(0.05, 0.95, size=(200, 5))  # p1, p2, b, m1, m2


def columns(graph, directions="both"):
    return np.array(questions(graph, directions)).T


def answered(question, network):
    """Answers to a question by networks of three variables, by enumeration."""
    n = len(network["b1"])
    columns = dict.fromkeys((*BASES, *STRENGTHS), np.zeros(n)) | network
    told = dict(zip(("query", "first", "second", "third", "fourth"), (*question, -1), strict=True))
    return exact_answers(columns | {name: np.full(n, x) for name, x in told.items()})


def test_the_eleven_tasks_have_the_names_and_formulas_of_the_spec():
    told = {task.roman: (task.letter, task.formula) for task in TASKS}
    assert told == {
        "I": ("i", "P(E | C1=0, C2=0)"),
        "II": ("j", "P(E | C1=0, C2=1)"),
        "III": ("k", "P(E | C1=1, C2=1)"),
        "IV": ("d", "P(C1 | C2=1)"),
        "V": ("e", "P(C1 | C2=0)"),
        "VI": ("a", "P(C1 | C2=1, E=1)"),
        "VII": ("b", "P(C1 | E=1)"),
        "VIII": ("c", "P(C1 | C2=0, E=1)"),
        "IX": ("f", "P(C1 | C2=1, E=0)"),
        "X": ("g", "P(C1 | E=0)"),
        "XI": ("h", "P(C1 | C2=0, E=0)"),
    }


# ---------------------------------------------------------------- what graphs answer


def test_the_table_of_the_collider_has_the_answers_of_its_questions():
    p1, p2, b, m1, m2 = MINDS.T
    asked = columns("collider")
    table = noisy_or_table(p1, p2, b, m1, m2)
    named = {"b1": p1, "b2": p2, "b3": b, "w13": m1, "w23": m2}
    exact = np.column_stack([answered(question, named) for question in asked.T])
    np.testing.assert_allclose(table[:, task_of(*asked), direction_of(*asked)], exact, atol=1e-12)


def test_tables_are_right_by_hand_and_have_an_answer_where_causes_are_certain():
    p, b, m = 0.3, 0.1, 0.8
    e = (b, 1 - (1 - b) * (1 - m), 1 - (1 - b) * (1 - m) ** 2)  # by how many causes are present
    table = noisy_or_table(p, p, b, m, m)
    assert table[:3, 0] == pytest.approx(e)
    assert table[5, 0] == pytest.approx(p * e[2] / (p * e[2] + (1 - p) * e[1]))
    assert np.isfinite(noisy_or_table(1.0, 0.0, b, m, m)).all()


@pytest.mark.parametrize("graph", GRAPHS)
def test_worlds_in_which_mechanisms_fire_by_chance_show_the_same_shares(graph):
    rng = np.random.default_rng(3)
    n, p, b, m = 200_000, 0.4, 0.15, (0.8, 0.5)
    world = np.zeros((n, 3), dtype=bool)
    for variable in range(3):
        edges = [i for i, (_, effect) in enumerate(EDGES[graph]) if effect == variable]
        world[:, variable] = rng.random(n) < (b if edges else p)
        for i in edges:
            world[:, variable] |= world[:, EDGES[graph][i][0]] & (rng.random(n) < m[i])
    effects = {effect for _, effect in EDGES[graph]}
    named = {f"b{k + 1}": np.full(1, b if k in effects else p) for k in range(3)}
    named |= {f"w{i + 1}{j + 1}": np.full(1, w) for (i, j), w in zip(EDGES[graph], m, strict=True)}
    for query, *told in questions(graph):
        fits = np.ones(n, dtype=bool)
        for variable, value in enumerate(told):
            fits &= (value == -1) | (world[:, variable] == value)
        exact = answered((query, *told), named)[0]
        error = np.sqrt(exact * (1 - exact) / fits.sum())
        # 68 comparisons: none beyond 4.5 standard errors, which chance does once in 2,000 runs
        assert abs(world[fits, query].mean() - exact) < 4.5 * error, (query, told)
