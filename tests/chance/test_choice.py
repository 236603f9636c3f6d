import numpy as np
import pytest
from played import observations

from knownminds.environments import Choice
from knownminds.environments.chance.choice import OPTIONS, SIZES
from knownminds.environments.chance.context_grid import MARKS


def test_the_grid_has_one_pick_and_a_second_one_after_each_option():
    assert {n: Choice(n).n_trials for n in SIZES} == {2: 3, 4: 5, 6: 7}
    for n in SIZES:
        seen = {tuple(s[name] for name in Choice.factors) for s in observations(Choice(n))}
        assert seen == {(n, 0, -1)} | {(n, 1, previous) for previous in range(n)}


@pytest.mark.parametrize("n", SIZES)
def test_every_option_has_the_same_probability_whatever_came_before(n):
    environment = Choice(n)
    assert environment.n_actions == n
    for seen in observations(environment):
        assert environment.truth(seen).tolist() == [1 / n] * n
        assert [environment.say((), k, seen) for k in range(n)] == list("ABCDEF"[:n])


def test_the_first_option_is_marked_the_middle_one_and_the_one_before():
    def marked(n, previous=-1):
        marks = Choice.context_at((n, int(previous >= 0), previous)).marks
        return {
            name: "".join(OPTIONS[k] for k in np.flatnonzero(column))
            for name, column in zip(MARKS, marks.T, strict=True)
        }

    none = {"round": "", "heads": "", "left": ""}
    assert marked(2) == {"first": "A", "middle": "", "repeat": "", **none}
    assert marked(4, 3) == {"first": "A", "middle": "B", "repeat": "D", **none}
    assert marked(6, 0) == {"first": "A", "middle": "C", "repeat": "A", **none}
