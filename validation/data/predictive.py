"""Whether rows simulated from a fit look like those that were fitted, panel by panel.

Draws of the parameters live the recorded sessions again: the same trials and stimuli, with choices,
and the rewards that follow, drawn anew. The panels of `panels_of` show means of what was done,
along trials and stimuli.

The discrepancy of a panel is T(y) = (m(y) - M)' V^-1 (m(y) - M), where m(y) holds the means of its
cells, and M and V are the mean and covariance of m over all replicates and the data together (of V,
the correlations are shrunk by 5%, so that means that add up to a constant have an inverse). Its p
is the share of replicates and data whose T is at least that of the data (Rubin 1984; Gelman, Meng
and Stern 1996). If the parameters were drawn from the prior that p would be uniform. The posterior
has seen the data. So under the true model p lies nearer to one half than a uniform number does, and
is below .05 in less than 5% of the fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.environments import ANSWERED, Environment, session_stream
from knownminds.inference.fits.model_data import Unknowns

from .panels import Cells, Panel, PanelRows, panels_of
from .support import Relived, as_numbers

MASS = 0.9
LEVEL = 0.05  # of the p of each panel
MOST_REPLICATES, LEAST_REPLICATES = 400, 200
MOST_ROWS = 15_000  # of the data that are checked; subjects beyond that are passed over
SIMULATED_ROWS = 2_500_000  # of all replicates, unless the fewest of these have more
ROWS_AT_ONCE = 500_000  # of replicates that are held in memory
MOST_LACKING = 0.05  # share of replicates that may show nothing in a cell of a panel
SHRINKAGE = 0.05  # of the correlations between the means of a panel, toward none
_KEY = 71  # of the stream by which sessions are simulated again


PANEL = ["panel", "along", "mean_of", "discrepancy", "usual", "p"]  # the same in all its cells


def panels_in(cells: pd.DataFrame) -> pd.DataFrame:
    """Return one row per panel of checked cells, with the number of its means."""
    means = cells.groupby("panel", sort=False).size()
    return cells[PANEL].drop_duplicates("panel").set_index("panel").assign(means=means)


@dataclass(frozen=True)
class Replicated:
    """Sessions of some subjects that are simulated again and again, by draws of the parameters.

    Parameters
    ----------
    relived : The recorded sessions.
    environment : The experiment.
    model : Who lives them.
    theta, lapse : Draws of all parameters, [R, N, P], and of the lapse rate, [R, N] or None.
    units : The subjects, positions in N.
    seed : Of the stream.
    """

    relived: Relived
    environment: Environment
    model: type[Model]
    theta: Array
    lapse: Array | None
    units: NDArray[np.int64]
    seed: int

    @property
    def sessions(self) -> NDArray[np.int64]:
        """The sessions that are simulated, [M]."""
        return np.flatnonzero(np.isin(self.relived.unit, self.units)).astype(np.int64)

    def parts(self) -> Iterator[tuple[NDArray[np.int64], dict[str, NDArray[Any]]]]:
        """Give replicates part by part: their numbers, and the columns of their rows.

        "session" counts on from one replicate to the next of a part.
        """
        sessions = self.sessions
        unit = self.relived.unit[sessions]
        rows = max(int(self.relived.recorded.answered[sessions].sum()), 1)
        at_once = max(ROWS_AT_ONCE // rows, 1)
        for begin in range(0, len(self.theta), at_once):
            which = np.arange(begin, min(begin + at_once, len(self.theta)))
            own = self.theta[which][:, unit]
            theta = own.reshape(own.shape[0] * own.shape[1], own.shape[2])  # a model may have none
            lapse = None if self.lapse is None else self.lapse[which][:, unit].ravel()
            rng = session_stream(self.seed, _KEY, begin)
            again = np.tile(sessions, len(which))
            simulated = self.relived.rows(self.model, self.environment, theta, lapse, again, rng)
            yield which, simulated


def recorded_rows(frame: pd.DataFrame, environment: Environment, relived: Relived,
                  units: NDArray[np.int64]) -> PanelRows:  # fmt: skip
    """Return the answered rows of some subjects as panels read them."""
    kept = frame["outcome"].isin(ANSWERED).to_numpy() & np.isin(
        relived.unit[relived.session], units
    )
    fields = environment.fields
    names = (*fields.shown, *fields.hidden, *fields.feedback, "action", "response", "reward")
    columns = {n: as_numbers(frame[n])[kept] for n in names if n in frame}
    return PanelRows(environment, columns, relived.session[kept])


def check_panels(
    data: PanelRows,
    replicated: Replicated,
    panels: Sequence[Panel] | None = None,
    gathered: PredictedAnswers | None = None,
) -> pd.DataFrame:
    """Compare panels of the data with those of the replicates, whose answers may be gathered.

    Returns
    -------
    DataFrame : A row for each mean of a panel, of those that the data show: "panel", and what lies
        "along" it and what it is the "mean_of"; the "discrepancy" T of the data, the "usual" one
        (median T of the replicates) and "p", the share of replicates and data with a T of at least
        that of the data; "series" ("" where it has no name), mean position "x", how many "rows" of
        the data it rests on, the mean of the "data", and the quantiles 5%, 50% and 95% of the
        replicates ("low", "middle", "high").
    """
    chosen = panels_of(data.environment) if panels is None else panels
    cells = [shown for panel in chosen if (shown := panel.cells(data)) is not None]
    means: list[list[Array]] = [[] for _ in cells]
    n_sessions = len(replicated.sessions)
    lacking: set[int] = set()
    for which, simulated in replicated.parts():
        if gathered is not None:
            gathered.take(which, simulated)
        rows = PanelRows(data.environment, simulated, simulated["session"], data)
        owner = simulated["session"] // n_sessions
        for k, cell in enumerate(cells):
            if k in lacking:
                continue
            try:
                means[k].append(cell.means(rows, owner, len(which))[0])
            except KeyError:  # a column that is recorded, but not simulated
                lacking.add(k)
    checked = [
        _check(cell, data, np.concatenate(means[k]))
        for k, cell in enumerate(cells)
        if k not in lacking
    ]
    return pd.concat(checked, ignore_index=True) if checked else pd.DataFrame()


def discrepancies(means: Array) -> Array:
    """Return T of each row of means [R + 1, cells], see the module; [R + 1]."""
    away = means - means.mean(axis=0)
    spread = away.std(axis=0)
    known = spread > 0
    unit = away[:, known] / spread[known]
    together = unit.T @ unit / len(unit)
    together = (1 - SHRINKAGE) * together + SHRINKAGE * np.eye(len(together))
    total: Array = (unit * np.linalg.solve(together, unit.T).T).sum(axis=1)
    return total


def _check(cells: Cells, data: PanelRows, replicates: Array) -> pd.DataFrame:
    observed, count = cells.means(data, np.zeros(len(data), dtype=np.int64), 1)
    kept = np.flatnonzero(np.isnan(replicates).mean(axis=0) <= MOST_LACKING)
    if not len(kept):
        return pd.DataFrame()
    shown = replicates[:, kept]
    filled = np.where(np.isnan(shown), np.nanmean(shown, axis=0), shown)
    observed_t = discrepancies(np.concatenate([observed[:, kept], filled]))
    low, middle, high = np.quantile(filled, [0.5 - MASS / 2, 0.5, 0.5 + MASS / 2], axis=0)
    panel = cells.panel
    return pd.DataFrame({
        "panel": panel.title, "along": panel.x, "mean_of": panel.y,
        "discrepancy": float(observed_t[0]), "usual": float(np.median(observed_t[1:])),
        "p": float((observed_t >= observed_t[0] * (1 - 1e-9)).mean()),
        "series": [panel.series[s] if panel.series else "" for s in cells.series[kept]],
        "x": cells.x[kept], "rows": count[0, kept].astype(np.int64), "data": observed[0, kept],
        "low": low, "middle": middle, "high": high,
    })  # fmt: skip


def replicates_for(n_rows: int, n_actions: int) -> int:
    """Return how often sessions with so many rows are simulated again."""
    size = max(n_rows, 1) * max(n_actions // 2, 1)
    return int(np.clip(SIMULATED_ROWS // size, LEAST_REPLICATES, MOST_REPLICATES))


def some_units(rows_of_unit: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return subjects with rows, evenly from all, whose rows together are few enough."""
    there = np.flatnonzero(rows_of_unit > 0)
    share = min(MOST_ROWS / max(int(rows_of_unit.sum()), 1), 1.0)
    count = max(int(len(there) * share), min(len(there), 1))
    chosen = np.linspace(0, len(there) - 1, count).round().astype(np.int64)
    return there[np.unique(chosen)].astype(np.int64)


def replicated_from(
    relived: Relived,
    environment: Environment,
    unknowns: Unknowns,
    model: type[Model],
    draws: Array,
    usable: NDArray[np.bool_],
    seed: int,
) -> Replicated:
    """Choose subjects and draws, and let the draws live the subjects' sessions.

    Parameters
    ----------
    draws : Of the estimated parameters on the natural scale, [draws, N, K].
    usable : Which subjects have draws that can be trusted, [N].
    """
    answered = relived.recorded.answered.sum(axis=1)
    rows = np.bincount(relived.unit, answered, minlength=relived.n_units).astype(np.int64)
    units = some_units(np.where(usable, rows, 0))
    n = replicates_for(int(rows[units].sum()), environment.n_actions)
    which = np.linspace(0, len(draws) - 1, n).round().astype(np.int64)
    chosen = draws[which]
    theta = np.broadcast_to(unknowns.full, (*chosen.shape[:2], len(unknowns.full))).copy()
    values = chosen[..., :-1] if unknowns.lapse else chosen
    theta[..., unknowns.columns] = values
    lapse = chosen[..., -1].copy() if unknowns.lapse else None
    return Replicated(relived, environment, model, theta, lapse, units, seed)


class PredictedAnswers:
    """Simulated answers for the rows of the data, gathered while sessions are simulated again.

    Parameters
    ----------
    replicated : What is simulated.
    n_rows : How many rows the data have; those of subjects who are passed over have no answers.

    Attributes
    ----------
    answers : By name, [R, rows]; NaN where there are none.
    """

    def __init__(self, replicated: Replicated, n_rows: int):
        relived = replicated.relived
        self.sessions = replicated.sessions
        self.shape = (len(replicated.theta), n_rows)
        self.row = np.full(relived.recorded.there.shape, -1, dtype=np.int64)
        self.row[relived.session, relived.slot] = np.arange(n_rows)
        self.answers: dict[str, NDArray[np.float32]] = {}

    def take(self, which: NDArray[np.int64], simulated: Mapping[str, NDArray[Any]]) -> None:
        """Take the answers of a part, see `Replicated.parts`."""
        replicate, session = np.divmod(simulated["session"], len(self.sessions))
        row = self.row[self.sessions[session], simulated["slot"]]
        known = row >= 0
        for name in ("action", "response"):
            if name in simulated:
                whole = self.answers.setdefault(name, np.full(self.shape, np.nan, dtype=np.float32))
                whole[which[replicate[known]], row[known]] = simulated[name][known]


def check_fit(
    frame: pd.DataFrame, replicated: Replicated, gathered: PredictedAnswers | None = None
) -> pd.DataFrame:
    """Compare recorded rows with simulated sessions, see `check_panels`."""
    if not len(replicated.units):
        return pd.DataFrame()
    data = recorded_rows(frame, replicated.environment, replicated.relived, replicated.units)
    return check_panels(data, replicated, gathered=gathered)
