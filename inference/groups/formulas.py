"""Formulas of a group: which columns move which parameter, and in what subjects differ.

The notation is that of lme4 and brms: `alpha ~ drug + (drug | subject)`. Terms outside the
parentheses move the group's mean. Terms inside them have a deviation for each subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Model
from knownminds.agents.parameters import Array, Parameters
from knownminds.environments.later import formulaic
from knownminds.environments.later import pandas as pd

from .crossed_levels import BETWEEN
from .deviations import ALONE, Deviations

ANSWERS = ("action", "response", "reward", "outcome")  # these cannot move a parameter
MOST_CODES = 6  # different whole numbers of a column that may be names of groups
OWN = "subject"  # may stand behind the bar, besides the columns of a unit


@dataclass(frozen=True)
class Regressors:
    """Regression weights on group means, and the regressors' values in each row of parameters.

    Parameters
    ----------
    names : "parameter ~ regressor" for each of E weights
    parameter : position of the parameter that each weight moves, [E]
    by_subject : the regressors' values, [M, E]; a subject with several rows has them in each row
    spread : how far each regressor spreads, [E]: 1 of a category, the standard deviation of numbers
    """

    names: tuple[str, ...]
    parameter: NDArray[np.int64]
    by_subject: Array
    spread: Array

    def prior_sd(self, parameters: Parameters) -> Array:
        """Return the standard deviations of the weights' priors, per raw unit, [E].

        A regressor's spread moves a parameter as far as the parameter's prior spreads, so that no
        unit in which a column is written changes a verdict.
        """
        sd: Array = parameters.sd[self.parameter] / self.spread
        return sd


@dataclass(frozen=True)
class Term:
    """A formula in parts: `parameter ~ fixed + (own | group)`, or `||` if not `together`."""

    text: str
    parameter: str
    fixed: str
    own: str | None = None
    together: bool = True
    group: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the formula reads."""
        return _columns_of(self.fixed, self.text) + _columns_of(self.own or "1", self.text)


@dataclass(frozen=True)
class GroupDesign:
    """The rows of parameters of a group's subjects, and what moves them.

    A subject has a row of parameters for each combination of its values in the columns within
    subjects, or a single row if no formula names such a column.

    Parameters
    ----------
    terms : the formulas, in parts
    within : columns that change within subjects, as formulas name them
    subjects : names of the N subjects
    rows : names of the M rows, "p1 | on"; those of the subjects if each has one row
    of_trial : name of the row that each trial belongs to, by the trials' index
    frame : a row for each row of parameters with the columns that formulas read, [M]; numbers are
        less their mean
    regressors : weights on group means
    deviations : the deviations of each subject
    centre : the means of columns of numbers, by name, at which the group's means stand
    """

    terms: tuple[Term, ...]
    within: tuple[str, ...]
    subjects: tuple[str, ...]
    rows: tuple[str, ...]
    of_trial: pd.Series[Any] = field(repr=False)
    frame: pd.DataFrame = field(repr=False)
    regressors: Regressors = field(repr=False)
    deviations: Deviations = field(repr=False)
    centre: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def plain(
        cls, parameters: Parameters, subjects: Sequence[str], correlated: bool = False
    ) -> GroupDesign:
        """Return the design without formulas: each subject has one row, and deviates in it."""
        names = tuple(subjects)
        nothing = _no_regressors(len(names))
        deviations = Deviations.plain(parameters, len(names), correlated)
        of_trial, frame = pd.Series(dtype=str), pd.DataFrame(index=list(names))
        return cls((), (), names, names, of_trial, frame, nothing, deviations)

    @classmethod
    def of(
        cls,
        formula: str | Sequence[str],
        frame: pd.DataFrame,
        model: type[Model],
        parameters: Parameters,
        *,
        unit: Sequence[str] = (OWN,),
        correlated: bool = False,
    ) -> GroupDesign:
        """Read formulas against the trials; values of `subject` name the units that deviate.

        Parameters
        ----------
        frame : The trials.
        unit : The columns that make such a unit; they may stand behind the bar.
        correlated : Whether all deviations of a subject may be correlated; otherwise only those in
            the same parentheses with a single bar.

        Raises
        ------
        ValueError : If a formula is wrong; the error names the fault. It may name a parameter or
            column that does not exist, a column that changes within subjects without a term for how
            subjects differ in it, a column that changes within a session of a model that learns, or
            a column without information.
        """
        terms = read_formulas(formula, parameters)
        subject = frame["subject"].astype(str)
        possible = [str(c) for c in frame.columns if c not in (*ANSWERS, OWN)]
        changing = []
        for term in terms:
            _check_columns(term, frame, possible)
            _check_group(term, unit)
            changing += [c for c in term.columns if _changes(frame[c], subject).any()]
        within = tuple(dict.fromkeys(changing))
        for term in terms:
            _check_within(term, frame, subject, within)
        of_trial = subject
        if within:
            parts = [subject, *(frame[name].astype(str) for name in within)]
            of_trial = pd.Series(
                [BETWEEN.join(one) for one in zip(*parts, strict=True)], index=frame.index
            )
            _check_sequences(model, frame, of_trial, within)
        first = ~of_trial.duplicated()
        read = list(dict.fromkeys(c for term in terms for c in term.columns))
        frame = frame.loc[first, read].set_axis(of_trial[first].to_numpy(), axis=0)
        centre = _centres(terms, frame)
        frame = frame.assign(**{column: frame[column] - mean for column, mean in centre.items()})
        owner, names = pd.factorize(subject[first])
        regressors = _regressors(terms, frame, parameters)
        slopes = [_slopes(term, frame, owner) for term in terms]
        deviations = _deviations(terms, slopes, parameters, owner, correlated)
        if not regressors.names and not any(term.own is not None for term in terms):
            raise ValueError(f"A formula needs a regressor besides the intercept; got {formula!r}.")
        return cls(
            terms,
            within,
            tuple(map(str, names)),
            tuple(frame.index),
            of_trial,
            frame,
            regressors,
            deviations,
            centre,
        )

    def only(self, subjects: NDArray[np.int64]) -> GroupDesign:
        """Return the design of some of its subjects, by position, with the same terms."""
        rows = np.flatnonzero(np.isin(self.deviations.subject, subjects))
        regressors = replace(self.regressors, by_subject=self.regressors.by_subject[rows])
        numbers = np.unique(self.deviations.subject[rows], return_inverse=True)[1]
        return replace(
            self,
            subjects=tuple(self.subjects[i] for i in subjects),
            rows=tuple(self.rows[k] for k in rows),
            of_trial=self.of_trial[self.of_trial.isin([self.rows[k] for k in rows])],
            frame=self.frame.iloc[rows],
            regressors=regressors,
            deviations=replace(
                self.deviations, subject=numbers, weight=self.deviations.weight[rows]
            ),
        )

    def reference(self, parameter: str) -> str:
        """Say at what a parameter's mean stands: "age = 43.2, drug = off"; empty if nowhere."""
        at = []
        terms = [term for term in self.terms if term.parameter == parameter]
        moving = dict.fromkeys(c for term in terms for c in _columns_of(term.fixed, term.text))
        for column in moving:
            values = self.frame[column]
            levels = any(f"C({column}" in term.fixed for term in terms)
            if column in self.centre:
                at.append(f"{column} = {self.centre[column]:.4g}")
            elif levels or values.isin([0, 1]).all() or not pd.api.types.is_numeric_dtype(values):
                at.append(f"{column} = {values.min()}")
            else:
                at.append(f"the mean of what is made of {column}")
        return ", ".join(at)

    @property
    def codes(self) -> tuple[str, ...]:
        """Name the columns of few whole numbers that are taken for numbers and may be codes."""
        values = {column: self.frame[column] + mean for column, mean in self.centre.items()}
        return tuple(
            column
            for column, numbers in values.items()
            if 2 < numbers.nunique() <= MOST_CODES
            and np.allclose(numbers % 1 * (1 - numbers % 1), 0)
        )

    def between(self, column: str) -> bool:
        """Whether a column is constant within subjects."""
        return column not in self.within


def read_formulas(formula: str | Sequence[str], parameters: Parameters) -> tuple[Term, ...]:
    """Take formulas apart; `GroupDesign.of` lists the errors."""
    terms = []
    for text in [formula] if isinstance(formula, str) else formula:
        left, tilde, right = text.partition("~")
        name = left.strip()
        if not tilde or not name or not right.strip():
            raise ValueError(
                f'A formula reads "parameter ~ regressors"; got {text!r}, for instance '
                f'"{parameters.names[0]} ~ condition" is one.'
            )
        parameters.index(name)
        fixed: list[str] = []
        names: list[str] = []
        for part in _summands(right):
            (names if "|" in part else fixed).append(part.strip())
        if not names:
            terms.append(Term(text, name, right.strip()))
            continue
        inner = names[0]
        if len(names) > 1 or not (inner.startswith("(") and inner.endswith(")")):
            raise ValueError(
                "Deviations of subjects stand in parentheses of their own, once in a formula, "
                f'such as "{name} ~ drug + (drug | subject)"; got {text!r}.'
            )
        what, bars, group = inner[1:-1].partition("||")
        if not bars:
            what, _, group = inner[1:-1].partition("|")
        pieces = [piece.strip() for piece in _summands(what)]
        if any(piece in ("0", "-1") for piece in pieces) or not group.strip() or "" in pieces:
            raise ValueError(
                "Every subject deviates in each parameter, and in each column that is before the "
                f"bar; got {inner!r} in {text!r}. Write (drug | subject), or (drug || subject) for "
                "deviations that do not go together."
            )
        kept = " + ".join(piece for piece in fixed if piece) or "1"
        terms.append(Term(text, name, kept, what.strip(), not bars, group.strip()))
    named = [term.parameter for term in terms]
    for term in terms:
        if term.own is not None and named.count(term.parameter) > 1:
            raise ValueError(
                "A parameter has one formula where subjects deviate in it; "
                f"{term.parameter} has several. Join them with +."
            )
    return tuple(terms)


def moved_by(formula: str) -> str:
    """Return the parameter that a formula moves."""
    return formula.partition("~")[0].strip()


def _summands(text: str) -> list[str]:
    """Cut a text at each + outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _columns_of(text: str, formula: str) -> tuple[str, ...]:
    try:
        return tuple(sorted(map(str, formulaic.Formula(text).required_variables)))
    except formulaic.errors.FormulaicError as error:
        raise ValueError(f"The formula {formula!r} cannot be read: {error}") from None


def _check_columns(term: Term, frame: pd.DataFrame, possible: list[str]) -> None:
    for column in term.columns:
        if column not in possible:
            near = get_close_matches(column, possible, n=1)
            hint = f" Did you mean {near[0]}?" if near else ""
            known = ", ".join(possible) or "none"
            raise ValueError(
                f"A regressor is a column of the trials; {column!r} in {term.text!r} is not. There "
                f"are: {known}.{hint}"
            )
        lost = np.flatnonzero(frame[column].isna())
        if len(lost):
            raise ValueError(
                f"Every trial needs a {column!r}; {_place(frame, int(lost[0]))} has none."
            )


def _place(frame: pd.DataFrame, row: int) -> str:
    at = frame.iloc[row]
    return f'row {row + 1} (subject "{at["subject"]}", trial {at["trial"]})'


def _check_group(term: Term, unit: Sequence[str]) -> None:
    whole = ":".join(unit)
    if term.own is not None and term.group not in (OWN, whole):
        raise ValueError(
            f"The unit that deviates, {whole}, stands after the bar; got {term.group!r} in "
            f"{term.text!r}. Name it there, or let its levels deviate (--crossed {term.group})."
        )


def _changes(column: pd.Series[Any], subject: pd.Series[Any]) -> pd.Series[Any]:
    """Return for each subject whether a column changes within it."""
    return column.groupby(subject.to_numpy(), sort=False).nunique() > 1


def _check_within(
    term: Term, frame: pd.DataFrame, subject: pd.Series[Any], within: tuple[str, ...]
) -> None:
    for column in _columns_of(term.fixed, term.text):
        if column in within and term.own is None:
            many = _changes(frame[column], subject)
            who = many.index[many.to_numpy()][0]
            raise ValueError(
                f'{column!r} changes within subjects, "{who}" for one, and {term.text!r} does '
                f"not say how subjects differ in it. Write {term.text.strip()} + ({column} | "
                f"subject), or + (1 | subject) if all are moved alike."
            )
    for column in _columns_of(term.own or "1", term.text):
        if column not in within:
            raise ValueError(
                f"Subjects deviate in what changes within them; {column!r} in {term.text!r} does "
                f"not. Take it out of the parentheses: {term.parameter} ~ {column} + (1 | subject)."
            )


def _check_sequences(
    model: type[Model], frame: pd.DataFrame, of_trial: pd.Series[Any], within: tuple[str, ...]
) -> None:
    """Refuse rows of parameters that end while a model is still learning."""
    if not model.remembers:
        return
    keys = [frame[c].to_numpy() for c in ("subject", "session", *model.separate) if c in frame]
    several = of_trial.groupby(keys, sort=False).transform("nunique").to_numpy() > 1
    if several.any():
        where = _place(frame, int(np.flatnonzero(several)[0]))
        raise ValueError(
            f"{model.name} carries what it learned from trial to trial, so its parameters last for "
            f"a session; {' and '.join(map(repr, within))} changed within one ({where}). Name "
            "sessions by it, if each value has trials of its own, or take a model that carries "
            "nothing over."
        )


def _matrix(right: str, frame: pd.DataFrame, text: str) -> dict[str, Array]:
    """Return the columns of a formula's design without the intercept."""
    try:
        matrix = formulaic.model_matrix(right, frame)
    except formulaic.errors.FormulaicError as error:
        raise ValueError(f"The formula {text!r} cannot be read: {error}") from None
    return {
        str(name): matrix[name].to_numpy(dtype=float)
        for name in matrix.columns
        if name != "Intercept"
    }


def _regressors(terms: Sequence[Term], frame: pd.DataFrame, parameters: Parameters) -> Regressors:
    names: list[str] = []
    positions: list[int] = []
    columns: list[Array] = []
    for term in terms:
        for column, values in _matrix(term.fixed, frame, term.text).items():
            if np.ptp(values) == 0:
                raise ValueError(
                    f"A regressor must differ between subjects; {column!r} in {term.text!r} is "
                    f"{values[0]:g} for all. Its weight could not be distinguished from the mean."
                )
            if ":" not in column and not np.isin(values, (0.0, 1.0)).all():
                values = values - values.mean()
            names.append(f"{term.parameter} ~ {column}")
            positions.append(parameters.index(term.parameter))
            columns.append(values)
    if not names:
        return _no_regressors(len(frame))
    full = np.column_stack([np.ones(len(frame)), *columns])
    for k in set(positions):
        of_parameter = full[:, [0, *(j + 1 for j, p in enumerate(positions) if p == k)]]
        if np.linalg.matrix_rank(of_parameter) < of_parameter.shape[1]:
            raise ValueError(
                f"The regressors of {parameters.names[k]} depend on each other, so their "
                "weights cannot be separated. Drop one."
            )
    spread = np.array([_spread(values) for values in columns])
    return Regressors(tuple(names), np.array(positions), np.column_stack(columns), spread)


def _spread(values: Array) -> float:
    """Return the distance of two values, or the standard deviation of more."""
    return float(np.ptp(values) if len(np.unique(values)) == 2 else values.std())


def _no_regressors(rows: int) -> Regressors:
    return Regressors((), np.zeros(0, dtype=np.int64), np.zeros((rows, 0)), np.zeros(0))


def _centres(terms: Sequence[Term], frame: pd.DataFrame) -> dict[str, float]:
    """Return the means of columns of numbers, but for codes 0 and 1 and what a function is of."""
    factors = {
        factor.expr
        for term in terms
        for part in (term.fixed, term.own or "1")
        for one in formulaic.Formula(part)
        for factor in one.factors
    }
    inside = {c for f in factors if f not in frame for c in _columns_of(f, f)}
    return {
        column: round(float(frame[column].mean()), 12)
        for column in map(str, frame)
        if pd.api.types.is_numeric_dtype(frame[column])
        and not pd.api.types.is_bool_dtype(frame[column])
        and column not in inside
        and not frame[column].isin([0, 1]).all()
    }


def _slopes(term: Term, frame: pd.DataFrame, owner: NDArray[np.int64]) -> dict[str, Array]:
    """Return by name the values with which a formula's deviations enter the subjects' rows."""
    if term.own is None:
        return {}
    result = _matrix(f"1 + {term.own}", frame, term.text)
    for column, values in result.items():
        most, least = (pd.Series(values).groupby(owner).agg(way) for way in ("max", "min"))
        if ((most - least) > 0).sum() < 2:
            raise ValueError(
                f"Deviations are seen in subjects who had several values; {column!r} in "
                f"{term.text!r} changes within fewer than two. Leave it out of the parentheses."
            )
    return {f"{term.parameter} ~ {column}": values for column, values in result.items()}


def _deviations(
    terms: Sequence[Term],
    slopes: Sequence[dict[str, Array]],
    parameters: Parameters,
    owner: NDArray[np.int64],
    correlated: bool,
) -> Deviations:
    k, m = len(parameters), len(owner)
    names, moved = list(parameters.names), list(range(k))
    weights = [np.ones(m) for _ in range(k)]
    block = [0 if correlated else ALONE] * k
    for number, (term, slope) in enumerate(zip(terms, slopes, strict=True)):
        position = parameters.index(term.parameter)
        joined = 0 if correlated else number
        for name, values in slope.items():
            names.append(name)
            moved.append(position)
            weights.append(values)
            block.append(joined if term.together else ALONE)
            if term.together:
                block[position] = joined
    return Deviations(
        tuple(names),
        np.array(moved, dtype=np.int64),
        np.asarray(owner, dtype=np.int64),
        np.column_stack(weights),
        np.array(block, dtype=np.int64),
        np.array([1.0 if q < k else _spread(values) for q, values in enumerate(weights)]),
    )
