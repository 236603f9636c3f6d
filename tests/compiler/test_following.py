"""What actions bring in many sessions: a printed loop says what the world says, or is not used."""

from types import SimpleNamespace

import numpy as np
import pytest

from knownminds.agents import HorizonExplorer, World, simulate
from knownminds.agents.compiler import following
from knownminds.environments import (
    ENVIRONMENTS,
    Design,
    Environment,
    InstrumentalLearning,
    make,
)
from knownminds.environments.streams import session_uniforms

SIZES = {"diagnosis": {"network": "fever", "n_contexts": 3}, "two_step": {"n_days": 40}}


def in_python(text, *_):
    names = {}
    exec(text.replace("from numba import njit", "njit = lambda **_: lambda f: f"), names)
    return SimpleNamespace(**names)


@pytest.fixture(autouse=True)
def kernels(monkeypatch):
    """Print for few sessions too, and run the text as plain Python: nothing is compiled."""
    monkeypatch.setattr(following, "FEWEST", 0)
    monkeypatch.setattr(following, "loaded", in_python)
    monkeypatch.setattr(following, "_known", {})
    return following._known


def drawn(environment, n, seed):
    rng = np.random.default_rng(seed)
    uniforms = session_uniforms(seed, [(k,) for k in range(n)], environment.n_draws)
    tables = environment.tables(uniforms)
    actions = rng.integers(0, max(environment.n_actions, 1), (n, environment.n_trials))
    actions[rng.random(actions.shape) < 0.1] = -1  # no answer
    return tables, actions


def remembers(name):
    environment = make(name, **SIZES.get(name, {}))
    place = environment.world()
    place.begin()
    return vars(place) and type(environment).follow is Environment.follow


NAMES = ["instrumental_learning", *filter(remembers, ENVIRONMENTS)]


def test_worlds_that_remember_are_among_the_registered_ones():
    assert {"horizon", "balloon_risk", "iowa_gambling"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_printed_loop_brings_what_the_world_does(name, kernels):
    environment = make(name, **SIZES.get(name, {}))
    following.follow(environment, *drawn(environment, 4, 1))  # printed, and held against the world
    (kernel,) = following._known.values()
    assert kernel is not None
    tables, actions = drawn(environment, 3, 2)
    got, expected = kernel(tables, actions), environment.follow(Design(tables), actions)
    assert list(got) == list(expected)
    there = expected.get("present", np.ones(actions.shape, dtype=bool))
    for column, values in expected.items():
        assert got[column].dtype == values.dtype, column
        assert np.array_equal(got[column][there], values[there], equal_nan=True), column
    again = following.follow(environment, tables, actions)
    assert all(np.array_equal(got[name], again[name], equal_nan=True) for name in got)


class Odd(World):
    """Pays otherwise than it says: the loop that is printed from symbols would be another."""

    def begin(self):
        self.count = 0

    def pay(self, drawn, action):
        self.count = self.count + 1
        return drawn.payoffs[action] * (2.0 if type(action).__name__ == "Lanes" else 1.0)


class Untraceable(Odd):
    def pay(self, drawn, action):
        self.count = self.count + 1
        return {0: 1.0}.get(self.count % 1, 1.0) + float(action.view(np.ndarray).sum() * 0)


@pytest.mark.parametrize("world", [Odd, Untraceable])
def test_where_the_loop_would_say_something_else_the_world_itself_is_run(world):
    place = InstrumentalLearning(n_visits=3)
    place.world = world
    tables, actions = drawn(place, 4, 1)
    for _ in range(2):
        got = following.follow(place, tables, actions)
        expected = place.follow(Design(tables), actions)
        assert np.array_equal(got["reward"], expected["reward"])
    assert list(following._known.values()) == [None]


def test_few_sessions_are_followed_by_the_world(monkeypatch):
    monkeypatch.setattr(following, "FEWEST", 10_000)
    place = make("horizon", n_games=5)
    following.follow(place, *drawn(place, 4, 1))
    assert not following._known


def test_simulations_are_the_same_by_either_way():
    place, model = make("horizon", n_games=20), HorizonExplorer
    theta = model.parameters.draw(np.random.default_rng(0), 5)
    first, second = (simulate(model, theta, place, 4).frame for _ in range(2))
    assert first.equals(second)
    assert any(kernel is not None for kernel in following._known.values())
