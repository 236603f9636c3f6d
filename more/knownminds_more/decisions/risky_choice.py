"""Risky choice: which of two gambles, with stated gains, losses and probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.fields import CheckedBy, Field, Fields, setting
from knownminds.environments.record.trials import TrialRule, Trials
from knownminds.environments.search_ranges import Among, Span
from knownminds.environments.words.answer import decimal
from knownminds.environments.words.history import FIRST

from .gambles import SETS, columns_of, problems_of
from .offers import Offers

PLACES = ("low", "middle", "high")
CLOSE = 1e-9  # the sum of probabilities may differ from 1 by this


def _amounts(environment: RiskyChoice) -> tuple[float, float]:
    shown = [environment._columns[f"{s}_{name}"] for s in "ab" for name in PLACES]
    return float(np.min(shown)), float(np.max(shown))


def expected(columns: Mapping[str, Any], side: str) -> NDArray[np.float64]:
    """Return the expected value of gamble "a" or "b", given the columns of a trial."""
    parts = [
        np.asarray(columns[f"{side}_{name}"], dtype=float)
        * np.asarray(columns[f"{side}_{name}_chance"], dtype=float)
        for name in PLACES
    ]
    return np.asarray(sum(parts), dtype=float)


def _variance(columns: Mapping[str, Any], side: str) -> NDArray[np.float64]:
    mean = expected(columns, side)
    parts = [
        np.asarray(columns[f"{side}_{name}_chance"], dtype=float)
        * (np.asarray(columns[f"{side}_{name}"], dtype=float) - mean) ** 2
        for name in PLACES
    ]
    return np.asarray(sum(parts), dtype=float)


def took_risk(columns: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return whether the gamble of larger variance was chosen; NaN where both are alike."""
    a, b = _variance(columns, "a"), _variance(columns, "b")
    action = np.asarray(columns["action"], dtype=float)
    taken = np.where(action == (b > a), 1.0, 0.0)
    return np.where(np.isfinite(action) & (np.abs(a - b) > CLOSE), taken, np.nan)


def sure_and_risky(
    columns: Mapping[str, Any],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return sure amount, stake and its chance, where a sure amount meets a stake or nothing.

    Elsewhere all three are NaN: where both gambles are uncertain or both are sure, where there are
    two stakes, and where gains meet losses. Each is [rows].
    """
    sure, stake, chance = (np.full(len(np.asarray(columns["a_low"])), np.nan) for _ in range(3))
    for certain, risky in (("a", "b"), ("b", "a")):
        x = {p: np.asarray(columns[f"{risky}_{p}"], dtype=float) for p in PLACES}
        p = {p: np.asarray(columns[f"{risky}_{p}_chance"], dtype=float) for p in PLACES}
        amount = np.asarray(columns[f"{certain}_low"], dtype=float)
        fits = (np.asarray(columns[f"{certain}_low_chance"], dtype=float) == 1) & (p["high"] == 0)
        fits &= p["middle"] > 0  # two amounts, low and middle
        gain, loss = fits & (x["low"] == 0) & (amount > 0), fits & (x["middle"] == 0) & (amount < 0)
        sure = np.where(gain | loss, amount, sure)
        stake = np.where(gain, x["middle"], np.where(loss, x["low"], stake))
        chance = np.where(gain, p["middle"], np.where(loss, p["low"], chance))
    return sure, stake, chance


class RiskyChoice(Offers):
    """Which of two gambles with stated gains, losses and probabilities; nothing is paid.

    A gamble has one to three amounts. The set of problems "prospect" has three parts. The first
    has 140 problems of a sure amount against a stake: a gain or a loss of 100 or 400, with one of
    seven chances from .05 to .95, against five sure amounts, the middle one of which is the mean of
    the stake. They tell the curve of utility and the weights of probabilities apart. The second has
    21 even chances of a gain or a loss against nothing; they show the weight of losses. The third
    has 32 pairs of even chances of which one is wider; they show the curve of utility alone. The
    set "fourfold" is the first part and "mixed" the second. A list of pairs of gambles replaces the
    set.

    Performance is whether the gamble with the larger expected value was chosen.
    """

    name = "risky_choice"
    summary = "which of two gambles with stated gains, losses and probabilities, no rewards"
    source = "Kahneman and Tversky 1979; Tversky and Kahneman 1992"
    usual_model = "prospect_theory"
    searched: ClassVar = {"problems": Among(tuple(SETS)), "repeats": Span(1, 8)}
    fields = Fields(
        *(
            field
            for side in "ab"
            for field in (
                *(Field(f"{side}_{p}", _amounts, f"{p} amount of gamble {side}", unit="points")
                  for p in PLACES),
                *(Field(f"{side}_{p}_chance", (0.0, 1.0), f"probability of the {p} amount of "
                        f"gamble {side}", unit="probability") for p in PLACES),
            )
        ),
        FIRST,
    )  # fmt: skip
    shipped = Path(__file__).with_suffix(".toml")
    performance_bounds = (0.0, 1.0)
    offered = (*PLACES, *(f"{place}_chance" for place in PLACES))
    thought = "I weigh what may come of either option by how likely it is."

    problems: Any = setting(
        "prospect",
        CheckedBy(problems_of, f"one of {', '.join(SETS)}, or a list of pairs of gambles"),
        "Which problems are asked: the name of a set, or pairs of gambles, each a list of "
        "[amount, probability].",
    )

    def _questions(self) -> dict[str, NDArray[np.float64]]:
        chosen = SETS[self.problems]() if isinstance(self.problems, str) else self.problems
        return columns_of(chosen)

    def _sentence(self, offer: Mapping[str, float]) -> str:
        parts = []
        for name in PLACES:
            amount, chance = offer[name], offer[f"{name}_chance"]
            if chance == 0:
                continue
            kind = "win" if amount > 0 else "lose" if amount < 0 else "nothing"
            event = self._words[kind].render(amount=decimal(abs(amount)))
            form = self._words["certain" if chance == 1 else "chance"]
            parts.append(form.render(event=event, percent=decimal(round(100 * chance, 10))))
        return "; ".join(parts)

    def performance(self, trials: Trials) -> NDArray[np.float64]:
        """Return whether the larger expected value was chosen; NaN where both are alike."""
        columns = {name: trials.numbers(name) for name in self.fields.stimulus}
        lead = expected(columns, "b") - expected(columns, "a")
        action = trials.numbers("action")
        known = np.isfinite(action) & (np.abs(lead) > CLOSE * (1 + np.abs(lead)))
        return np.where(known, (action == (lead > 0)).astype(float), np.nan)

    def rules(self, trials: Trials) -> Iterator[TrialRule]:
        for side in "ab":
            names = [f"{side}_{place}_chance" for place in PLACES]
            yield (
                f"The probabilities of gamble {side} sum to 1",
                np.abs(np.sum([trials.numbers(name) for name in names], axis=0) - 1) < 1e-6,
                names,
                "Correct them; where there are fewer than three amounts, the chance is 0.",
            )
