"""Dice: a text about thrown dice breaks off, and their sum has to complete it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal, get_args

from knownminds.environments.fields import OneOf, SomeOf, coded, setting

from .chance import Chance, uniform_sum
from .context_grid import NONE, Context, ContextGrid, Values

Kind = Literal["single", "independent", "dependent", "observation", "two_observations"]
Observed = Literal["smaller", "larger", "even", "odd", "not_first", "not_middle"]
KINDS: tuple[str, ...] = get_args(Kind)
OBSERVATIONS: tuple[str, ...] = get_args(Observed)
SIZES = (1, 2, 3)
FACES = tuple(range(4, 13))
PAIRS = (
    *((size, other) for size in ("smaller", "larger") for other in OBSERVATIONS[2:]),
    ("even", "not_first"),
    ("even", "not_middle"),
)

_FORMS = ("one", "many")  # templates for one die, and for several


class Dice(ContextGrid):
    """The sum of some thrown dice; every trial is a separate context.

    A session goes once through the 23 contexts of a number of dice and of faces, in mixed order:
    one throw ("single"); a second throw that does not depend on the first ("independent"), or whose
    result is added to that of the first ("dependent"), where the first was the lowest, the middle
    or the highest sum; and one throw of which one fact ("observation") or two ("two_observations")
    are known. All 27 pairs of 1 to 3 dice and 4 to 12 faces make 621 contexts; those with an even
    number of faces make 345. Nothing is paid, and no prompt tells of earlier trials.

    The middle is half of the lowest plus the highest sum, rounded down. The facts that may be
    known: the sum is smaller than the middle + 1, larger than the middle, even, odd, not the
    lowest, or not the middle.

    The action is how far the sum of the last throw lies above the lowest sum. The answer in words
    is the sum, or, after a dependent throw, the sum of both throws. The truth is the distribution
    of a sum of uniform numbers, cut down to what is known; sums that are ruled out keep their
    action.
    """

    name = "dice"
    summary = "the sum of 1 to 3 dice of 4 to 12 faces, 23 contexts of each, no rewards"
    source = "Mondal, Dolamic, Bovet, Cudré-Mauroux and Audiffren 2024, scenario dice"
    kind_names = KINDS
    shared = ("dice", "faces")
    factors: ClassVar = {
        "dice": (1, 3, "how many dice"),
        "faces": (4, 12, "how many faces each has"),
        "kind": (0, 4, "0 single, 1 independent, 2 dependent, 3 one observation, 4 two"),
        "previous": (-1, 36, "sum of the first throw; -1 where there is none"),
        "observation": (-1, 5, f"what is known: {coded(OBSERVATIONS)}; -1 nothing"),
        "second": (-1, 5, "what else is known; -1 for nothing"),
    }
    recorded: ClassVar = {"n_dice": "dice", "n_faces": "faces", "kinds": "kind"}
    scenario = 1
    digits = (1, 2, 1, 2, 1, 1)
    n_actions = 6

    n_dice: int = setting(1, OneOf(SIZES), "1 to 3 dice.")
    n_faces: int = setting(6, OneOf(FACES), "4 to 12 faces.")
    kinds: tuple[Kind, ...] = setting(KINDS, SomeOf(KINDS), "Which part of the grid is used.")

    @classmethod
    def context_at(cls, values: Values) -> Context:
        dice, faces, kind, previous, *observed = values
        throw = uniform_sum(dice, faces)
        chance = throw
        for code in observed:
            if code != NONE:
                chance = chance.given(_holds(OBSERVATIONS[code], throw))
        if KINDS[kind] == "dependent":
            chance = chance.shifted(previous)
        said = previous if previous != NONE else None
        return Context.of_numbers(cls.name, values, chance, said)

    def _all(self) -> Iterator[Values]:
        throw = uniform_sum(self.n_dice, self.n_faces)
        before = (throw.outcomes[0], throw.middle, throw.outcomes[-1])
        for kind in self.kinds:
            begin = (self.n_dice, self.n_faces, KINDS.index(kind))
            if kind == "single":
                yield (*begin, NONE, NONE, NONE)
            elif kind in ("independent", "dependent"):
                for previous in before:
                    yield (*begin, previous, NONE, NONE)
            elif kind == "observation":
                for code in range(len(OBSERVATIONS)):
                    yield (*begin, NONE, code, NONE)
            else:
                for pair in PAIRS:
                    yield (*begin, NONE, *(OBSERVATIONS.index(name) for name in pair))

    def _parts(self, values: Values) -> tuple[Sequence[str], str, dict[str, Any]]:
        dice, faces, kind, previous, *observed = values
        throw = uniform_sum(dice, faces)
        first, second = (self._known(code, throw) for code in observed)
        words = {
            "n_dice": dice,
            "faces": faces,
            "lowest": throw.outcomes[0],
            "highest": throw.outcomes[-1],
            "previous": previous,
            "observation": first,
            "second": second,
        }
        form = _FORMS[dice > 1]
        return (f"setup_{form}",), f"{KINDS[kind]}_{form}", words

    def _known(self, code: int, throw: Chance) -> str:
        if code == NONE:
            return ""
        name = OBSERVATIONS[code]
        number = {
            "smaller": throw.middle + 1,
            "larger": throw.middle,
            "not_first": throw.outcomes[0],
            "not_middle": throw.middle,
        }
        return self._words[name].render(number=number.get(name))


def _holds(name: str, throw: Chance) -> Callable[[int], bool]:
    """Return whether an observation holds for a sum."""
    lowest, middle = throw.outcomes[0], throw.middle
    rules: dict[str, Callable[[int], bool]] = {
        "smaller": lambda number: number < middle + 1,
        "larger": lambda number: number > middle,
        "even": lambda number: number % 2 == 0,
        "odd": lambda number: number % 2 == 1,
        "not_first": lambda number: number != lowest,
        "not_middle": lambda number: number != middle,
    }
    return rules[name]
