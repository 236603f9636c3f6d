"""How stable a score is: what of its variance is the model's, the wording's, the session's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.later import pandas as pd
from knownminds.inference.resampling import Resampled

Source = Literal["model", "paraphrase", "interaction", "session", "residual"]
SOURCES: tuple[Source, ...] = ("model", "paraphrase", "interaction", "session", "residual")

_DRAWS = 4000
_KNOWN = 1e6  # degrees of freedom of what counts as known
_INSIDE = (0.025, 0.975)

Values = NDArray[np.float64]


@dataclass(frozen=True)
class VarianceSplit:
    """What moves a score: the components of its variance, and what follows from them.

    Parameters
    ----------
    components
        Variances by source, in squared units of the score. "model": between models; "paraphrase":
        between wordings, for all models alike; "interaction": what a wording does to one model
        and not to another; "session": between sessions of one model with one wording; "residual":
        between the units of a session. An estimate below 0 is kept as it is (the source moves
        the score less than chance alone would let it seem); its interval begins at 0.
    wording
        All that wording does: paraphrase and interaction together.
    retest
        Correlation of a model's scores in two sessions with the same wording, over models.
    reworded
        The same of two sessions with different wordings.
    excess
        How much more of the variance wording has than the model: `wording` less "model".
    models, templates, sessions, units
        How many models, wordings, sessions (all together) and units (all together) went in.
    left_out
        Models that did not have all wordings, and are not in it.
    merged
        Sources that the table cannot tell from the one named behind: {"residual": "session"}
        where each session has one unit.
    """

    components: Mapping[Source, Resampled]
    wording: Resampled
    retest: Resampled
    reworded: Resampled
    excess: Resampled
    models: int
    templates: int
    sessions: int
    units: int
    left_out: tuple[str, ...] = ()
    merged: Mapping[str, str] | None = None

    @property
    def shares(self) -> dict[Source, float]:
        """The share of each source in the variance of a single unit; negative ones count as 0."""
        known = {name: max(result.value, 0.0) for name, result in self.components.items()}
        total = sum(value for value in known.values() if np.isfinite(value))
        return {name: value / total if total > 0 else np.nan for name, value in known.items()}

    @property
    def moved_more_by(self) -> Literal["wording", "model", "open"]:
        """Whether wording or the choice of the model moves the score more, beyond its interval."""
        if self.excess.low > 0:
            return "wording"
        return "model" if self.excess.high < 0 else "open"


@dataclass(frozen=True)
class _Squares:
    """Mean squares with their degrees of freedom, and the sizes that tell what they expect.

    Those of models, templates and interaction are of cell means; NaN where there are none.
    """

    squares: Mapping[str, float]
    freedom: Mapping[str, float]
    models: int
    templates: int
    sessions: float  # of a cell, harmonic mean
    units: float  # of a session, harmonic mean


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

    The model is :math:`y = \mu + M_i + T_j + (MT)_{ij} + S_{ijk} + e_{ijkl}` with all effects
    random: of models i, wordings j, sessions k, units l. Components are those at which the
    expected mean squares of the analysis of unweighted cell means are the observed ones, unbiased
    where cells have as many sessions and sessions as many units as each other (Searle, Casella &
    McCulloch 1992, Variance Components, chapter 4). Intervals are generalised ones (Weerahandi
    1993): each mean square is divided by chi-squares over their degrees of freedom. With few
    models or wordings they are wide, as they must be.

    Parameters
    ----------
    frame
        A row for each unit that is scored: a trial, a subject, or a session itself.
    score, model, template, session
        Columns. A session is told apart within its model and template. Rows without a finite
        score are left out.
    seed
        Of the draws behind the intervals.

    Raises
    ------
    ValueError
        If a column is missing, or there is nothing to compare: one model, one wording and one
        session.
    """
    missing = [name for name in (score, model, template, session) if name not in frame]
    if missing:
        raise ValueError(
            f"A table of scores has the columns {score}, {model}, {template} and {session}; it "
            f"lacks {', '.join(missing)}."
        )
    rows = pd.DataFrame(
        {
            "score": pd.to_numeric(frame[score], errors="coerce").astype(float),
            "model": frame[model].astype(str),
            "template": frame[template].astype(str),
            "session": frame[session].astype(str),
        }
    )
    rows = rows[np.isfinite(rows["score"])]
    present = rows.groupby("model")["template"].nunique()
    every = rows["template"].nunique()
    left_out = tuple(sorted(present.index[present < every]))
    rows = rows[~rows["model"].isin(left_out)]
    if len(rows) == 0 or rows.groupby(["model", "template", "session"]).ngroups < 2:
        raise ValueError(
            "A variance is split over at least two sessions, and over models that have all "
            f"wordings; got {len(rows)} scores of models that do."
        )
    sessions = rows.groupby(["model", "template", "session"]).ngroups
    return _split(_squares(rows), seed, sessions, len(rows), left_out)


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

    For scores that have no value in a single trial, such as a slope: each model has one score a
    wording. What is left between models and wordings besides the mean squared standard error is
    what models, wordings and both together do, as in `split_variance`, whose intervals these are.
    What sessions and their trials add is the standard error, and stands for "session".

    Parameters
    ----------
    frame
        A row for each model and wording. Rows without a finite score and standard error are left
        out, and with them models that lack a wording.
    score, error, model, template
        Columns.
    freedom
        The column of the degrees of freedom of the standard errors; without, they count as known.
    exact
        Whether a standard error of 0 is that of a score without error, which is kept, and not a
        sign that there were too few values to have one.
    seed
        Of the draws behind the intervals.

    Raises
    ------
    ValueError
        If a column is missing, a model has two scores in a wording, or fewer than two scores are
        left.
    """
    needed = [score, error, model, template, *([freedom] if freedom else [])]
    missing = [name for name in needed if name not in frame]
    if missing:
        raise ValueError(
            f"A table of scores has the columns {', '.join(needed)}; it lacks {', '.join(missing)}."
        )
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
        own = kept.pivot(index=model, columns=template, values=freedom).loc[square.index]
        each = np.maximum(own.to_numpy(dtype=float), 1.0)
        # Satterthwaite's of a mean of squared errors.
        spread = np.sum(squares**2 / each)
        known = float(squares.sum() ** 2 / spread) if spread > 0 else np.inf
    sums, freedoms = _crossed(values)
    sums |= {"session": float(squares.mean()), "residual": np.nan}
    freedoms |= {"session": min(known, _KNOWN), "residual": 0}
    table = _Squares(sums, freedoms, len(square), square.shape[1] // 2, 1.0, 1.0)
    return _split(table, seed, values.size, values.size, left_out)


def _split(
    table: _Squares, seed: int, sessions: int, units: int, left_out: tuple[str, ...]
) -> VarianceSplit:
    """Return components with their generalised intervals, and what follows from them."""
    exact = _components({name: np.array([v]) for name, v in table.squares.items()}, table)
    rng = np.random.default_rng(seed)
    drawn = {
        name: value * df / rng.chisquare(df, _DRAWS) if df else np.full(_DRAWS, np.nan)
        for (name, value), df in zip(table.squares.items(), table.freedom.values(), strict=True)
    }
    spread = {name: np.maximum(v, 0.0) for name, v in _components(drawn, table).items()}
    point = {name: float(v[0]) for name, v in exact.items()}
    clipped = {name: np.maximum(v, 0.0) for name, v in exact.items()}

    def estimate(value: float, draws: Values) -> Resampled:
        if not np.isfinite(value):
            return Resampled(np.nan)
        low, high = np.quantile(draws[np.isfinite(draws)], _INSIDE)
        return Resampled(value, float(low), float(high))

    def of(function: str) -> Resampled:
        derived: Callable[[Mapping[Source, Values], float], Values] = _DERIVED[function]
        return estimate(float(derived(clipped, table.units)[0]), derived(spread, table.units))

    return VarianceSplit(
        {name: estimate(point[name], spread[name]) for name in SOURCES},
        of("wording"),
        of("retest"),
        of("reworded"),
        of("excess"),
        table.models,
        table.templates,
        sessions,
        units,
        left_out,
        _merged(table),
    )


def _squares(rows: pd.DataFrame) -> _Squares:
    """Return the mean squares of sessions within cells, of cells, and of units within sessions."""
    by_session = rows.groupby(["model", "template", "session"])["score"]
    within = float(((rows["score"] - by_session.transform("mean")) ** 2).sum())
    means, counts = by_session.mean(), by_session.count()
    by_cell = means.groupby(level=["model", "template"])
    between = float(((means - by_cell.transform("mean")) ** 2).sum())
    cells = by_cell.mean().unstack("template").to_numpy()
    a, b = cells.shape
    squares, freedom = _crossed(cells)
    finer = {
        "session": (between, len(means) - a * b),
        "residual": (within, len(rows) - len(means)),
    }
    for name, (total, df) in finer.items():
        squares[name], freedom[name] = (total / df if df else np.nan), df
    sessions = 1.0 / float((1.0 / by_cell.count()).mean())
    units = 1.0 / float((1.0 / counts).mean())
    return _Squares(squares, freedom, a, b, sessions, units)


def _crossed(cells: Values) -> tuple[dict[str, float], dict[str, float]]:
    """Return the mean squares of cells[models, templates] with their degrees of freedom."""
    a, b = cells.shape
    grand, of_model, of_template = cells.mean(), cells.mean(axis=1), cells.mean(axis=0)
    apart = cells - of_model[:, None] - of_template[None] + grand
    result = {
        "model": (b * float(((of_model - grand) ** 2).sum()), a - 1),
        "template": (a * float(((of_template - grand) ** 2).sum()), b - 1),
        "both": (float((apart**2).sum()), (a - 1) * (b - 1)),
    }
    squares = {name: total / df if df else np.nan for name, (total, df) in result.items()}
    return squares, {name: float(df) for name, (_, df) in result.items()}


def _components(squares: Mapping[str, Values], table: _Squares) -> dict[Source, Values]:
    """Return the components at which mean squares have these values, [draws] each.

    What cannot be told from something finer is NaN, and within that.
    """
    unknown = np.full_like(squares["session"], np.nan)
    residual = squares["residual"] if table.freedom["residual"] else unknown
    of_units = residual / table.units if table.freedom["residual"] else 0.0
    tells_sessions = bool(table.freedom["session"])
    session = squares["session"] - of_units if tells_sessions else unknown
    # The variance of a cell's mean that comes from its sessions.
    finer = (squares["session"] if tells_sessions else of_units) / table.sessions
    crossed = bool(table.freedom["both"])
    below = squares["both"] if crossed else finer
    several = table.freedom
    return {
        "model": (squares["model"] - below) / table.templates if several["model"] else unknown,
        "paraphrase": (
            (squares["template"] - below) / table.models if several["template"] else unknown
        ),
        "interaction": squares["both"] - finer if crossed else unknown,
        "session": session,
        "residual": residual,
    }


def _wording(parts: Mapping[Source, Values], units: float) -> Values:
    return parts["paraphrase"] + np.nan_to_num(parts["interaction"])


def _noise(parts: Mapping[Source, Values], units: float) -> Values:
    """Return the variance of a session's score around what its model and wording make it."""
    return parts["session"] + np.nan_to_num(parts["residual"]) / units


def _retest(parts: Mapping[Source, Values], units: float) -> Values:
    stays = parts["model"] + np.nan_to_num(parts["interaction"])
    return _ratio(stays, stays + _noise(parts, units))


def _reworded(parts: Mapping[Source, Values], units: float) -> Values:
    total = parts["model"] + _wording(parts, units) + _noise(parts, units)
    return _ratio(parts["model"], total)


def _ratio(part: Values, whole: Values) -> Values:
    return np.divide(part, whole, out=np.full_like(whole, np.nan), where=whole > 0)


_DERIVED: Mapping[str, Callable[[Mapping[Source, Values], float], Values]] = {
    "wording": _wording,
    "retest": _retest,
    "reworded": _reworded,
    "excess": lambda parts, units: _wording(parts, units) - parts["model"],
}


def _merged(table: _Squares) -> dict[str, str]:
    """Return the sources that cannot be told apart, each with that in which it is."""
    merged = {}
    if not table.freedom["residual"]:
        merged["residual"] = "session"
    if not table.freedom["session"]:
        merged["session"] = "interaction" if table.freedom["both"] else "paraphrase"
    return merged
