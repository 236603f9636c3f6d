"""Designs with their power, as a study has it, set against what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import inf

import numpy as np
import pandas as pd

from knownminds.environments import Environment
from knownminds.llm_adapters.runs.prices import Price
from knownminds.validation.engine.result import Result
from knownminds.validation.power.power_study import share_name

from .dry_runs import DryRuns


def designs_of(result: Result, environment: Environment) -> pd.DataFrame:
    """Return the designs of a power study; of a search the confirmed one comes last.

    Columns are subjects, sessions of each, trials of each session, and the power, a `Score`. Two
    groups have twice the subjects (of single agents: twice the sessions), two conditions of the
    same subjects twice the sessions.

    Raises
    ------
    ValueError : If the result is of no power study, or of another experiment.
    """
    title = next((t for t in ("Designs", "Designs that were tried") if t in result.tables), None)
    if title is None or "comparison" not in result.options:
        raise ValueError("Designs to be priced come from a power study; got something else.")
    if result.options["experiment"] != environment.name:
        raise ValueError(
            f"The power study is of {result.options['experiment']}; got {environment.name} to "
            "price."
        )
    comparison = result.options["comparison"]
    table = result[title].reset_index()
    designs = table[["subjects", "sessions", "trials"]].assign(power=table[share_name(table)])
    several = designs["subjects"] > 1 if comparison == "between" else np.zeros(len(table), bool)
    designs.loc[several, "subjects"] *= 2
    if comparison != "one":
        designs.loc[~several, "sessions"] *= 2
    return designs


def priced_designs(
    prices: Sequence[Price], designs: pd.DataFrame, runs: Mapping[int, DryRuns]
) -> pd.DataFrame:
    """Price each design with each language model, of each from cheap to dear.

    Parameters
    ----------
    designs : As `designs_of` returns them.
    runs : Dry runs by the number of trials.

    Returns
    -------
    The designs with the columns llm, calls, "dollars low" and "dollars high", "power per dollar"
    (infinite where nothing is charged), and frontier: whether no other design has at least this
    power for less, or more power for as much.
    """
    rows = []
    for price in prices:
        offers = []
        for design in designs.to_dict("records"):
            run, n = runs[design["trials"]], int(design["subjects"]) * int(design["sessions"])
            dollars, power = run.dollars(price, n), design.pop("power")
            calls = run.usage(n).calls
            offers.append(
                {"llm": price.llm, **design, "calls": calls, "power": power}
                | {
                    "dollars low": float(dollars.low),
                    "dollars high": float(dollars.high),
                    "power per dollar": power.value / float(dollars.high) if dollars.high else inf,
                    "exact": dollars.high,
                }
            )
        best = on_frontier(
            [row.pop("exact") for row in offers], [row["power"].value for row in offers]
        )
        offers = [row | {"frontier": flag} for row, flag in zip(offers, best, strict=True)]
        rows += sorted(offers, key=lambda row: (row["dollars high"], -row["power"].value))
    return pd.DataFrame(rows)


def on_frontier(dollars: Sequence[Decimal], power: Sequence[float]) -> list[bool]:
    """Say for each design whether no other has its power for less, or more power for as much."""
    offers = list(zip(dollars, power, strict=True))
    return [
        not any(
            (cost < own_cost and other >= own_power) or (cost == own_cost and other > own_power)
            for cost, other in offers
        )
        for own_cost, own_power in offers
    ]
