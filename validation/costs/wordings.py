"""One run in several wordings of its experiment: which, in which folders, and under which caps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from knownminds.environments import Environment
from knownminds.environments.conditions import shipped_words
from knownminds.environments.words.prompt import paraphrases_of
from knownminds.llm_adapters.runs.admission import Caps
from knownminds.llm_adapters.runs.ledger import Ledger
from knownminds.llm_adapters.runs.prices import NANO, Spent

SHIPPED = "shipped"


def wordings(environment: Environment, k: int, option: str = "--paraphrases") -> list[str]:
    """Return the names of k wordings that an experiment has, the shipped one first.

    Raises
    ------
    ValueError
        If it has fewer, or its templates are set already.
    """
    if environment.settings.get("templates") is not None:
        raise ValueError(
            f"{option} takes the wordings that ship; templates="
            f"{environment.settings['templates']} is set. Leave one of them out."
        )
    known = [SHIPPED, *paraphrases_of(shipped_words(environment))]
    if not 1 <= k <= len(known):
        raise ValueError(
            f"{environment.name} has {len(known)} wording{'s' * (len(known) > 1)}; got "
            f"{option} {k}."
        )
    return known[:k]


def spent_in(folder: Path) -> Spent:
    """Return what a folder's run has used in all its starts; nothing if there is none."""
    total = Spent()
    try:
        with Ledger.read(folder) as ledger:
            for one in ledger.spent().values():
                total.add(one)
    except ValueError:  # none there yet; or none that can be opened, which is said when it is
        pass
    return total


def left_of(caps: Caps, others: Sequence[Path]) -> Caps:
    """Return what caps on the whole leave for one of several runs, after what the others used."""
    used = Spent()
    for folder in others:
        used.add(spent_in(folder))
    left: dict[str, Any] = {}
    if caps.calls is not None:
        left["calls"] = max(caps.calls - used.calls, 0)
    if caps.tokens is not None:
        left["tokens"] = max(caps.tokens - used.tokens, 0)
    if caps.dollars is not None:
        spent = Decimal(used.money) / NANO
        left["dollars"] = max(Decimal(str(caps.dollars)) - spent, Decimal(0))
    return replace(caps, **left)
