"""Counts: a text about a counter breaks off, and the number that it shows has to complete it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, log
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from knownminds.environments.chance.chance import Chance, geometric_up_to, mixed, poisson_up_to
from knownminds.environments.chance.context_grid import NONE, Context, ContextGrid, Values
from knownminds.environments.fields import Numbers, SomeOf, Whole, setting
from knownminds.environments.later import pandas as pd

Law = Literal["poisson", "geometric"]
Kind = Literal["single", "independent", "learned", "aside"]
LAWS: tuple[str, ...] = get_args(Law)
KINDS: tuple[str, ...] = get_args(Kind)
MOST = 9  # what the counter can show
LARGEST = 20.0  # mean
TENTHS = 10  # the parts of 1 in which means are kept
PERCENT = 100
N_EARLIER = 4
EARLIER = tuple(f"earlier_{k}" for k in range(1, N_EARLIER + 1))
FACTS = (1, 8)
LEARNED = KINDS.index("learned")


_MEANS = Numbers(
    f"are rates above 0 and up to {LARGEST:g}, with one decimal",
    lambda means: (means > 0) & (means <= LARGEST),
    decimals=1,
    sort=True,
)


class Counts(ContextGrid):
    """What a counter of random events shows; every trial is a separate context.

    The law is a Poisson law (how many events come in an hour) or a geometric law (how many misses
    come before the first hit), with a mean that is shown. The counter has one digit. It shows 9 for
    any larger number, so that the last outcome holds the whole tail.

    A session goes once through its contexts, in mixed order: one count ("single"); one after
    several earlier counts that have no influence on it ("independent"); one after several earlier
    counts, where the mean is one of two and it is not told which ("learned"); and one after an
    unrelated fact that names a number ("aside"). Earlier counts are alike, just below or above the
    mean (or the count that is equally probable under both means), or low and high in turn. Nothing
    is paid, and no prompt tells of earlier trials.

    The action is what the counter shows. The truth of a "learned" context is the posterior
    predictive law: both laws, each weighted by the probability of its mean after the earlier
    counts. It is computed in exact fractions; for a Poisson law these start from exp(-mean) to 60
    digits.
    """

    name = "counts"
    summary = "what a counter shows, by Poisson and geometric laws, 30 contexts, no rewards"
    source = "the scenarios are ours, after Mondal and others 2024"
    kind_names = KINDS
    shared = ("law", "mean")
    usual_model = "evidence_weigher"
    factors: ClassVar = {
        "law": (0, 1, "0 Poisson, 1 geometric"),
        "mean": (1, 200, "of the law, in tenths; of learned contexts the smaller one"),
        "other": (-1, 200, "the larger mean of learned contexts, in tenths; -1 for none"),
        "prior": (-1, 98, "how probable the smaller mean is beforehand, in percent; -1 for none"),
        "kind": (0, 3, "0 single, 1 independent, 2 learned, 3 aside"),
        **{name: (-1, 8, "an earlier count; -1 where there is none") for name in EARLIER},
        "fact": (-1, 8, "number that is named and does not matter; -1 for none"),
    }
    recorded: ClassVar = {"laws": "law", "kinds": "kind"}
    scenario = 5
    digits = (1, 3, 3, 2, 1, 1, 1, 1, 1, 1)
    n_actions = MOST + 1

    laws: tuple[Law, ...] = setting(LAWS, SomeOf(LAWS), "Which laws are used.")
    means: tuple[float, ...] = setting((2.0, 4.0), _MEANS, "Means where they are known.")
    candidates: tuple[float, ...] = setting(
        (1.0, 6.0),
        replace(_MEANS, shape=(2,), what=f"{_MEANS}, two that differ"),
        "The two means of learned contexts.",
    )
    prior: tuple[float, ...] = setting(
        (0.5, 0.5),
        Numbers(
            "holds two probabilities above 0 that sum to 1, in whole hundredths, the first up to "
            "0.98",
            lambda prior: np.all(prior > 0) and prior[0] <= 0.98 and np.isclose(prior.sum(), 1),
            (2,),
            decimals=2,
        ),
        "How probable each of the two is before anything was counted.",
    )
    n_earlier: int = setting(3, Whole(2, N_EARLIER), "How many earlier counts are shown.")
    kinds: tuple[Kind, ...] = setting(KINDS, SomeOf(KINDS), "Which part of the grid is used.")

    @classmethod
    def in_words(cls, values: Mapping[str, int]) -> str:
        mean = f"{values['mean'] / TENTHS:g}"
        if values["kind"] == LEARNED:
            mean += f" or {values['other'] / TENTHS:g}"
        what = f"a {LAWS[values['law']].replace('poisson', 'Poisson')} count of mean {mean}"
        earlier = ", ".join(str(values[name]) for name in EARLIER if values[name] >= 0)
        if earlier:
            what += f", after {earlier}"
        return what + idle_words(values["fact"])

    @classmethod
    def size_of(cls, values: Mapping[str, int]) -> str:
        return str(LAWS[values["law"]])

    @classmethod
    def _asked(cls, frame: pd.DataFrame) -> dict[str, set[int]]:
        numbers = {name: pd.to_numeric(frame[name], errors="coerce") for name in cls.factors}
        learned = numbers["kind"] == LEARNED
        count = (frame[list(EARLIER)].apply(pd.to_numeric, errors="coerce") >= 0).sum(axis=1)
        parts = {"mean": numbers["mean"][~learned], "low": numbers["mean"][learned]}
        parts["count"] = count[count > 0]
        return super()._asked(frame) | {
            name: set(part.dropna().astype(int).tolist()) for name, part in parts.items()
        }

    @classmethod
    def _settings_of(cls, values: Mapping[str, set[int]]) -> dict[str, Any]:
        settings = super()._settings_of(values)
        if values["mean"]:
            settings["means"] = [mean / TENTHS for mean in sorted(values["mean"])]
        pair = [*values["low"], *(other for other in values["other"] if other != NONE)]
        if len(set(pair)) == 2:
            settings["candidates"] = [mean / TENTHS for mean in pair]
        prior = [share for share in values["prior"] if share != NONE]
        if len(prior) == 1:
            settings["prior"] = [prior[0] / PERCENT, 1 - prior[0] / PERCENT]
        if len(values["count"]) == 1:
            (settings["n_earlier"],) = values["count"]
        return settings

    @classmethod
    def context_at(cls, values: Values) -> Context:
        law, mean, other, prior, kind, *earlier, _ = values
        counts = [count for count in earlier if count != NONE]
        chance = _law(law, mean)
        if kind == LEARNED:
            two = (chance, _law(law, other))
            weights = [Fraction(prior, PERCENT), 1 - Fraction(prior, PERCENT)]
            for count in counts:
                weights = [w * each.shares[count] for w, each in zip(weights, two, strict=True)]
            chance = mixed(two, weights)
        return Context.of_numbers(cls.name, values, chance, counts[-1] if counts else None)

    def _all(self) -> Iterator[Values]:
        for name in self.laws:
            law = LAWS.index(name)
            for kind in self.kinds:
                code, none = KINDS.index(kind), (NONE,) * N_EARLIER
                if kind == "learned":
                    few, many = self.candidates
                    low, high = round(few * TENTHS), round(many * TENTHS)
                    prior = round(self.prior[0] * PERCENT)
                    even = _even_count(name, few, many)
                    for run in _runs(few, many, even, self.n_earlier):
                        yield law, low, high, prior, code, *run, NONE
                    continue
                for known in self.means:
                    begin = (law, round(known * TENTHS), NONE, NONE, code)
                    if kind == "independent":
                        for run in _runs(known / 2, known * 2, known - 0.5, self.n_earlier):
                            yield *begin, *run, NONE
                    else:
                        for fact in FACTS if kind == "aside" else (NONE,):
                            yield *begin, *none, fact

    def _parts(self, values: Values) -> tuple[Sequence[str], str, dict[str, Any]]:
        law, mean, other, prior, kind, *earlier, fact = values
        counts = [str(count) for count in earlier if count != NONE]
        listed = ""
        if counts:
            *before, last = counts
            listed = self._words["and"].render(before=", ".join(before), last=last)
        words = {
            "mean": f"{mean / TENTHS:g}",
            "other": f"{other / TENTHS:g}",
            "prior": prior,
            "earlier": listed,
            "fact": fact,
        }
        known = "unknown" if kind == LEARNED else "known"
        setup = (f"setup_{LAWS[law]}", f"{known}_{LAWS[law]}")
        return setup, f"{KINDS[kind]}_{LAWS[law]}", words


def _law(law: int, mean: int) -> Chance:
    one = Fraction(mean, TENTHS)
    return (poisson_up_to if LAWS[law] == "poisson" else geometric_up_to)(one, MOST)


def _runs(low: float, high: float, between: float, n: int) -> list[Values]:
    """Return earlier counts: all just below a number, all just above it, and far apart in turn."""
    below = min(floor(between), MOST - 2)
    rest = (NONE,) * (N_EARLIER - n)
    least = min(floor(low), MOST - 2)
    most = max(min(ceil(high), MOST - 1), least + 1)
    turns = tuple((least, most)[k % 2] for k in range(n))
    return [(*run, *rest) for run in dict.fromkeys([(below,) * n, (below + 1,) * n, turns])]


def _even_count(law: str, low: float, high: float) -> float:
    """Return the count that is equally probable under both means."""
    if law == "poisson":
        return (high - low) / log(high / low)
    tries = log((1 + high) / (1 + low))
    return tries / (log(high / low) - tries)


def idle_words(fact: int) -> str:
    """Return that a fact names this number; "" if none does."""
    return f"; something else bears the number {fact}" if fact >= 0 else ""
