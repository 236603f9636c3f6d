"""What the tests of a page see at the size that was run, and which players have nothing to see."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import scipy

from knownminds.agents import AGENTS, Model
from knownminds.agents.parameters import Array
from knownminds.environments import Environment
from knownminds.inference import MEASURES, Measure
from knownminds.validation.engine.parts import Part
from knownminds.validation.pages.views import WHO, Rows
from knownminds.validation.pages.views import Cell as Written

from .paper import About, part_of
from .plan import Plan, theta_of

POWER, LEVEL = 0.8, 0.05
ROUNDING = 1e-9  # of a value, or of 1: an error below it is none
SYNTHETIC = "synthetic:"
MOST_ROWS = 60  # of the table on the page; the CSV has all
TITLE = "Smallest effects that t tests of this size find"
TEXT = (
    f"For each score: the distance from any fixed value that a t test at {LEVEL} finds in "
    f"{POWER:.0%} of such runs, given its error and its degrees of freedom (alone), and the "
    "distance between two participants with such errors who go their own ways (of two). What a "
    "test did not find may be as large as that. Tests that exchange or resample have tables of "
    "their own, where they were audited."
)


def seen(scores: pd.DataFrame, about: About, plan: Plan | None = None) -> Part:
    """Return the part that says how large an effect each test of a page would find.

    Parameters
    ----------
    scores : Participant, score, cell, standard_error and freedom of each score.
    plan : Whose known agents play; None if trials were there.
    """
    rows = smallest_effects(scores)
    columns: dict[str, Written] = {
        "value": "value", "error": "standard_error", "alone": "alone", "of two": "of_two",
    }  # fmt: skip
    first = rows.head(MOST_ROWS)
    shown = Rows("Smallest effects that are found", columns, ("score", WHO), of=first)
    texts = without_effect(about, plan)
    return part_of("seen", TITLE, TEXT, (rows, *texts, shown))


def smallest_effects(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores that have an error, with the smallest effects that their tests find.

    The power of a two-sided t test at an effect d is that of Student's noncentral t at
    d / standard_error. Between two participants the error is the root of two times as large a
    square, with the degrees of freedom of both.
    """
    errors = scores["standard_error"].astype(float)
    size = scores["value"].astype(float).abs().clip(lower=1.0)
    known = scores[np.isfinite(errors) & (errors > ROUNDING * size)]
    error = known["standard_error"].astype(float).to_numpy()
    freedom = known["freedom"].astype(float).fillna(np.inf).to_numpy()
    alone = error * [_distance(one) for one in freedom]
    of_two = error * np.sqrt(2) * [_distance(2 * one) for one in freedom]
    return known.assign(alone=alone, of_two=of_two).reset_index(drop=True)


@lru_cache(maxsize=4096)
def _distance(freedom: float) -> float:
    """Return the effect in standard errors that is found with the power."""
    if freedom < 1:
        return np.inf
    if not np.isfinite(freedom) or freedom > 1e5:
        return float(scipy.stats.norm.ppf(1 - LEVEL / 2) + scipy.stats.norm.ppf(POWER))
    limit = scipy.stats.t.ppf(1 - LEVEL / 2, freedom)

    def short(distance: float) -> float:
        return float(scipy.stats.nct.sf(limit, freedom, distance)) - POWER

    return float(scipy.optimize.brentq(short, 0.0, 4 * limit))


def without_effect(about: About, plan: Plan | None) -> list[str]:
    """Say which known players do not have an effect that a measure of a page looks for."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for who in (*about.known, *about.models):
        for cell, place in about.environments.items():
            known = _truth(who, cell, place, plan)
            for measure in MEASURES.values() if known is not None else ():
                model, theta = known  # type: ignore[misc]
                if model.name != measure.violator or place.name not in measure.environments:
                    continue
                names = model.parameters.names
                if not {*measure.dial.direction} <= {*names}:  # one that turns several at once
                    continue
                dials = {n: float(theta[names.index(n)]) for n in measure.dial.direction}
                if _is_null(measure, model, theta, dials):
                    text = ", ".join(f"{name} {value:.3g}" for name, value in dials.items())
                    found.setdefault((who, text), {})[measure.name] = None
    return [
        f"{who} does not have the effect of {', '.join(names)} ({dials}), which no test is to find."
        for (who, dials), names in found.items()
    ]


def _is_null(
    measure: Measure, model: type[Model], theta: Array, dials: Mapping[str, float]
) -> bool:
    """Whether an agent does not have an effect: its dials are at 0, or its truth is the null value.

    Truths that are simulated have errors, and are not asked for.
    """
    if dials and not any(dials.values()):
        return True
    if hasattr(measure, "simulated") or not np.isfinite(measure.null):
        return False
    return abs(measure.group_truth(model, theta[None]) - measure.null) < ROUNDING


def _truth(
    who: str, cell: str, place: Environment, plan: Plan | None
) -> tuple[type[Model], Array] | None:
    """Return model and parameters of a known player in a cell; None of one that is not known."""
    given: Any = None
    if plan is not None and who in plan.known:
        one = next((one for one in plan.cells if one.name == cell), None)
        given = None if one is None else plan.known_agent(who, one)
    elif who.startswith(SYNTHETIC):
        given = {"model": who.removeprefix(SYNTHETIC)}
    if given is None or given["model"] not in AGENTS:
        return None
    model = AGENTS[given["model"]]
    return (model, theta_of(given, place)) if model.plays(place) else None
