"""Which features of language models go with their scores: a regression on two levels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import unknown

_DEPENDENT = 1e-8  # a singular value this small, of standardised columns, is none


def regress_on_features(
    scores: pd.DataFrame,
    features: pd.DataFrame,
    *,
    feature: Sequence[str] | None = None,
    base_model: str = "base_model",
    standardise: bool = False,
) -> pd.DataFrame:
    """Return `feature_regression` of every metric; one without has a row whose status says why.

    Parameters
    ----------
    feature : The features that enter; all that are numbers if None.
    """
    numbers = features.select_dtypes(include=["number", "bool"])
    names = [str(name) for name in numbers if name not in ("participant", base_model)]
    rows = []
    for metric, part in scores.groupby("metric", sort=False):
        try:
            rows.append(
                feature_regression(
                    part.reset_index(drop=True), features, regressors=feature or names,
                    base_model=base_model, standardise=standardise,
                )
            )  # fmt: skip
        except ValueError as error:
            rows.append(pd.DataFrame({"metric": [metric], "status": [str(error)]}))
    return pd.concat(rows, ignore_index=True)


def with_features(scores: pd.DataFrame, features: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the scores of participants that have a row of features, and a sentence on others."""
    who = scores["participant"].astype(str)
    there = who.isin(features["participant"].astype(str))
    left = sorted(set(who[~there]))
    notes = [f"Without features, and left out: {', '.join(left)}."] if left else []
    return scores[there], notes


def feature_regression(
    scores: pd.DataFrame,
    features: pd.DataFrame,
    *,
    regressors: Sequence[str],
    base_model: str = "base_model",
    standardise: bool = False,
) -> pd.DataFrame:
    """Regress each metric on features of the participants, with an intercept per base model.

    score = b_0 + b x features + u[base model] + e, u and e normal; variances by restricted maximum
    likelihood (statsmodels MixedLM), b by generalised least squares at these. Tests are of
    Student's t with the degrees of freedom of the level on which a feature varies, within base
    models or only between them (Pinheiro and Bates 2000). Normal tests reject too often with the
    few base models that there are.

    Parameters
    ----------
    scores : Columns participant, metric and score.
    features : Columns participant, the base model, and the regressors, which are numbers (0 and 1
        for yes and no).
    regressors : The features that enter.
    base_model : The column that says from which model a participant was made.
    standardise : Whether to divide scores and features by their standard deviations.

    Returns
    -------
    DataFrame : One row per metric and feature: coefficient, standard_error, low, high (95%),
        degrees_of_freedom and p_value of the two-sided t test against 0; NaN where there are none,
        as where there are no more base models than features that vary between them only.
        participants, base_models, excluded (without a score), between_sd and residual_sd (standard
        deviations of the base models' intercepts and of what is left), and status: "ok", or why
        there are no estimates.

    Raises
    ------
    ValueError : If columns are missing, participants have no features or several rows of them,
        features are no numbers or depend on each other (they are named), or base models cannot be
        named from their participants: there is a single one, or each has a single participant.
    """
    _need(scores, ("participant", "metric", "score"), "Scores")
    if not regressors or len(set(regressors)) < len(regressors):
        raise ValueError(f"regressors are one or more names, each once; got {list(regressors)!r}.")
    known = check_features(features, regressors, base_model)
    lacking = sorted(set(scores["participant"].astype(str)) - set(known.index))
    if lacking:
        more = f", and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise ValueError(
            f"Every participant has a row of features; {lacking[0]!r} has none{more}. "
            f"{unknown('participant', lacking[0], known.index)}"
        )
    effects = []
    for metric, part in scores.groupby("metric", sort=False):
        doubled = part["participant"][part["participant"].duplicated()]
        if len(doubled):
            raise ValueError(
                f"A participant has one score per metric; {doubled.iloc[0]!r} has several of "
                f"{metric}. Average them, or give each run a participant of its own."
            )
        y = pd.to_numeric(part["score"], errors="coerce").to_numpy(dtype=float)
        held = np.isfinite(y)
        rows = known.loc[part["participant"].astype(str)[held]]
        x = rows[list(regressors)].to_numpy(dtype=float)
        group, names = pd.factorize(rows[base_model].astype(str))
        _check_levels(str(metric), group, len(names))
        _check_columns(str(metric), x, regressors)
        if standardise:
            x, y = x / x.std(axis=0, ddof=1), y / np.std(y[held], ddof=1)
        b, error, between, within, status = _fit(y[held], x, group)
        freedom = _freedom(x, group, len(names))
        with np.errstate(invalid="ignore", divide="ignore"):
            half = np.asarray(scipy.stats.t.ppf(0.975, freedom)) * error
            p_value = 2 * np.asarray(scipy.stats.t.sf(np.abs(b / error), freedom))
        effects.append(
            pd.DataFrame({
                "metric": str(metric), "feature": list(regressors), "coefficient": b,
                "standard_error": error, "low": b - half, "high": b + half,
                "degrees_of_freedom": freedom, "p_value": p_value,
                "participants": int(held.sum()), "base_models": len(names),
                "excluded": int((~held).sum()), "between_sd": between, "residual_sd": within,
                "status": status,
            })
        )  # fmt: skip
    return pd.concat(effects, ignore_index=True)


def _need(table: pd.DataFrame, columns: Sequence[str], what: str) -> None:
    missing = [name for name in columns if name not in table]
    if missing:
        raise ValueError(
            f"{what} have the columns {', '.join(columns)}; {', '.join(map(repr, missing))} is "
            f"missing among {', '.join(map(str, table.columns))}. Rename or add it."
        )


def check_features(
    table: pd.DataFrame, regressors: Sequence[str], base_model: str = "base_model"
) -> pd.DataFrame:
    """Return the checked table of features by participant."""
    _need(table, ("participant", base_model, *regressors), "Features")
    name = table["participant"].astype(str)
    if name.duplicated().any():
        raise ValueError(
            f"A participant has one row of features; {name[name.duplicated()].iloc[0]!r} has "
            "several. Leave one."
        )
    known = table.set_index(name)[[base_model]].copy()
    for column in (base_model, *regressors):
        value = table[column]
        if column != base_model:
            value = pd.to_numeric(value, errors="coerce")
            known[column] = value.to_numpy(dtype=float)
        wrong = np.flatnonzero(value.isna())
        if len(wrong):
            rule = "is a name" if column == base_model else "is a number, 0 and 1 for no and yes"
            got = table[column].astype(object).iloc[wrong[0]]
            raise ValueError(
                f"The feature {column} {rule}; {name.iloc[wrong[0]]!r} has {got!r}. Recode it, "
                "fill it in, or leave it out."
            )
    return known


def _check_levels(metric: str, group: NDArray[np.int64], n: int) -> None:
    if n < 2:
        raise ValueError(
            f"Intercepts per base model need at least 2 base models; {metric} has scores of {n}. "
            "Add models, or use an ordinary regression."
        )
    if len(group) == n:
        raise ValueError(
            f"Base models are apart from their participants where some have several; {metric} has "
            f"{n} participants of {n} base models. Use an ordinary regression."
        )


def _check_columns(metric: str, x: Array, regressors: Sequence[str]) -> None:
    """Name the features that depend on each other."""
    if len(x) <= x.shape[1] + 1:
        raise ValueError(
            f"A regression on {x.shape[1]} features needs more than {x.shape[1] + 1} participants; "
            f"{metric} has {len(x)}. Leave features out."
        )
    spread = x.std(axis=0)
    flat = np.flatnonzero(spread <= 1e-12 * np.abs(x).max(axis=0, initial=1e-300))
    if len(flat):
        raise ValueError(
            f"A feature differs between participants; {regressors[flat[0]]} is the same for all "
            f"that have a score of {metric}. Leave it out."
        )
    _, size, direction = np.linalg.svd((x - x.mean(axis=0)) / spread / np.sqrt(len(x)))
    if size[-1] < _DEPENDENT:
        involved = [
            name for name, w in zip(regressors, direction[-1], strict=True) if abs(w) > 1e-6
        ]
        raise ValueError(
            f"Features do not follow from each other; among those with a score of {metric}, "
            f"{', '.join(involved)} do. Leave one of them out."
        )


def _freedom(x: Array, group: NDArray[np.int64], n_groups: int) -> Array:
    """Return the degrees of freedom of each feature on its level; NaN where none are left."""
    count = np.bincount(group)
    within = np.empty(x.shape[1], dtype=bool)
    for k, column in enumerate(x.T):
        mean = np.bincount(group, column) / count
        within[k] = np.abs(column - mean[group]).max() > 1e-9 * np.abs(column).max()
    inner = len(x) - n_groups - within.sum()
    outer = n_groups - 1 - (~within).sum()
    freedom: Array = np.where(within, inner, outer).astype(float)
    freedom[freedom < 1] = nan
    return freedom


def _fit(y: Array, x: Array, group: NDArray[np.int64]) -> tuple[Array, Array, float, float, str]:
    """Return coefficients and errors [features], the two standard deviations, and the status."""
    from statsmodels.regression.mixed_linear_model import MixedLM
    from statsmodels.tools.sm_exceptions import ConvergenceWarning

    none = np.full(x.shape[1], nan)
    scale = y.std()
    if scale <= 1e-12 * np.abs(y).max(initial=0.0):
        return none, none, nan, nan, "all scores are the same"
    centre, spread = x.mean(axis=0), x.std(axis=0)
    wide = np.column_stack([np.ones(len(y)), (x - centre) / spread])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # of a covariance at its bound
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            # There is one variance to search for. Searches that go by its gradient leave the
            # allowed range, or do not settle, where it is 0.
            fit: Any = MixedLM(y / scale, wide, group).fit(reml=True, method=["powell", "nm"])
        except np.linalg.LinAlgError:
            return none, none, nan, nan, "no convergence"
    between, residual = float(np.asarray(fit.cov_re)[0, 0]), float(fit.scale)
    if not fit.converged or not np.isfinite([between, residual]).all() or residual <= 0:
        return none, none, nan, nan, "no convergence"
    between = max(between, 0.0)
    # Generalised least squares at these variances: subtract a share of each base model's mean.
    count = np.bincount(group)
    share = 1.0 - np.sqrt(residual / (residual + count * between))
    columns = np.column_stack([wide, y / scale])
    means = np.stack([np.bincount(group, c) / count for c in columns.T], axis=1)
    moved = columns - (share[:, None] * means)[group]
    inverse = np.linalg.inv(moved[:, :-1].T @ moved[:, :-1])
    b = inverse @ moved[:, :-1].T @ moved[:, -1]
    error = np.sqrt(residual * np.diag(inverse))
    unit = scale / spread
    sds = float(np.sqrt(between) * scale), float(np.sqrt(residual) * scale)
    return b[1:] * unit, error[1:] * unit, *sds, "ok"
