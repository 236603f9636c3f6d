import numpy as np
import pytest

from knownminds.environments.causes.causal_graph import (
    EDGES,
    GRAPHS,
    TASKS,
    conditional,
    direction_of,
    logistic_joint,
    noisy_or_joint,
    noisy_or_table,
    questions,
    task_of,
)

MINDS = np.random.default_rng(1).uniform(0.05, 0.95, size=(200, 5))  # p1, p2, b, m1, m2


def columns(graph, directions="both"):
    return np.array(questions(graph, directions)).T


def ask(states, query, **told):
    """Answer one question in words: ask(joint, "E", C1=1)."""
    place = {"C1": 0, "C2": 1, "E": 2, "C3": 2}
    values = [-1, -1, -1]
    for name, value in told.items():
        values[place[name]] = value
    return conditional(states, place[query], *values)[..., 0]


# ---------------------------------------------------------------- the questions


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


def test_the_closed_forms_of_the_collider_are_its_enumeration():
    p1, p2, b, m1, m2 = MINDS.T
    asked = columns("collider")
    table = noisy_or_table(p1, p2, b, m1, m2)
    exact = conditional(noisy_or_joint("collider", (p1, p2), b, (m1, m2)), *asked)
    closed = table[:, task_of(*asked), direction_of(*asked)]
    np.testing.assert_allclose(closed, exact, atol=1e-12)


def test_a_logistic_effect_has_log_odds_that_add_up():
    p1, p2 = MINDS[:, 0], MINDS[:, 1]
    b0, w1, w2 = np.random.default_rng(2).normal(0, 2, size=(3, 200))
    states = logistic_joint("collider", (p1, p2), b0, (w1, w2))
    effect = lambda c1, c2: 1 / (1 + np.exp(-(b0 + w1 * c1 + w2 * c2)))  # noqa: E731
    for c1 in (0, 1):
        for c2 in (0, 1):
            np.testing.assert_allclose(ask(states, "E", C1=c1, C2=c2), effect(c1, c2))
    np.testing.assert_allclose(
        ask(states, "C2", C1=1, E=0),
        p2 * (1 - effect(1, 1)) / (p2 * (1 - effect(1, 1)) + (1 - p2) * (1 - effect(1, 0))),
    )
    extreme = logistic_joint("chain", 0.5, -800.0, (1600.0, 3.0))
    assert np.isfinite(extreme).all()


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
    states = noisy_or_joint(graph, p, b, m)
    for query, *told in questions(graph):
        fits = np.ones(n, dtype=bool)
        for variable, value in enumerate(told):
            fits &= (value == -1) | (world[:, variable] == value)
        exact = conditional(states, query, *told)[0]
        error = np.sqrt(exact * (1 - exact) / fits.sum())
        # 68 comparisons: none beyond 4.5 standard errors, which chance does once in 2,000 runs
        assert abs(world[fits, query].mean() - exact) < 4.5 * error, (query, told)
