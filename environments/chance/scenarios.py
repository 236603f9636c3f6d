"""The scenarios of revealed belief: their contexts by number, and the complete grid of four."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .choice import SIZES as N_OPTIONS
from .choice import Choice
from .coins import SIZES as N_COINS
from .coins import Coins
from .context_grid import Asking, Context, ContextGrid, Distractors, Form
from .dice import FACES, Dice
from .dice import SIZES as N_DICE
from .preference import Preference

SCENARIOS: dict[str, type[ContextGrid]] = {
    scenario.name: scenario for scenario in (Dice, Coins, Choice, Preference)
}


def further() -> dict[str, type[ContextGrid]]:
    """Return the scenarios beyond the paper's, of whatever package is installed, by name."""
    from knownminds.environments import ENVIRONMENTS

    kinds = ((name, kind) for name, kind in ENVIRONMENTS.items() if name not in SCENARIOS)
    return {name: kind for name, kind in kinds if issubclass(kind, ContextGrid)}


@lru_cache(maxsize=4096)
def context_of(cell: int) -> Context:
    """Return the context with this number, the column `cell` of trials.

    Raises
    ------
    ValueError : If no context has this number.
    """
    digits = str(cell)
    number = int(digits[0]) if digits.isdigit() else 0
    # The paper's come first, and need no other package.
    scenario = next((each for each in SCENARIOS.values() if each.scenario == number), None)
    if scenario is None:
        scenario = next((each for each in further().values() if each.scenario == number), None)
    if scenario is None or len(digits) != 1 + sum(scenario.digits):
        raise ValueError(
            f"Cells are numbers of contexts of {', '.join((*SCENARIOS, *further()))}; got {cell}. "
            "Leave the column out, so that it is made from the others."
        )
    return scenario.context_at(scenario.values_of(cell))


def complete_grid(
    form: Form = "continuation",
    distractors: Distractors = "published",
    even_faces: bool = False,
    asking: Asking = "whole",
) -> tuple[ContextGrid, ...]:
    """Return the experiments that together make the complete grid of 768 contexts.

    Parameters
    ----------
    form, distractors, asking : Settings of `ContextGrid`.
    even_faces : Whether only dice with an even number of faces are thrown, which makes 492
        contexts.
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
    form: Form = "continuation", distractors: Distractors = "published", asking: Asking = "whole"
) -> tuple[ContextGrid, ...]:
    """Return the experiments beyond the paper's grid, each scenario in all its sizes.

    Parameters
    ----------
    form, distractors, asking : Settings of `ContextGrid`.
    """
    how: dict[str, Any] = {"form": form, "distractors": distractors, "asking": asking}
    return tuple(each for scenario in further().values() for each in scenario.grid(**how))
