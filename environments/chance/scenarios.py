"""The scenarios of revealed belief: their contexts by number, and the complete grid of four."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .choice import SIZES as N_OPTIONS
from .choice import Choice
from .coins import SIZES as N_COINS
from .coins import Coins
from .counts import Counts
from .dice import FACES, Dice
from .dice import SIZES as N_DICE
from .linked_coins import SIZES as N_LINKED
from .linked_coins import LinkedCoins
from .outcome_grid import Asking, BrokenOff, Context, Distractors, Form
from .preference import Preference

SCENARIOS: dict[str, type[BrokenOff]] = {
    scenario.name: scenario for scenario in (Dice, Coins, Choice, Preference)
}
# These go beyond the paper's: laws without an end, several observations, correlation, asides.
FURTHER: dict[str, type[BrokenOff]] = {
    scenario.name: scenario for scenario in (Counts, LinkedCoins)
}
_BY_NUMBER = {each.scenario: each for each in (*SCENARIOS.values(), *FURTHER.values())}


@lru_cache(maxsize=4096)
def context_of(cell: int) -> Context:
    """Return the context with this number, the column `cell` of trials.

    Raises
    ------
    ValueError
        If no context has this number.
    """
    digits = str(cell)
    scenario = _BY_NUMBER.get(int(digits[0])) if digits.isdigit() else None
    if scenario is None or len(digits) != 1 + sum(scenario.digits):
        raise ValueError(
            f"Cells are numbers of contexts of {', '.join((*SCENARIOS, *FURTHER))}; got {cell}. "
            "Leave the column out, so that it is made from the others."
        )
    return scenario.context_at(scenario.values_of(cell))


def complete_grid(
    form: Form = "continuation",
    distractors: Distractors = "published",
    even_faces: bool = False,
    asking: Asking = "whole",
) -> tuple[BrokenOff, ...]:
    """Return the experiments that together make the complete grid of 768 contexts.

    Parameters
    ----------
    form, distractors, asking
        Settings of `BrokenOff`.
    even_faces
        Whether only dice with an even number of faces are thrown, which makes 492 contexts.
    """
    faces = [n for n in FACES if n % 2 == 0 or not even_faces]
    how: dict[str, Any] = {"form": form, "distractors": distractors, "asking": asking}
    return (
        *(Dice(dice, n, **how) for dice in N_DICE for n in faces),
        *(Coins(coins, **how) for coins in N_COINS),
        *(Choice(options, **how) for options in N_OPTIONS),
        Preference(**how),
    )


def further_grid(
    form: Form = "continuation",
    distractors: Distractors = "published",
    asking: Asking = "whole",
) -> tuple[BrokenOff, ...]:
    """Return the experiments beyond the paper's grid, `counts` and `linked_coins` of all sizes.

    Parameters
    ----------
    form, distractors, asking
        Settings of `BrokenOff`.
    """
    how: dict[str, Any] = {"form": form, "distractors": distractors, "asking": asking}
    return (Counts(**how), *(LinkedCoins(coins, **how) for coins in N_LINKED))
