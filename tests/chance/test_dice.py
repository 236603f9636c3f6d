from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from played import observations

from knownminds.environments import Dice, complete_grid, context_of
from knownminds.environments.chance.context_grid import DISTRACTORS, LETTERS, MARKS
from knownminds.environments.chance.dice import FACES, KINDS, OBSERVATIONS, SIZES

ALL = [(n, faces) for n in SIZES for faces in FACES]


def key(seen):
    return tuple(seen[name] for name in Dice.factors)


# ---------------------------------------------------------------- the grid


def test_the_complete_grid_has_the_contexts_of_the_four_scenarios():
    def sizes(even_faces):
        found = {}
        for environment in complete_grid(even_faces=even_faces):
            found[environment.name] = found.get(environment.name, 0) + environment.n_trials
        return found

    rest = {"coins": 96, "choice": 15, "preference": 36}
    assert sizes(even_faces=False) == {"dice": 621, **rest}
    assert sizes(even_faces=True) == {"dice": 345, **rest}
    cells = [
        int(cell)
        for environment in complete_grid()
        for cell in environment.cells(np.array([c.values for c in environment.contexts]))
    ]
    assert len(set(cells)) == len(cells) == 768


@pytest.mark.parametrize(("n", "faces"), [(1, 4), (2, 7), (3, 12)])
def test_the_grid_is_that_of_the_scenario(n, faces):
    middle = (n + n * faces) // 2
    whole = {(0, -1, -1, -1)}
    whole |= {(kind, before, -1, -1) for kind in (1, 2) for before in (n, middle, n * faces)}
    whole |= {(3, -1, code, -1) for code in range(6)}
    whole |= {(4, -1, size, other) for size in (0, 1) for other in (2, 3, 4, 5)}
    whole |= {(4, -1, 2, 4), (4, -1, 2, 5)}
    assert len(whole) == 23
    assert {key(seen) for seen in observations(Dice(n, faces))} == {
        (n, faces, *rest) for rest in whole
    }


# ---------------------------------------------------------------- the truth


def rule(name, n, faces):
    """What an observation says, by other words than those of the module."""
    halfway = int(np.floor((n + n * faces) / 2))
    return {
        "smaller": range(halfway + 1),
        "larger": range(halfway + 1, n * faces + 1),
        "even": range(0, n * faces + 1, 2),
        "odd": range(1, n * faces + 1, 2),
        "not_first": set(range(n * faces + 1)) - {n},
        "not_middle": set(range(n * faces + 1)) - {halfway},
    }[name]


@pytest.mark.parametrize(("n", "faces"), ALL)
def test_the_truth_of_every_context_is_what_counting_all_throws_gives(n, faces):
    environment = Dice(n, faces)
    sums = np.bincount(
        [sum(throw) for throw in product(range(1, faces + 1), repeat=n)], minlength=n * faces + 1
    )
    for seen in observations(environment):
        kept = set(range(n, n * faces + 1))
        for code in (seen["observation"], seen["second"]):
            if code >= 0:
                kept &= set(rule(OBSERVATIONS[code], n, faces))
        total = sum(int(sums[k]) for k in kept)
        added = seen["previous"] if KINDS[seen["kind"]] == "dependent" else 0
        counted = {
            str(k + added): Fraction(int(sums[k]) if k in kept else 0, total)
            for k in range(n, n * faces + 1)
        }
        chance = context_of(seen["cell"]).chance
        said = [environment.say((), action, seen) for action in range(environment.n_actions)]
        assert dict(zip(said, chance.shares, strict=True)) == counted
        assert environment.truth(seen).tolist() == [float(share) for share in counted.values()]


def test_marks_are_those_of_the_outcomes_that_are_said():
    def marked(mark, **values):
        seen = {"kind": 0, "previous": -1, "observation": -1, "second": -1, **values}
        context = Dice.context_at(tuple(seen[name] for name in Dice.factors))
        which = context.marks[:, MARKS.index(mark)]
        return [o for o, yes in zip(context.chance.outcomes, which, strict=True) if yes]

    two = {"dice": 2, "faces": 6}
    assert marked("first", **two) == [2]
    assert marked("middle", **two) == [7]
    assert marked("round", **two) == [10]
    assert marked("repeat", **two) == []
    assert marked("repeat", **two, kind=1, previous=7) == [7]
    # The sum of both throws is more than the first.
    assert marked("repeat", **two, kind=2, previous=7) == []
    assert marked("round", **two, kind=2, previous=12) == [20]
    assert marked("first", **two, kind=2, previous=12) == [14]
    # Of what is known to be larger than 7 the first is 8, the middle 10.
    assert marked("first", **two, kind=3, observation=1) == [8]
    assert marked("middle", **two, kind=3, observation=1) == [10]
    assert marked("heads", **two) == marked("left", **two) == []
    with pytest.raises(ValueError, match="read-only"):
        context_of(120710000).marks[:] = True


# ---------------------------------------------------------------- probabilities that are stated


@pytest.mark.parametrize("distractors", DISTRACTORS)
@pytest.mark.parametrize(("n", "faces"), [(1, 4), (2, 9), (3, 12)])
def test_the_right_letter_is_that_of_the_probability_of_the_outcome(n, faces, distractors):
    environment = Dice(n, faces, form="stated", distractors=distractors)
    plain = Dice(n, faces)
    assert environment.n_actions == 5
    for seen in observations(environment, seed=2):
        text = environment.render((), seen, []).messages[0].content
        options = environment.options(seen)
        share = context_of(seen["cell"]).chance.shares[seen["asked"]]
        assert options[seen["correct"]] == f"{float(share):.3f}"
        assert len(set(options)) == 5
        assert distractors == "published" or all(0 < float(option) < 1 for option in options)
        lines = [f"{letter}) {option}" for letter, option in zip(LETTERS, options, strict=True)]
        assert "\n".join(lines) in text
        assert f" {plain.say((), seen['asked'], seen)}?" in text
        assert environment.truth(seen).tolist() == [k == seen["correct"] for k in range(5)]
        assert environment.say((), seen["correct"], seen) == LETTERS[seen["correct"]]
        assert environment.parse((), "E", seen).action == 4
        assert environment.parse((), "F", seen).outcome == "malformed"
