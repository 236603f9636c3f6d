"""How stable a score is: how much of its variance comes from model, wording and session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.later import pandas as pd
from knownminds.inference.resampling import Resampled

Source = Literal["model", "paraphrase", "interaction", "session", "residual"]
SOURCES: tuple[Source, ...] = ("model", "paraphrase", "interaction", "session", "residual")
CELL = ["model", "template", "session"]

_DRAWS = 4000
_KNOWN = 1e6  # degrees of freedom of a number that counts as known
_INSIDE = (0.025, 0.975)

Values = NDArray[np.float64]


@dataclass(frozen=True)
class VarianceSplit:
    """The components of a score's variance, and what follows from them.

    Parameters
    ----------
    parts : Variances by source, in squared units of the score. "model": between models;
        "paraphrase": between wordings, for all models alike; "interaction": the effect of a wording
        on one model and not on another; "session": between sessions of one model with one wording;
        "residual": between the units of a session. An estimate below 0 is kept (the source moves
        the score less than chance alone would suggest); its interval begins at 0. Also "wording":
        paraphrase and interaction together; "retest": the correlation of a model's scores in two
        sessions with the same wording, over models; "reworded": the same for two sessions with
        different wordings; "excess": the variance of wording less that of the model.
    models, templates, sessions, units : The numbers of models, wordings, sessions (in all) and
        units (in all) in the split.
    left_out : Models that did not have all wordings, and are left out.
    merged : Sources that the table cannot separate from another one: {"residual": "session"} if
        each session has one unit.
    """

    parts: Mapping[str, Resampled]
    models: int
    templates: int
    sessions: int
    units: int
    left_out: tuple[str, ...] = ()
    merged: Mapping[str, str] | None = None

    @property
    def shares(self) -> dict[str, float]:
        """The share of each source in the variance of a single unit; negative ones count as 0."""
        known = {name: max(self.parts[name].value, 0.0) for name in SOURCES}
        total = sum(value for value in known.values() if np.isfinite(value))
        return {name: value / total if total > 0 else np.nan for name, value in known.items()}

    @property
    def moved_more_by(self) -> Literal["wording", "model", "open"]:
        """Whether wording or the choice of the model moves the score more, beyond its interval."""
        if self.parts["excess"].low > 0:
            return "wording"
        return "model" if self.parts["excess"].high < 0 else "open"


def split_variance(
    frame: pd.DataFrame,
    score: str,
    *,
    model: str = "model",
    template: str = "template",
    session: str = "session",
    seed: int = 0,
) -> VarianceSplit:
    r"""Split the variance of a score into model, wording, session and residual.

    The model is :math:`y = \mu + M_i + T_j + (MT)_{ij} + S_{ijk} + e_{ijkl}` with random effects of
    models i, wordings j, sessions k, units l. The components are those at which the expected mean
    squares of the analysis of unweighted cell means equal the observed ones. They are unbiased if
    all cells have the same number of sessions and all sessions the same number of units (Searle,
    Casella & McCulloch 1992, Variance Components, chapter 4). Intervals are generalised ones
    (Weerahandi 1993): each mean square is divided by chi-squares over their degrees of freedom.
    With few models or wordings they are wide, as they must be.

    Parameters
    ----------
    frame : A row for each scored unit: a trial, a subject, or a session itself.
    score, model, template, session : The names of the columns. A session is one within its model
        and template. Rows without a finite score are left out.
    seed : Seed of the draws behind the intervals.

    Raises
    ------
    ValueError : If a column is missing, or there is nothing to compare: one model, one wording and
        one session.
    """
    keys = (model, template, session)
    _check_columns(frame, (score, *keys))
    rows = pd.DataFrame(
        {
            "score": pd.to_numeric(frame[score], errors="coerce").astype(float),
            **{name: frame[column].astype(str) for name, column in zip(CELL, keys, strict=True)},
        }
    )
    rows = rows[np.isfinite(rows["score"])]
    present = rows.groupby("model")["template"].nunique()
    every = rows["template"].nunique()
    left_out = tuple(sorted(present.index[present < every]))
    rows = rows[~rows["model"].isin(left_out)]
    sessions = rows.groupby(CELL).ngroups
    if sessions < 2:
        raise ValueError(
            "A variance is split over at least two sessions, and over models that have all "
            f"wordings; got {len(rows)} scores of models that do."
        )
    by_session = rows.groupby(CELL)["score"]
    within = float(((rows["score"] - by_session.transform("mean")) ** 2).sum())
    means, counts = by_session.mean(), by_session.count()
    by_cell = means.groupby(level=CELL[:2])
    between = float(((means - by_cell.transform("mean")) ** 2).sum())
    cells = by_cell.mean().unstack("template").to_numpy()
    squares = _crossed(cells)
    for name, total, freedom in (
        ("session", between, len(means) - cells.size),
        ("residual", within, len(rows) - len(means)),
    ):
        squares[name] = total / freedom if freedom else np.nan, freedom
    # These are harmonic means of the sessions of a cell, and of the units of a session.
    sizes = (1.0 / float((1.0 / by_cell.count()).mean()), 1.0 / float((1.0 / counts).mean()))
    return _split(squares, cells.shape, sizes, seed, (sessions, len(rows)), left_out)


def split_scores(
    frame: pd.DataFrame,
    score: str,
    error: str,
    *,
    model: str = "model",
    template: str = "template",
    freedom: str = "",
    exact: bool = False,
    seed: int = 0,
) -> VarianceSplit:
    r"""Split the variance of scores that were estimated in each wording, with standard errors.

    This is for scores that a single trial does not have, such as a slope: each model has one score
    per wording. The variance between models and wordings, less the mean squared standard error, is
    due to models, wordings and both together, as in `split_variance`, which also gives the
    intervals. The standard error contains the effects of sessions and their trials, and stands for
    "session".

    Parameters
    ----------
    frame : A row for each model and wording. Rows without a finite score and standard error are
        left out, and with them models that lack a wording.
    score, error, model, template : The names of the columns.
    freedom : The column of the degrees of freedom of the standard errors; without it they count as
        known.
    exact : Whether a standard error of 0 means a score without error, which is kept, and not a
        score with too few values for a standard error.
    seed : Seed of the draws behind the intervals.

    Raises
    ------
    ValueError : If a column is missing, a model has two scores in a wording, or fewer than two
        scores are left.
    """
    needed = [score, error, model, template, *([freedom] if freedom else [])]
    _check_columns(frame, needed)
    errors = frame[error].astype(float)
    usable = np.isfinite(errors) & ((errors > 0) | (exact & (errors == 0)))
    kept = frame[np.isfinite(frame[score].astype(float)) & usable]
    if kept.duplicated([model, template]).any():
        raise ValueError("A model has one score in each wording; one of them has two.")
    square = kept.assign(square=kept[error].astype(float) ** 2).pivot(
        index=model, columns=template, values=["square", score]
    )
    square = square.dropna()
    left_out = tuple(sorted(set(kept[model].astype(str)) - set(square.index.astype(str))))
    if square.size < 4:
        raise ValueError(
            "A variance is split over two models or wordings at least, of models that have all "
            f"wordings; got {square.size // 2} such scores."
        )
    values, squares = (square[name].to_numpy(dtype=float) for name in (score, "square"))
    known = np.inf
    if freedom:
        degrees = kept.pivot(index=model, columns=template, values=freedom).loc[square.index]
        each = np.maximum(degrees.to_numpy(dtype=float), 1.0)
        # Satterthwaite's degrees of freedom of a mean of squared errors.
        spread = np.sum(squares**2 / each)
        known = float(squares.sum() ** 2 / spread) if spread > 0 else np.inf
    mean_squares = _crossed(values)
    mean_squares["session"] = float(squares.mean()), min(known, _KNOWN)
    mean_squares["residual"] = np.nan, 0
    return _split(mean_squares, values.shape, (1.0, 1.0), seed, (values.size,) * 2, left_out)


def _check_columns(frame: pd.DataFrame, needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in frame]
    if missing:
        raise ValueError(
            f"A table of scores has the columns {', '.join(needed)}; it lacks {', '.join(missing)}."
        )


def _crossed(cells: Values) -> dict[str, tuple[float, float]]:
    """Return the mean squares of cells[models, templates] with their degrees of freedom."""
    a, b = cells.shape
    grand, of_model, of_template = cells.mean(), cells.mean(axis=1), cells.mean(axis=0)
    rest = cells - of_model[:, None] - of_template[None] + grand
    sums = {
        "model": (b * float(((of_model - grand) ** 2).sum()), a - 1),
        "template": (a * float(((of_template - grand) ** 2).sum()), b - 1),
        "both": (float((rest**2).sum()), (a - 1) * (b - 1)),
    }
    return {name: (total / df if df else np.nan, float(df)) for name, (total, df) in sums.items()}


def _split(
    squares: Mapping[str, tuple[float, float]],
    shape: tuple[int, ...],
    sizes: tuple[float, float],
    seed: int,
    counts: tuple[int, int],
    left_out: tuple[str, ...],
) -> VarianceSplit:
    """Return components with their generalised intervals, and what follows from them.

    Parameters
    ----------
    squares : Mean squares with their degrees of freedom; those of models, templates and both are
        for cell means.
    shape : Numbers of models and templates.
    sizes : Sessions of a cell and units of a session.
    counts : Numbers of sessions and units, in all.
    """
    rng = np.random.default_rng(seed)
    tells = {name: bool(freedom) for name, (_, freedom) in squares.items()}
    # The value comes first, then the draws; a source that cannot be separated from a finer one is
    # unknown.
    drawn = {
        name: np.append(value, value * df / rng.chisquare(df, _DRAWS))
        if df
        else np.full(1 + _DRAWS, np.nan)
        for name, (value, df) in squares.items()
    }
    unit = drawn["residual"] / sizes[1] if tells["residual"] else np.zeros(1 + _DRAWS)
    # This is the variance of a cell's mean that comes from its sessions.
    finer = (drawn["session"] if tells["session"] else unit) / sizes[0]
    below = drawn["both"] if tells["both"] else finer
    exact = {
        "model": (drawn["model"] - below) / shape[1],
        "paraphrase": (drawn["template"] - below) / shape[0],
        "interaction": drawn["both"] - finer,
        "session": drawn["session"] - unit,
        "residual": drawn["residual"],
    }
    part = {name: np.maximum(values, 0.0) for name, values in exact.items()}
    both = np.nan_to_num(part["interaction"])
    wording = part["paraphrase"] + both
    # This is the variance of a session's score around the mean of its model and wording.
    noise = part["session"] + np.nan_to_num(part["residual"]) / sizes[1]
    part["wording"] = wording
    stays = part["model"] + both
    part["retest"] = _ratio(stays, stays + noise)
    part["reworded"] = _ratio(part["model"], part["model"] + wording + noise)
    part["excess"] = wording - part["model"]
    parts = {}
    for name, values in part.items():
        value = float(exact.get(name, values)[0])
        parts[name] = Resampled(np.nan)
        if np.isfinite(value):
            low, high = np.quantile(values[1:][np.isfinite(values[1:])], _INSIDE)
            parts[name] = Resampled(value, float(low), float(high))
    merged = {} if tells["residual"] else {"residual": "session"}
    if not tells["session"]:
        merged["session"] = "interaction" if tells["both"] else "paraphrase"
    return VarianceSplit(parts, shape[0], shape[1], *counts, left_out, merged)


def _ratio(part: Values, whole: Values) -> Values:
    return np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0)
