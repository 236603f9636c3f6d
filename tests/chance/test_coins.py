from itertools import product

import pytest
from played import observations

from knownminds.environments import Coins
from knownminds.environments.chance.coins import SIZES


def key(seen):
    """The context of an observation."""
    return tuple(seen[name] for name in Coins.factors)


# ---------------------------------------------------------------- the grid


def test_the_grid_has_the_contexts_of_the_scenario():
    sizes = {n: Coins(n).n_trials for n in SIZES}
    assert sizes == {2: 42, 3: 54}
    assert sum(sizes.values()) == 96
    for n in SIZES:
        seen = {key(c) for c in observations(Coins(n))}
        whole = set()
        for face, weight in product((0, 1), (1, 3, 5)):
            whole.add((n, face, weight, 0, -1))
            for kind, previous in product((1, 2), range(n + 1)):
                whole.add((n, face, weight, kind, previous))
        assert seen == whole


# ---------------------------------------------------------------- the truth


@pytest.mark.parametrize("n", SIZES)
def test_the_truth_is_what_counting_all_cases_gives(n):
    environment = Coins(n)
    for seen in observations(environment):
        coin = [seen["face"]] * seen["weight"] + [1 - seen["face"]]
        counted = {}
        for throw in product(coin, repeat=n):
            number = sum(side == seen["face"] for side in throw)
            said = str(number + (seen["previous"] if seen["kind"] == 2 else 0))
            counted[said] = counted.get(said, 0) + 1
        told = [environment.say((), action, seen) for action in range(environment.n_actions)]
        truth = dict(zip(told, environment.truth(seen).tolist(), strict=True))
        assert truth == {said: count / len(coin) ** n for said, count in counted.items()}
