"""Whether an observer that was fitted over cells describes the answers in each of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import scipy
from numpy.typing import NDArray

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.environments.later import pandas as pd
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.fits.nested_tests import nested_tests
from knownminds.inference.fits.point import maximum_a_posteriori

MISFIT = 0.05  # below this p one observer does not describe the cells
STEP = 1e-4  # of derivatives, on the unconstrained scale
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)  # of a standard normal number
CELL = ("unit", "ceiling", "condition", "modality")  # columns that tell cells apart


def has_cells(model: type[Model]) -> bool:
    """Return whether a model sees what tells cells apart, and its misfit can be computed."""
    return set(CELL) <= set(model.columns) and bool(getattr(model, "censored", False))


def misfit_and_nested(
    model: type[Model], data: ModelData, *, workers: int | None = None
) -> pd.DataFrame:
    """Test whether an observer describes the cells, and if so, what it could do without.

    Returns
    -------
    DataFrame : One row per subject and test: subject, without ("misfit", or what the observer could
        do without: the name of the nested one less that of the model), p, aic of nested ones. A
        nested one has NaN where the misfit has a p below .05, as neither model describes the cells.
    """
    misfit = cell_misfit(model, data, workers=workers).rename(columns={"misfit_p": "p"})
    tests = nested_tests(model, data, workers=workers).rename(columns={"p_value": "p"})
    described = misfit.set_index("subject")["p"] > MISFIT
    tests["p"] = tests["p"].where(tests["subject"].map(described))
    tests["without"] = tests["without"].str.removeprefix(f"{model.name}_")
    return pd.concat([misfit.assign(without="misfit"), tests], ignore_index=True)


def cell_misfit(model: type[Model], data: ModelData, *, workers: int | None = None) -> pd.DataFrame:
    """Compare slope and spread of the answers in each cell with those of the fitted observer.

    Answers at an end of the range are left out. The others have a truncated normal law, by which
    each residual is made standard normal. Then two numbers r of each cell should be so, too: the
    slope of the residuals on the stimuli within windows, and their mean square, made normal by its
    cube root (Wilson and Hilferty 1931). They rest on MAP estimates with the covariance V, which r
    follows by the derivatives J: the covariance of r is 1 - J V J'. So the sum of their squares is
    one of chi-squared numbers, each with a weight between 0 and 1 (Chernoff and Lehmann 1954), and
    is taken as a multiple of one with its mean and variance. A cell whose windows have one stimulus
    each has no slope. Tasks of the same unit and ceiling are one in this.

    Parameters
    ----------
    model : An observer whose answers are estimates on the linear scale.

    Returns
    -------
    DataFrame : One row per subject: subject, misfit (the sum), freedom, misfit_p. p is NaN if there
        is no more freedom than there are parameters, or the fit failed or gave no errors.
    """
    fit = maximum_a_posteriori(model, data, workers=workers)
    sequences, parameters = data.sequences, model.parameters
    flat = dict(zip(model.columns, data.flat, strict=True))
    subject, n = sequences.subject, int(sequences.length.max(initial=0))
    step = np.arange(n)
    there = step < sequences.length[:, None]
    place = sequences.order[np.where(there, sequences.begin[:, None] + step, 0)]
    seen = {name: column[place] for name, column in flat.items()}  # [sequences, n]
    given = there & np.isfinite(seen["response"])
    inside = given & (seen["response"] > 0) & (seen["response"] < seen["ceiling"])

    def law(z: Array) -> tuple[Array, Array]:
        """Return mean and log spread of each answer inside, by unconstrained parameters."""
        mean, sd = _laws(model, parameters.constrain(z)[subject], seen, given)
        return mean[inside], np.log(sd[inside])

    at = fit.z
    mean, log_sd = law(at)
    codes = {"subject": subject, "sequence": np.arange(len(subject))}
    rows = pd.DataFrame({name: seen[name][inside] for name in (*CELL, "value")}).assign(
        **{k: np.repeat(code, inside.sum(axis=1)) for k, code in codes.items()}
    )
    x = rows["value"] - rows["value"].groupby(rows["sequence"]).transform("mean")
    y, top = (seen[name][inside] / seen["unit"][inside] for name in ("response", "ceiling"))
    z = _normal(y, mean, log_sd, top)
    rows["zx"], rows["xx"], rows["zz"] = z * x, x**2, z**2
    by_mean, by_sd = _expected_derivatives(mean, log_sd, top)
    for k, by in enumerate(STEP * np.eye(len(parameters))):
        (high, high_sd), (low, low_sd) = law(at + by), law(at - by)
        moves = (high - low) / (2.0 * STEP) * np.exp(-log_sd), (high_sd - low_sd) / (2.0 * STEP)
        rows[f"slope{k}"] = (by_mean[0] * moves[0] + by_sd[0] * moves[1]) * x
        rows[f"spread{k}"] = 2.0 / 3.0 * (by_mean[1] * moves[0] + by_sd[1] * moves[1])
    cells = rows.groupby(["subject", *CELL])
    sums, count = cells[[c for c in rows if c not in (*CELL, "subject")]].sum(), cells.size()
    width, error = np.sqrt(sums["xx"]), np.sqrt(2.0 / (9.0 * count))
    several = width > 1e-6 * width.index.get_level_values("unit")
    spread: pd.Series[float] = ((sums["zz"] / count) ** (1 / 3) - (1.0 - error**2)) / error
    numbers = pd.concat([(sums["zx"] / width)[several], spread])
    moved = pd.DataFrame({
        k: pd.concat([(sums[f"slope{k}"] / width)[several], sums[f"spread{k}"] / count / error])
        for k in range(len(parameters))
    })  # fmt: skip
    of = numbers.groupby("subject").indices
    expected, squares = np.full((2, len(data)), np.nan)  # sums of the weights, and of their squares
    for i, rows_of in of.items():
        if fit.status[i] == "failed" or not np.isfinite(fit.covariance[i]).all():
            continue
        jacobian = moved.to_numpy()[rows_of]
        weights = 1.0 - np.linalg.eigvalsh(jacobian @ fit.covariance[i] @ jacobian.T)
        expected[i], squares[i] = weights.sum(), (weights**2).sum()
    misfit = (numbers**2).groupby("subject").sum().reindex(range(len(data))).to_numpy(dtype=float)
    freedom = expected**2 / squares
    enough = freedom > len(parameters)
    p = scipy.stats.chi2.sf(misfit * expected / squares, np.where(enough, freedom, np.nan))
    columns = {"misfit": misfit, "freedom": freedom, "misfit_p": p}
    return pd.DataFrame({"subject": data.subjects, **columns})


def _normal(y: Array, mean: Array, log_sd: Array, top: Array) -> Array:
    """Make numbers between 0 and top standard normal, of a normal law that is truncated there."""
    sd = np.exp(log_sd)
    z, low, high = (y - mean) / sd, -mean / sd, (top - mean) / sd
    sign = np.where(z > 0.0, -1.0, 1.0)  # the lower tail has more digits
    below = scipy.special.ndtr(np.where(z > 0.0, -high, low))
    above = scipy.special.ndtr(np.where(z > 0.0, -low, high))
    share = (scipy.special.ndtr(sign * z) - below) / (above - below)
    far = (low < -8.0) & (high > 8.0)
    return np.where(far, z, sign * scipy.special.ndtri(np.maximum(share, 1e-300)))


def _expected_derivatives(mean: Array, log_sd: Array, top: Array) -> tuple[Array, Array]:
    """Return those of z = `_normal`, and of z**2 / 2, by the mean in sd and by log sd, [2, N]."""
    sd, by_mean, by_sd = np.exp(log_sd), np.zeros((2, len(mean))), np.zeros((2, len(mean)))
    below, above = scipy.special.ndtr(-mean / sd), scipy.special.ndtr((top - mean) / sd)
    for z, weight in zip(NODES, WEIGHTS / WEIGHTS.sum(), strict=True):
        share = below + scipy.special.ndtr(z) * (above - below)
        y = mean + sd * scipy.special.ndtri(share)
        for sums, moved, spread in ((by_mean, STEP * sd, 0.0), (by_sd, 0.0, STEP)):
            up = _normal(y, mean + moved, log_sd + spread, top)
            down = _normal(y, mean - moved, log_sd - spread, top)
            sums += weight * (up - down) / (2.0 * STEP) * np.array([[1.0], [z]])
    return by_mean, by_sd


def _laws(
    model: type[Model], theta: Array, seen: dict[str, Array], given: NDArray[np.bool_]
) -> tuple[Array, Array]:
    """Return mean and spread of each answer, [sequences, n], given those before it."""
    own = dict(zip(model.parameters.names, theta.T, strict=True))
    # A trial without an answer has no columns either.
    begin = np.arange(len(given)), given.argmax(axis=1)
    first = SimpleNamespace(**{name: column[begin] for name, column in seen.items()})
    observer, (mean, sd) = model.with_values(own, 0, first), np.full((2, *given.shape), np.nan)
    for t in range(given.shape[1]):
        trial = SimpleNamespace(**{name: column[:, t] for name, column in seen.items()})
        with np.errstate(all="ignore"):
            law, before = observer.respond(trial), observer.remembered()
            mean[:, t], sd[:, t] = law.mean, law.sd
            observer.update(trial)
        for name, value in before.items():
            setattr(observer, name, np.where(given[:, t], getattr(observer, name), value))
    return mean, sd
