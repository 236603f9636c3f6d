"""Preference: a text about a draw between two named options breaks off right before the name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, ClassVar, Literal, get_args

from knownminds.environments.fields import SomeOf, setting

from .chance import Chance, share_of
from .context_grid import MARKS, NONE, Context, ContextGrid, Values, marks_of_places, weights_to

Kind = Literal["single", "independent"]
Pair = Literal["heads_tails", "left_right"]
KINDS: tuple[str, ...] = get_args(Kind)
PAIRS: tuple[str, ...] = get_args(Pair)
NAMES = (("heads", "tails"), ("left", "right"))
HEAVIEST = 9998  # the number of a context has room for no larger weight


class Preference(ContextGrid):
    """Which of two named options is drawn; every trial is a separate context.

    A session goes once through 36 contexts, in mixed order. A context has the pair of names, which
    of them is named first, how much more often that one is drawn than the other, and a kind: one
    draw ("single"), or a second draw that does not depend on the first ("independent"), which may
    have been either. Nothing is paid, and no prompt tells of earlier trials.

    The action is 0 for heads or left, 1 for tails or right, whichever is named first. The option
    that is named first has the probability k / (k + 1).
    """

    name = "preference"
    summary = "which of two named options is drawn, 36 contexts, no rewards"
    source = "Mondal, Dolamic, Bovet, Cudré-Mauroux and Audiffren 2024, scenario preference"
    kind_names = KINDS
    shared = ("pair", "first", "weight")
    factors: ClassVar = {
        "pair": (0, 1, "0 heads and tails, 1 left and right"),
        "first": (0, 1, "option that is named first, as an action"),
        "weight": (1, 3, "how many times as often that one is drawn as the other"),
        "kind": (0, 1, "0 single, 1 independent"),
        "previous": (-1, 1, "option drawn before; -1 where there is none"),
    }
    recorded: ClassVar = {"pairs": "pair", "weights": "weight", "kinds": "kind"}
    scenario = 4
    digits = (1, 1, 4, 1, 1)
    n_actions = 2

    pairs: tuple[Pair, ...] = setting(PAIRS, SomeOf(PAIRS), "Which pairs of names are used.")
    weights: tuple[int, ...] = setting(
        (1, 2, 3),
        weights_to(HEAVIEST),
        "How many times as often as the other the option named first is drawn; whole numbers.",
    )
    kinds: tuple[Kind, ...] = setting(KINDS, SomeOf(KINDS), "Which part of the grid is used.")

    @classmethod
    def context_at(cls, values: Values) -> Context:
        pair, first, weight, kind, previous = values
        share = share_of(weight)
        shares = (share, 1 - share) if first == 0 else (1 - share, share)
        chance, said = Chance((0, 1), shares), previous if kind else None
        marks = marks_of_places(chance, said)
        marks[:, MARKS.index("first")] = [first == 0, first == 1]
        marks[0, MARKS.index(NAMES[pair][0])] = True
        return Context(cls.name, values, chance, said, marks)

    def _all(self) -> Iterator[Values]:
        for pair, first, weight, kind in product(self.pairs, (0, 1), self.weights, self.kinds):
            for previous in (NONE,) if kind == "single" else (0, 1):
                yield PAIRS.index(pair), first, weight, KINDS.index(kind), previous

    def _parts(self, values: Values) -> tuple[Sequence[str], str, dict[str, Any]]:
        _, first, weight, kind, previous = values
        names = self._names(values)
        words = {
            "first": names[first],
            "other": names[1 - first],
            "weight": weight,
            "previous": names[previous],
        }
        return ("setup", "fair" if weight == 1 else "weighted"), KINDS[kind], words

    def _names(self, values: Values) -> list[str]:
        return [self._words[name].text for name in NAMES[values[0]]]
