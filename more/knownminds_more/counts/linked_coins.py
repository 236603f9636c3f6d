"""Linked coins: each toss depends on the one before, and a number of faces completes a text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from knownminds.environments.chance.chance import chained, share_of
from knownminds.environments.chance.coins import FACES, Face
from knownminds.environments.chance.context_grid import (
    NONE,
    Context,
    ContextGrid,
    Values,
    weights_to,
)
from knownminds.environments.fields import Numbers, OneOf, SomeOf, setting

from .counts import idle_words

Kind = Literal["single", "seen", "aside"]
KINDS: tuple[str, ...] = get_args(Kind)
SIZES = (2, 3, 4)
NUMBERS = ("no", "one", "two", "three", "four")
HEAVIEST = 98  # the number of a context has room for no larger weight
PERCENT = 100


class LinkedCoins(ContextGrid):
    """How many linked coins show a face; every trial is a separate context.

    Each coin shows the face with the probability p = k / (k + 1), and has the correlation r with
    the coin before it: after the face, the face comes with p + r (1 - p); after the other side,
    with p (1 - r). Both are shown as shares. No coins can have a correlation below -p / (1 - p) or
    -(1 - p) / p.

    A session goes once through its contexts, in mixed order. A context has the face that is
    counted, how much more often it comes up than the other face, the correlation, and a kind:
    nothing is known ("single"), the first coin has been seen ("seen"), or an unrelated fact that
    names a number is shown ("aside"). That makes 40 contexts. Nothing is paid, and no prompt tells
    of earlier trials.

    The action is how many of all coins show the face. The truth is computed from the joint law of
    all coins, in exact fractions; numbers that the first coin rules out keep their action.
    """

    name = "linked_coins"
    summary = "how many of 2 to 4 coins with correlated tosses show a face, 40 contexts, no rewards"
    source = "the scenario is ours, after Mondal and others 2024"
    kind_names = KINDS
    shared = ("coins", "face", "weight", "correlation")
    usual_model = "correlation_weigher"
    factors: ClassVar = {
        "coins": (2, 4, "how many coins"),
        "face": (0, 1, "the one that is counted: 0 heads, 1 tails"),
        "weight": (1, 98, "how many times as often it comes up as the other"),
        "correlation": (-100, 100, "of a coin with the one before it, in percent"),
        "kind": (0, 2, "0 single, 1 seen, 2 aside"),
        "seen": (-1, 1, "whether the first coin shows the face; -1 where it is not seen"),
        "fact": (-1, 4, "number that is named and does not matter; -1 for none"),
    }
    recorded: ClassVar = {"n_coins": "coins", "faces": "face", "weights": "weight", "kinds": "kind"}
    scenario = 6
    digits = (1, 1, 2, 3, 1, 1, 1)
    least: ClassVar[Mapping[str, int]] = {"correlation": -100}
    n_actions = 4  # one more than there are coins

    n_coins: int = setting(3, OneOf(SIZES), "2 to 4.")
    faces: tuple[Face, ...] = setting(FACES, SomeOf(FACES), "Which faces are counted.")
    weights: tuple[int, ...] = setting(
        (1, 2),
        weights_to(HEAVIEST),
        "How many times as often as the other face the counted one comes up; whole numbers.",
    )
    correlations: tuple[float, ...] = setting(
        (-0.4, 0.6),
        Numbers(
            "are numbers from -1 to 1 in whole hundredths, such as 0.6",
            lambda links: np.abs(links) <= 1,
            decimals=2,
            sort=True,
        ),
        "Correlations of each coin with the one before it.",
    )
    kinds: tuple[Kind, ...] = setting(KINDS, SomeOf(KINDS), "Which part of the grid is used.")

    @classmethod
    def grid(cls, **how: Any) -> tuple[Self, ...]:
        return tuple(cls(coins, **how) for coins in SIZES)

    @classmethod
    def in_words(cls, values: Mapping[str, int]) -> str:
        face, weight = FACES[values["face"]], values["weight"]
        what = f"{face} among {NUMBERS[values['coins']]} coins"
        what += "" if weight == 1 else f", {weight} times as often as not"
        what += f", correlation {values['correlation'] / PERCENT:g}"
        if values["seen"] >= 0:
            what += f"; the first shows {FACES[(values['face'] + 1 - values['seen']) % 2]}"
        return what + idle_words(values["fact"])

    @classmethod
    def size_of(cls, values: Mapping[str, int]) -> str:
        return f"r = {values['correlation'] / PERCENT:g}"

    @classmethod
    def _settings_of(cls, values: Mapping[str, set[int]]) -> dict[str, Any]:
        linked = [link / PERCENT for link in sorted(values["correlation"]) if abs(link) <= PERCENT]
        return super()._settings_of(values) | ({"correlations": linked} if linked else {})

    @classmethod
    def context_at(cls, values: Values) -> Context:
        coins, _, weight, percent, _, seen, _ = values
        share, correlation = share_of(weight), Fraction(percent, PERCENT)
        chance = chained(coins, share, correlation, None if seen == NONE else bool(seen))
        return Context.of_numbers(cls.name, values, chance, None)

    def _all(self) -> Iterator[Values]:
        every = product(self.faces, self.weights, self.correlations, self.kinds)
        for face, weight, link, kind in every:
            begin = (self.n_coins, FACES.index(face), weight, round(link * PERCENT))
            code = KINDS.index(kind)
            if kind == "seen":
                for seen in (0, 1):
                    yield *begin, code, seen, NONE
            else:
                for fact in (1, self.n_coins) if kind == "aside" else (NONE,):
                    yield *begin, code, NONE, fact

    def _parts(self, values: Values) -> tuple[Sequence[str], str, dict[str, Any]]:
        coins, face, weight, percent, kind, seen, fact = values
        names = [self._words[FACES[k]].text for k in (face, 1 - face)]
        share, link = share_of(weight), Fraction(percent, PERCENT)
        again, anew = share + link * (1 - share), share * (1 - link)
        words = {
            "n_coins": coins,
            "face": names[0],
            "other": names[1],
            "weight": weight,
            "hits": again.numerator,
            "of_hits": again.denominator,
            "misses": anew.numerator,
            "of_misses": anew.denominator,
            "seen": names[1 - max(seen, 0)],
            "fact": fact,
        }
        return ("setup", "fair" if weight == 1 else "weighted", "linked"), KINDS[kind], words
