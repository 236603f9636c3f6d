"""Designs with the power that a study found for them, set against what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import inf

import numpy as np

from knownminds.environments import Environment
from knownminds.llm_adapters.runs.prices import Dollars, Price
from knownminds.validation.engine.result import Result
from knownminds.validation.engine.scores import Score
from knownminds.validation.power.smallest_design import share_name

from .dry_runs import DryRuns


@dataclass(frozen=True)
class DesignPower:
    """A design and the power that a study found for it.

    Parameters
    ----------
    subjects, sessions, trials : subjects, sessions of each, trials of each session
    power, power_error : share of the replicates that found the effect, its Monte-Carlo error
    """

    subjects: int
    sessions: int
    trials: int
    power: float
    power_error: float

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ("subjects", "sessions", "trials"):
            check_count(name, getattr(self, name))
        if not 0 <= self.power <= 1:
            raise ValueError(f"The power of a design goes from 0 to 1; got {self.power!r}.")
        if not 0 <= self.power_error < inf:
            raise ValueError(
                f"The Monte-Carlo error of a power is a number from 0 on; got {self.power_error!r}."
            )


@dataclass(frozen=True)
class PricedDesign:
    """What a design costs with one language model, and whether a better bargain was offered.

    Parameters
    ----------
    on_frontier : no other design has at least this power for less, or more power for as much
    """

    llm: str
    design: DesignPower
    calls: int
    dollars: Dollars
    on_frontier: bool

    @property
    def power_per_dollar(self) -> float:
        """Power by the upper end of the cost; infinite where nothing is charged."""
        return self.design.power / float(self.dollars.high) if self.dollars.high else inf


def designs_of(result: Result, environment: Environment) -> list[DesignPower]:
    """Return the designs of a power study; of a search the confirmed one comes last.

    Two groups have twice the subjects (of single agents: twice the sessions), two conditions of the
    same subjects twice the sessions.
    """
    title = next((t for t in ("Designs", "Designs that were tried") if t in result.tables), None)
    if title is None or "comparison" not in result.asked:
        raise ValueError("Designs to be priced come from a power study; got something else.")
    if result.asked["experiment"] != environment.name:
        raise ValueError(
            f"The power study is of {result.asked['experiment']}; got {environment.name} to price."
        )
    comparison = result.asked["comparison"]
    table = result[title].reset_index()
    name = share_name(table)
    designs = []
    for row in table.to_dict("records"):
        subjects, sessions = row["subjects"], row["sessions"]
        if comparison == "between" and subjects > 1:
            subjects *= 2
        elif comparison != "one":
            sessions *= 2
        power: Score = row[name]
        designs.append(DesignPower(subjects, sessions, row["trials"], power.value, power.error))
    return designs


def frontier_of(
    price: Price, designs: Sequence[DesignPower], runs: Mapping[int, DryRuns]
) -> list[PricedDesign]:
    """Price each design with one language model, from cheap to dear."""
    sizes = [int(d.subjects) * int(d.sessions) for d in designs]
    dollars = [runs[d.trials].dollars(price, n) for d, n in zip(designs, sizes, strict=True)]
    calls = [runs[d.trials].usage(n).calls for d, n in zip(designs, sizes, strict=True)]
    best = on_frontier([cost.high for cost in dollars], [design.power for design in designs])
    rows = [
        PricedDesign(price.llm, d, sent, cost, flag)
        for d, sent, cost, flag in zip(designs, calls, dollars, best, strict=True)
    ]
    return sorted(rows, key=lambda row: (row.dollars.high, -row.design.power))


def on_frontier(dollars: Sequence[Decimal], power: Sequence[float]) -> list[bool]:
    """Say for each design whether no other has its power for less, or more power for as much."""
    offers = list(zip(dollars, power, strict=True))
    return [
        not any(
            (cost < own_cost and other >= own) or (cost == own_cost and other > own)
            for cost, other in offers
        )
        for own_cost, own in offers
    ]


def check_count(name: str, count: object) -> None:
    """Raise ValueError if this is no number of things, from 1 on."""
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
        raise ValueError(f"{name} is a whole number from 1 on; got {count!r}.")
