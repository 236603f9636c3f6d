"""Whether an observer that was fitted over cells describes the answers in each of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import scipy

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.nested_tests import nested_tests

MISFIT = 0.05  # below this p one observer does not describe the cells
CELL = ("unit", "ceiling", "condition", "modality")  # columns that tell cells apart


def has_cells(model: type[Model]) -> bool:
    """Return whether a model sees what tells cells apart, and its misfit can be computed."""
    return set(CELL) <= set(model.columns) and bool(getattr(model, "censored", False))


def misfit_and_nested(
    model: type[Model], data: ModelData, theta: Array, workers: int | None = None
) -> pd.DataFrame:
    """Test whether an observer describes the cells, and if so, what it could do without.

    Parameters
    ----------
    model, data, theta
        As `cell_misfit` takes them.

    Returns
    -------
    DataFrame
        One row per subject and test: subject, without ("misfit", or what the observer could do
        without: the name of the nested one less that of the model), p, aic of nested ones. A
        nested one has NaN where the misfit has a p below .05, as neither model describes the
        cells.
    """
    misfit = cell_misfit(model, data, theta).rename(columns={"misfit_p": "p"})
    tests = nested_tests(model, data, workers=workers).rename(columns={"p_value": "p"})
    described = misfit.set_index("subject")["p"] > MISFIT
    tests["p"] = tests["p"].where(tests["subject"].map(described))
    tests["without"] = tests["without"].str.removeprefix(f"{model.name}_")
    return pd.concat([misfit.assign(without="misfit"), tests], ignore_index=True)


def cell_misfit(model: type[Model], data: ModelData, theta: Array) -> pd.DataFrame:
    """Compare slope and spread of the answers in each cell with those of a fitted observer.

    Of the residuals, in standard deviations as the observer has them, two numbers of each cell
    should be standard normal: their slope on the stimuli within windows, and their mean square,
    made normal by its cube root (Wilson and Hilferty 1931). The sum of their squares is held
    against a chi-squared law; each parameter takes a degree of freedom. Answers at an end of the
    range are left out. Tasks of the same unit and ceiling are one in this.

    Parameters
    ----------
    model
        An observer whose answers are estimates on the linear scale.
    theta
        Estimates by subject, [N, P].

    Returns
    -------
    DataFrame
        One row per subject: subject, misfit (the sum), freedom, misfit_p. NaN without two answers
        in each cell.
    """
    sequences, names = data.sequences, model.parameters.names
    flat = dict(zip(model.columns, data.flat, strict=True))
    subject, n = sequences.subject, int(sequences.length.max(initial=0))
    step = np.arange(n)
    there = step < sequences.length[:, None]
    place = sequences.order[np.where(there, sequences.begin[:, None] + step, 0)]
    seen = {name: column[place] for name, column in flat.items()}  # [sequences, n]
    given = there & np.isfinite(seen["response"])
    own = dict(zip(names, theta[subject].T, strict=True))
    first = SimpleNamespace(**{name: column[:, 0] for name, column in seen.items()})
    observer, z = model.with_values(own, 0, first), np.full(given.shape, np.nan)
    for t in range(n):
        trial = SimpleNamespace(**{name: column[:, t] for name, column in seen.items()})
        with np.errstate(all="ignore"):
            law, before = observer.respond(trial), observer.remembered()
            z[:, t] = (trial.response / trial.unit - law.mean) / law.sd
            observer.update(trial)
        for name, value in before.items():
            setattr(observer, name, np.where(given[:, t], getattr(observer, name), value))
    inside = given & (seen["response"] > 0) & (seen["response"] < seen["ceiling"])
    codes = {"subject": subject, "sequence": np.arange(len(subject))}
    rows = pd.DataFrame({name: seen[name][inside] for name in (*CELL, "value")}).assign(
        z=z[inside], **{k: np.repeat(code, inside.sum(axis=1)) for k, code in codes.items()}
    )
    rows["x"] = rows["value"] - rows["value"].groupby(rows["sequence"]).transform("mean")
    rows["zx"], rows["xx"], rows["zz"] = rows["z"] * rows["x"], rows["x"] ** 2, rows["z"] ** 2
    cells = rows.groupby(["subject", *CELL])
    sums, count = cells[["zx", "xx", "zz"]].sum(), cells.size()
    spread = 2.0 / (9.0 * count)
    normal: pd.Series[float] = ((sums["zz"] / count) ** (1 / 3) - (1.0 - spread)) / np.sqrt(spread)
    squares = sums["zx"] ** 2 / sums["xx"] + normal**2
    by = squares.groupby("subject").agg(["sum", "size"]).reindex(range(len(data)))
    freedom = 2 * by["size"] - len(names)
    p = scipy.stats.chi2.sf(by["sum"], freedom.where(freedom > 0))
    columns = {"misfit": by["sum"].array, "freedom": freedom.array, "misfit_p": p}
    return pd.DataFrame({"subject": data.subjects, **columns})
