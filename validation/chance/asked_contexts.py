"""The contexts about which a question of `reveal` asks."""

from __future__ import annotations

from typing import Any

from knownminds.environments import unknown
from knownminds.environments.chance.context_grid import ContextGrid, Form
from knownminds.environments.chance.scenarios import SCENARIOS, complete_grid, further, further_grid
from knownminds.inference.chance.revealed_belief import Source
from knownminds.validation.costs.wordings import wordings

from .questions import GRID, RevealQuestion


def environments_of(question: RevealQuestion, form: Form) -> tuple[ContextGrid, ...]:
    """Return the experiments of the complete grid that belong to the scenarios."""
    for name in question.scenarios:
        if name not in (*SCENARIOS, *further()):
            raise ValueError(unknown("scenario", name, (*SCENARIOS, *further())))
    for name in question.only:
        if name not in GRID:
            raise ValueError(unknown("size", name, GRID))
    asking = question.asking if form == "stated" else "whole"
    grid = complete_grid(form, question.distractors, question.even_faces, asking)
    if any(name not in SCENARIOS for name in question.scenarios):
        grid += further_grid(form, question.distractors, asking)
    chosen = tuple(
        environment
        for environment in grid
        if environment.name in question.scenarios
        and all(environment.settings.get(n, value) == value for n, value in question.only.items())
    )
    if not chosen:
        sizes = ", ".join(f"{name}={value:g}" for name, value in question.only.items())
        raise ValueError(f"The grid of {', '.join(question.scenarios)} has nothing with {sizes}.")
    return chosen


def reworded_of(question: RevealQuestion, form: Form) -> tuple[tuple[ContextGrid, ...], ...]:
    """Return the experiments of `environments` in each further wording.

    Raises
    ------
    ValueError : If one of them has fewer wordings.
    """
    grid = environments_of(question, form)
    named = [wordings(environment, question.wordings, "--wordings") for environment in grid]
    return tuple(
        tuple(
            type(environment)(**{**environment.settings, "templates": names[k]})
            for environment, names in zip(grid, named, strict=True)
        )
        for k in range(1, question.wordings)
    )


def facts_of(question: RevealQuestion, source: Source, form: Form) -> dict[str, Any]:
    """Name the values that count for a model which was read in this way."""
    facts: dict[str, Any] = {"source": source, "form": form}
    facts |= {"draws": question.draws} if source != "exact" else {}
    facts |= {"top": question.top} if source == "top-k" else {}
    facts |= {"even_faces": True} if question.even_faces else {}
    facts |= (
        {"distractors": question.distractors, "asking": question.asking}
        if question.stated
        else {"stated": False}
    )
    facts |= {"wordings": question.wordings} if question.wordings > 1 else {}
    return facts | {"threshold": question.threshold}
