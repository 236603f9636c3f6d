"""Measures of the answers that a paper's parts are made of: one frame, a row per participant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from knownminds.environments import Environment, Trials
from knownminds.inference import MEASURES
from knownminds.validation.data.score_scale import metric_of
from knownminds.validation.data.scores_of_trials import INFLUENCE, PERFORMANCE, measured
from knownminds.validation.pages.views import WHO

from .paper import CELL, VARIANT, Answers, own_columns
from .plan import BASE


def measures(data: Answers, *names: str) -> pd.DataFrame:
    """Return measures of every participant in every cell, each in the experiments that it is of.

    Parameters
    ----------
    names : Measures, or "performance".

    Returns
    -------
    DataFrame : Columns participant, variant, cell, experiment, metric (the measure; of a
        performance with its experiment), value, standard_error, low, high (95%), n, unit and
        status, which says why there is no value; freedom (degrees, of the error); influence (of
        each session, see `Estimate`); and score, which is the metric and, if it is not the base,
        the variant.
    """
    groups = data.trials.groupby([WHO, CELL], sort=False)
    parts = {(str(key[0]), str(key[1])): part for key, part in groups}
    rows = []
    for who in data.about.participants:
        for cell, environment in data.about.environments.items():
            variant = cell.partition("/")[2] or BASE
            here = {WHO: who, VARIANT: variant, CELL: cell, "experiment": environment.name}
            for row in _of_cell(
                parts.get((who, cell)), environment, _of_experiment(names, environment)
            ):
                rows.append({**row, **here, "metric": metric_of(environment.name, row["measure"])})
    table = pd.DataFrame(rows)
    base = table[VARIANT] == BASE
    return table.assign(score=table["metric"].where(base, table["metric"] + ", " + table[VARIANT]))


def _of_experiment(names: tuple[str, ...], environment: Environment) -> list[str]:
    """Return those of some measures that are read off an experiment."""
    performed = environment.performance_bounds is not None
    return [
        name
        for name in names
        if (performed if name == PERFORMANCE else environment.name in MEASURES[name].environments)
    ]


def _read_as(rows: pd.DataFrame, planned: Environment) -> tuple[Environment, Trials]:
    """Return trials of the planned design; of another one, which existing answers may have."""
    try:
        return planned, Trials.from_frame(rows, environment=planned)
    except ValueError:
        played = type(planned).as_played(rows)
        return played, Trials.from_frame(rows, environment=played)


def _of_cell(
    part: pd.DataFrame | None, environment: Environment, names: list[str]
) -> list[dict[str, Any]]:
    """Estimate measures of one participant in a cell; one without a value has a status."""
    why = "not played"
    if part is not None:
        try:
            environment, record = _read_as(own_columns(part, environment), environment)
            return measured(names, environment, record, np.full(len(record), "", dtype=object))
        except ValueError as error:
            why = str(error)
    numbers = ("value", "standard_error", "low", "high", "freedom")
    nothing = {**dict.fromkeys(numbers, np.nan), "n": 0, "unit": "", "status": why, INFLUENCE: {}}
    return [{"measure": m, **nothing} for m in names]
