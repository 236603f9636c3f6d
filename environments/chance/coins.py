"""Coins: a text about tossed coins breaks off, and a number has to complete it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, ClassVar, Literal, get_args

from knownminds.environments.fields import OneOf, SomeOf, setting

from .chance import binomial, share_of
from .context_grid import NONE, Context, ContextGrid, Values, weights_to

Face = Literal["heads", "tails"]
Kind = Literal["single", "independent", "dependent"]
FACES: tuple[str, ...] = get_args(Face)
KINDS: tuple[str, ...] = get_args(Kind)
SIZES = (2, 3)
HEAVIEST = 9998  # the number of a context has room for no larger weight


class Coins(ContextGrid):
    """How many of some tossed coins show a face; every trial is a separate context.

    A session goes once through the grid of contexts, in mixed order. A context has the face that is
    counted, how much more often it comes up than the other face, and a kind: one toss ("single"), a
    second toss that does not depend on the first ("independent"), or a second toss whose number is
    added to that of the first ("dependent"). The number of the first toss is shown. That makes 42
    contexts of 2 coins and 54 of 3. Nothing is paid, and no prompt tells of earlier trials.

    The action is how many of the coins of the last toss show the face. The answer in words is that
    number, or, after a dependent toss, the sum of both tosses. The truth is the same for all three
    kinds: a binomial distribution in which the face has the probability k / (k + 1).

    To draw many answers to the same context, play many sessions: each has a sampling seed of its
    own. Within a session all prompts share one seed, so that a repeated context would bring the
    same answer again.
    """

    name = "coins"
    summary = "how many of 2 or 3 tossed coins show a face, 42 or 54 contexts, no rewards"
    source = "Mondal, Dolamic, Bovet, Cudré-Mauroux and Audiffren 2024, scenario coins"
    kind_names = KINDS
    shared = ("coins", "face", "weight")
    factors: ClassVar = {
        "coins": (2, 3, "how many coins"),
        "face": (0, 1, "the one that is counted: 0 heads, 1 tails"),
        "weight": (1, 5, "how many times as often it comes up as the other"),
        "kind": (0, 2, "0 single, 1 independent, 2 dependent"),
        "previous": (-1, 3, "number of the first toss; -1 where there is none"),
    }
    recorded: ClassVar = {"n_coins": "coins", "faces": "face", "weights": "weight", "kinds": "kind"}
    scenario = 2
    digits = (1, 1, 4, 1, 1)
    n_actions = 3  # one more than there are coins

    n_coins: int = setting(2, OneOf(SIZES), "2 or 3.")
    faces: tuple[Face, ...] = setting(FACES, SomeOf(FACES), "Which faces are counted.")
    weights: tuple[int, ...] = setting(
        (1, 3, 5),
        weights_to(HEAVIEST),
        "How many times as often as the other face the counted one comes up; whole numbers.",
    )
    kinds: tuple[Kind, ...] = setting(KINDS, SomeOf(KINDS), "Which part of the grid is used.")

    @classmethod
    def context_at(cls, values: Values) -> Context:
        coins, _, weight, kind, previous = values
        chance = binomial(coins, share_of(weight))
        if KINDS[kind] == "dependent":
            chance = chance.shifted(previous)
        return Context.of_numbers(cls.name, values, chance, previous if kind else None)

    def _all(self) -> Iterator[Values]:
        for face, weight, kind in product(self.faces, self.weights, self.kinds):
            for previous in (NONE,) if kind == "single" else range(self.n_coins + 1):
                yield self.n_coins, FACES.index(face), weight, KINDS.index(kind), previous

    def _parts(self, values: Values) -> tuple[Sequence[str], str, dict[str, Any]]:
        coins, face, weight, kind, previous = values
        words = {
            "n_coins": coins,
            "face": self._words[FACES[face]].text,
            "other": self._words[FACES[1 - face]].text,
            "weight": weight,
            "previous": previous,
        }
        return ("setup", "fair" if weight == 1 else "weighted"), KINDS[kind], words
