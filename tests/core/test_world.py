"""A world is written once: followed along whole sessions it does what the step loop does."""

import numpy as np
import pytest

from knownminds.environments import ENVIRONMENTS, Table, World, make
from knownminds.environments.world import TrialTables, follow_world, plain


class Walk(World):
    """Nobody's world: as many ways of writing as possible."""

    span = "walk"
    turns = Table([[0, 1, 2], [2, 0, 1]])

    def begin(self):
        self.at = 0
        self.visits = np.zeros(3)
        self.tired = 0.0

    def show(self, drawn):
        if drawn.wind and self.at == 2:
            self.at = 0
        bonus = max(self.tired, drawn.height)
        steep = 1.0 if drawn.height > 0.5 and self.tired > 0.2 else 0.0
        return {
            "place": self.at,
            "bonus": np.where(steep > 0.0, bonus, -bonus),
            "seen": self.visits[self.at],
            "present": self.tired < 1.6,
        }

    def pay(self, drawn, action):
        if action < 0:
            self.tired = 0.0
            return None
        self.visits[self.at] += 1
        self.at = self.turns[action, self.at]
        self.tired += np.clip(drawn.height, 0.2, 0.8)
        if self.at == drawn.wind:
            return drawn.gains[action] - drawn.wind
        return None if self.tired > 1.2 else drawn.gains[1 - action]


def tables(n, n_trials, seed=0):
    rng = np.random.default_rng(seed)
    shape = (n, n_trials)
    return {
        "walk": np.broadcast_to(np.arange(n_trials) // 5, shape),
        "wind": rng.random(shape) < 0.4,
        "height": rng.random(shape),
        "gains": rng.integers(0, 9, (*shape, 2)),
        "present": rng.random(shape) < 0.9,
    }


def lived(world, table, actions):
    """Live a session trial by trial, on numbers, as a session does."""
    place, drawn, walk = world(), TrialTables(table), None
    place.begin()
    for t, action in enumerate(actions.tolist()):
        if not table["present"][t]:
            continue
        if world.span and table[world.span][t] != walk:
            walk = table[world.span][t]
            place.begin()
        drawn.at(t)
        shown = {name: plain(value) for name, value in place.show(drawn).items()}
        if shown.pop("present"):
            reward = plain(place.pay(drawn, action))
            yield t, {**shown, "reward": np.nan if reward is None else reward}


class WholeWalk(Walk):
    span = None


@pytest.mark.parametrize("world", [Walk, WholeWalk])
def test_what_follows_from_actions_is_what_the_step_loop_shows_and_pays(world):
    n, n_trials = 40, 22
    table = tables(n, n_trials)
    actions = np.random.default_rng(1).integers(-1, 2, (n, n_trials))
    brought = follow_world(world, table, actions)
    assert set(brought) == {"reward", "place", "bonus", "seen", "present"}
    for i in range(n):
        own = {name: column[i] for name, column in table.items()}
        alone = dict(lived(world, own, actions[i]))
        assert np.flatnonzero(brought["present"][i]).tolist() == list(alone)
        for t, told in alone.items():
            for name, value in told.items():
                assert np.array_equal(brought[name][i, t], value, equal_nan=True), (i, t, name)
        one = follow_world(world, own, actions[i])
        for name, column in one.items():
            assert np.array_equal(column, brought[name][i], equal_nan=True)
    fell = table["present"] & ~brought["present"]
    assert 20 < fell.sum() < 600  # of 880: both happen


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_shapes_of_a_designs_tables_are_those_it_draws(name):
    small = {"network": "fever", "n_contexts": 5} if name == "diagnosis" else {}
    place = make(name, **small)
    tables = place.tables(np.full((1, place.n_draws), 0.5))
    assert place.drawn == {name: table.shape[2:] for name, table in tables.items()}
