"""Contrasts of a group on the natural scale: what a column does to a parameter, and how surely."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from knownminds.agents.parameters import Array, Parameters
from knownminds.environments.later import formulaic
from knownminds.environments.later import pandas as pd

from .sampling import stacked

if TYPE_CHECKING:
    from knownminds.inference.groups.formulas import GroupDesign

    from .group_model import HierarchicalFit

MASS = 0.9
NEGLIGIBLE = 0.1  # share of the distance between a prior's 16% and 50% (or 50% and 84%) points
MOST_LEVELS = 4  # up to this, levels of a column are compared pair by pair; else with the first
QUARTILES = (0.25, 0.75)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)  # over a normal distribution


def negligible(parameters: Parameters) -> dict[str, float]:
    """Return by parameter half the width of the region of no difference, if the user gives none.

    It is a tenth of half the distance between the 16% and 84% points of the model's prior, on the
    natural scale. For a normal prior that is a tenth of its standard deviation (Kruschke 2018).
    """
    ends = [parameters.constrain(parameters.mean + sign * parameters.sd) for sign in (-1.0, 1.0)]
    half = NEGLIGIBLE * (ends[1] - ends[0]) / 2
    return dict(zip(parameters.names, half.tolist(), strict=True))


def contrasts_of(fit: HierarchicalFit, rope: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Return the contrasts of all columns in the formulas of a fit; none without a formula.

    See `drawn_contrasts`.

    Parameters
    ----------
    rope : By parameter, on the natural scale: half the width of the region of practical
        equivalence; the default is that of `negligible`.

    Returns
    -------
    DataFrame : A row per contrast: contrast ("alpha: drug on - off"), parameter, column, kind
        ("within" subjects, whose own values changed, or "between" them), high_value, low_value, at
        (the value of another column, "group=patient", or ""), estimate (posterior mean), low and
        high (central 90%), direction (its probability), rope, inside (the share within the region)
        and verdict. The verdict is "differs" if the interval lies outside the region, "no
        difference" if it lies inside, else "open".

    Raises
    ------
    ValueError : If a region is for a parameter that is not estimated, or is not above 0.
    """
    for name, half in (rope or {}).items():
        fit.parameters.index(name)
        if not half > 0:
            raise ValueError(
                f"A region of practical equivalence is wider than 0; got {name}={half}."
            )
    halves = negligible(fit.parameters) | dict(rope or {})
    rows = []
    for about, draws in drawn_contrasts(fit):
        half = halves[about["parameter"]]
        low, high = map(float, np.quantile(draws, [0.5 - MASS / 2, 0.5 + MASS / 2]))
        positive = float((draws > 0).mean())
        verdict = "differs" if low > half or high < -half else "open"
        if -half <= low and high <= half:
            verdict = "no difference"
        rows.append(
            {
                **about,
                "estimate": float(draws.mean()),
                "low": low,
                "high": high,
                "direction": max(positive, 1.0 - positive),
                "rope": half,
                "inside": float((np.abs(draws) <= half).mean()),
                "verdict": verdict,
            }
        )
    return pd.DataFrame(rows)


def drawn_contrasts(fit: HierarchicalFit) -> Iterator[tuple[dict[str, str], Array]]:
    """Yield a description of each contrast, and its draws, [S].

    A contrast is a parameter of the group's typical member under one value of a column, less the
    same under another value. The typical member is one whose deviations are 0, so that with the
    links of bounded parameters the contrast is a difference of medians. It is averaged over the
    subjects as they are in all other columns. Categories (and numbers with two values) are compared
    pair by pair; with more than four levels, each is compared with the first. Other numbers are
    compared at their upper and lower quartile. Where two columns of categories interact, there is
    also a contrast at each level of the other column.
    """
    design = fit.design
    for parameter, names, columns, levels, typical in _typical_members(fit):
        for column in columns:
            pairs = _compared(design.frame[column], levels.get(column))
            joint = [name for name in names if ":" in name and column in name and column in levels]
            others = [o for o in levels if o != column and any(o in one for one in joint)]
            held: list[dict[str, Any]] = [{}]
            held += [{other: level} for other in others for level in levels[other]]
            for at in held:
                where = ", ".join(f"{name}={_written(design, name, at[name])}" for name in at)
                for low, high in pairs:
                    ends = _written(design, column, high), _written(design, column, low)
                    about = {
                        "contrast": f"{parameter}: {column} {ends[0]} - {ends[1]}"
                        + (f" at {where}" if where else ""),
                        "parameter": parameter,
                        "column": column,
                        "kind": "between" if design.between(column) else "within",
                        "high_value": ends[0],
                        "low_value": ends[1],
                        "at": where,
                    }
                    yield about, typical({column: high, **at}) - typical({column: low, **at})


def values_of_levels(fit: HierarchicalFit) -> pd.DataFrame:
    """Return what each parameter is in each group that a formula names.

    Returns
    -------
    DataFrame : A row per level of each column of categories that moves a parameter: parameter,
        column, level, subjects (how many have it), estimate (posterior mean of the typical member,
        averaged as in `drawn_contrasts`), low and high (central 90%), on the natural scale.
    """
    rows, design = [], fit.design
    for parameter, _, columns, levels, typical in _typical_members(fit):
        for column, level in ((c, value) for c in columns for value in levels.get(c, ())):
            draws = typical({column: level})
            low, high = np.quantile(draws, [0.5 - MASS / 2, 0.5 + MASS / 2])
            rows.append(
                {
                    "parameter": parameter,
                    "column": column,
                    "level": _written(design, column, level),
                    "subjects": len(
                        np.unique(design.deviations.subject[design.frame[column] == level])
                    ),
                    "estimate": float(draws.mean()),
                    "low": float(low),
                    "high": float(high),
                }
            )
    return pd.DataFrame(rows)


Typical = Callable[[Mapping[str, Any]], Array]


def _typical_members(
    fit: HierarchicalFit,
) -> Iterator[tuple[str, list[str], list[str], dict[str, list[Any]], Typical]]:
    """Yield of each formula its parameter, regressors, columns, levels of categories, and values.

    The last is a function: the mean parameter over subjects with some columns set to a value, [S].
    """
    from .group_model import expected_of

    design, begin = fit.design, 0
    every = expected_of(fit.posterior, fit.parameters, design.regressors)
    per = 1.0 / np.bincount(design.deviations.subject)[design.deviations.subject]
    for term in design.terms if fit.effects else ():
        frame, made = design.frame, formulaic.model_matrix(term.fixed, design.frame)
        names = [str(name) for name in made.columns if name != "Intercept"]
        weights = stacked(fit.posterior, "effect", "term")[:, begin : begin + len(names)]
        begin += len(names)
        expected = every[..., fit.parameters.index(term.parameter)]
        matrix = made[names].to_numpy(dtype=float)
        support = fit.parameters[term.parameter].support

        def typical(values: Mapping[str, Any]) -> Array:
            there = made.model_spec.get_model_matrix(frame.assign(**dict(values)))  # noqa: B023
            z = expected + weights @ (there[names].to_numpy(dtype=float) - matrix).T  # noqa: B023
            mean: Array = support.constrain(z) @ (per / per.sum())  # noqa: B023
            return mean

        columns = sorted(map(str, made.model_spec.required_variables)) if names else []
        categories = [c for c in columns if _is_category(c, term.fixed, frame)]
        levels = {c: sorted(frame[c].unique().tolist()) for c in categories}
        yield term.parameter, names, columns, levels, typical


def drawn_means(fit: HierarchicalFit, contrast: Mapping[str, float]) -> Array:
    """Return draws of a group's mean of a contrast on the natural scale, [S].

    It is the mean over the group, by Gauss-Hermite quadrature for each parameter.
    """
    total = 0.0
    for name, weight in contrast.items():
        mean, spread = (
            fit.posterior[which].sel(parameter=name).to_numpy().ravel()
            for which in ("group_mean", "group_sd")
        )
        natural = fit.parameters[name].support.constrain(mean[:, None] + spread[:, None] * NODES)
        total = total + weight * (natural @ WEIGHTS) / WEIGHTS.sum()
    return np.asarray(total)


def _is_category(column: str, formula: str, frame: pd.DataFrame) -> bool:
    values = frame[column]
    number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    return not number or values.nunique() == 2 or f"C({column}" in formula


def _compared(values: pd.Series[Any], levels: list[Any] | None) -> list[tuple[Any, Any]]:
    """Return the pairs of values to compare, the lower first; numbers come without levels."""
    if levels is None:
        low, high = np.quantile(values.astype(float), QUARTILES)
        return [(float(low), float(high))] if high > low else [(values.min(), values.max())]
    if len(levels) > MOST_LEVELS:
        return [(levels[0], level) for level in levels[1:]]
    return list(combinations(levels, 2))


def _written(design: GroupDesign, column: str, value: Any) -> str:
    """Write a value as it stands in the data: numbers of a design are less their mean."""
    if column in design.centre:
        value = float(value) + design.centre[column]
    return f"{value:.4g}" if isinstance(value, float) else str(value)
