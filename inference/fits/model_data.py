"""The data that a model reads from trials: flat columns, and how they fall into sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knownminds.agents import LAPSE, Model, Parameters
from knownminds.agents.compiled import read_only
from knownminds.agents.parameters import Array
from knownminds.agents.sequences import MISSING, Sequences
from knownminds.environments import ENVIRONMENTS, Trials
from knownminds.environments.later import pandas as pd

# These values stand for a missing answer. A response may be any number, and samplers refuse NaN.
_GONE = {"action": MISSING, "response": -np.inf}


ROWS = 2048  # a kernel takes so many pairs of subject and point at once


@dataclass(frozen=True)
class ModelData:
    """The trials of many subjects as one model reads them.

    Parameters
    ----------
    model : the agent class
    subjects : names of the subjects; row k of theta is `subjects[k]`
    sequences : how the flat columns fall into sequences
    flat : the columns that the likelihood reads, each [trials]; a missing action is -1, a missing
        response minus infinity
    n_actions : how many actions there were
    n_trials : number of trials with a response, per subject
    """

    model: type[Model]
    subjects: tuple[str, ...]
    sequences: Sequences
    flat: tuple[Array, ...]
    n_actions: int
    n_trials: NDArray[np.int64]
    # These data are a `repeat` of the origin, so that trials are merged only once.
    _origin: ClassVar[tuple[ModelData, NDArray[np.int64]] | None] = None

    @classmethod
    def read(
        cls,
        model: type[Model],
        trials: Trials,
        n_actions: int | None = None,
        *,
        all_trials: bool = False,
        rows: pd.Series[Any] | None = None,
    ) -> ModelData:
        """Read from the trials what the model needs.

        For a model with a `selection`, other trials count as unanswered, unless `all_trials`. If
        subjects have several rows of parameters, `rows` names the row of each trial.

        Raises
        ------
        ValueError : If a column that the model reads is missing, or a subject has a single trial;
            the error names it.
        TypeError : If these are no trials.
        """
        if not isinstance(trials, Trials):
            raise TypeError(
                f"Trials are fitted; got a {type(trials).__name__}. Make trials of a table with "
                "Trials.from_frame(table, environment=...)."
            )
        frame = trials.frame
        for column in model.columns:
            if column not in frame:
                raise ValueError(
                    f"{model.name} reads the columns {', '.join(model.columns)}; the trials have "
                    f"no {column!r}. Map one with columns={{'{column}': YOUR_NAME}} "
                    f"(--columns {column}=YOUR_NAME)."
                )
        subject, names = pd.factorize(frame["subject"])
        alone = np.flatnonzero(np.bincount(subject) < 2)
        if len(alone):
            others = f", and {len(alone) - 1} more" if len(alone) > 1 else ""
            raise ValueError(
                "A fit needs at least 2 trials of each subject; "
                f'"{names[alone[0]]}" has a single one{others}. Leave such subjects out, or check '
                "which column names the subject."
            )
        if rows is not None:
            subject, names = pd.factorize(rows)
        names_apart = separating(model, trials)
        apart = [frame[column] for column in ("session", *names_apart)]
        codes = [np.asarray(pd.factorize(column)[0], dtype=np.int64) for column in apart]
        flat = {name: frame[name].to_numpy(dtype=float, na_value=np.nan) for name in model.columns}
        given = _answered(model, flat)
        if model.selection is not None and not all_trials:
            given &= model.selection.of(frame, model.name)
        action = flat.get("action", np.zeros(1))
        actions = n_actions or model.n_actions or int(np.nanmax(action, initial=1)) + 1
        return cls.of_columns(model, list(map(str, names)), subject, codes, flat, actions, given)

    @classmethod
    def of_columns(
        cls,
        model: type[Model],
        subjects: Sequence[str],
        subject: NDArray[np.int64],
        separate: Sequence[NDArray[np.int64]],
        flat: Mapping[str, Array],
        n_actions: int,
        given: NDArray[np.bool_] | None = None,
    ) -> ModelData:
        """Make the data from flat arrays in order of time; `given` marks trials with a response."""
        columns = {name: flat[name] for name in model.columns}
        if model.given == "either":  # each trial lacks the part that it did not ask for
            columns |= {n: _filled(columns[n], gone) for n, gone in _GONE.items() if n in columns}
        if given is not None and not given.all():
            columns = {n: np.where(given, c, _GONE.get(n, 0.0)) for n, c in columns.items()}
        if "reward" in columns:  # NaN on trials that pay nothing, where nothing is learned
            columns["reward"] = np.nan_to_num(columns["reward"])
        weights = None if given is None else given.astype(float)
        n_trials = np.bincount(subject, weights, minlength=len(subjects)).astype(np.int64)
        subject = np.asarray(subject, dtype=np.int64)
        sequences = Sequences.group(subject, separate, len(subjects))
        flat_columns = tuple(columns[name] for name in model.columns)
        return cls(model, tuple(subjects), sequences, flat_columns, n_actions, n_trials)

    def __len__(self) -> int:
        return len(self.subjects)

    @cached_property
    def answered(self) -> NDArray[np.bool_]:
        """Whether each flat trial has an answer, [trials]."""
        columns = dict(zip(self.model.columns, self.flat, strict=True))
        return _combined(self.model, [columns[n] != _GONE[n] for n in answered_by(self.model)])

    @cached_property
    def _rows(self) -> dict[bool, tuple[Sequences, dict[str, Array]]]:
        return {}

    def rows(self, lapse: bool = False) -> tuple[Sequences, dict[str, Array]]:
        """Return what the kernel reads, with or without lapses: sequences, and flat columns.

        These are the trials, or what the model makes of them (`Model.prepare`). If answers do not
        depend on earlier trials, they are ordered by their columns, so that kernels meet equal
        questions one after the other.
        """
        lapse = lapse and self.model.prepare is not None
        if lapse not in self._rows:
            self._rows[lapse] = self._made_rows(lapse)
        return self._rows[lapse]

    def _made_rows(self, lapse: bool) -> tuple[Sequences, dict[str, Array]]:
        if self._origin is not None:
            data, chosen = self._origin
            sequences, columns = data.rows(lapse)
            return sequences.repeat(chosen), columns
        sequences, columns = self.sequences, dict(zip(self.model.columns, self.flat, strict=True))
        if self.model.prepare is not None:
            sequence, _, position = sequences.in_order()
            columns = {name: column[position] for name, column in columns.items()}
            subject = sequences.subject[sequence]
            subject, sequence, made = self.model.prepare(subject, sequence, columns, lapse)
            columns = self.model.reads(made, self.n_actions)
            return Sequences.group(subject, (sequence,), len(self)), columns
        columns = self.model.reads(columns, self.n_actions)
        return sequences.sorted_by([columns[name] for name in self.model.order]), columns

    @cached_property
    def _laid_out(self) -> dict[bool, tuple[Sequences, tuple[Array, ...]]]:
        return {}

    def laid_out(self, lapse: bool = False) -> tuple[Sequences, tuple[Array, ...]]:
        """Return places and packed columns as the kernel reads them.

        `lapse` says whether a lapse rate is mixed in.
        """
        lapse = lapse and self.model.prepare is not None
        if lapse not in self._laid_out:
            sequences, columns = self.rows(lapse)
            packed = (sequences.pack(x, _GONE.get(n, MISSING)) for n, x in columns.items())
            self._laid_out[lapse] = sequences, tuple(packed)
        return self._laid_out[lapse]

    def repeat(self, subjects: ArrayLike) -> ModelData:
        """Return the data in which row k stands for subject number `subjects[k]`."""
        chosen = np.asarray(subjects, dtype=np.int64)
        rows = ModelData(
            self.model,
            tuple(self.subjects[k] for k in chosen),
            self.sequences.repeat(chosen),
            self.flat,
            self.n_actions,
            self.n_trials[chosen],
        )
        object.__setattr__(rows, "_origin", (self, chosen))
        return rows

    def read_by(self, model: type[Model]) -> ModelData:
        """Return the same trials as read by another model, which must not need further columns."""
        named = dict(zip(self.model.columns, self.flat, strict=True))
        return replace(self, model=model, flat=tuple(named[name] for name in model.columns))

    def log_likelihood(self, theta: Array, lapse: Array | None = None) -> tuple[Array, Array]:
        """Return the log-likelihood [N] at theta [N, P], and its gradient on the natural scale."""
        sequences, columns = self.laid_out(lapse is not None)
        total, gradient = self.model.log_likelihood(
            read_only(theta),
            None if lapse is None else read_only(lapse),
            self.n_actions,
            read_only(sequences.row, np.int64),
            read_only(sequences.start, np.int64),
            *map(read_only, columns),
        )
        return total, gradient


def separating(model: type[Model], trials: Trials) -> list[str]:
    """Return the columns in each of whose values a model learns anew.

    These are fields of the trials' experiment: a column of the same name that it has not is the
    user's. Trials that name no experiment of ours may have them all.

    Raises
    ------
    ValueError : At the first row in which such a column is empty.
    """
    frame = trials.frame
    places = list(frame["environment"].unique()) if "environment" in frame else []
    names = [name for name in model.separate if name in frame]
    if places and set(places) <= set(ENVIRONMENTS):
        fields = {field.name for place in places for field in ENVIRONMENTS[place].fields}
        names = [name for name in names if name in fields]
    for name in names:
        trials.require(
            f"{model.name} learns anew in each {name}, so that every trial has one",
            frame[name].notna(),
            (name,),
            "Fill it in, or drop the row.",
        )
    return names


def _answered(model: type[Model], flat: Mapping[str, Array]) -> NDArray[np.bool_]:
    return _combined(model, [np.isfinite(flat[name]) for name in answered_by(model)])


def _combined(model: type[Model], given: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Return which trials have an answer, given which have each of its parts."""
    join = np.logical_or if model.given == "either" else np.logical_and
    mask: NDArray[np.bool_] = join.reduce(given)
    return mask


def _filled(column: Array, gone: float) -> Array:
    return np.where(np.isfinite(column), column, gone)


def answered_by(model: type[Model]) -> tuple[str, ...]:
    """Return the columns that hold a model's answers."""
    return tuple(name for name in ("action", "response") if name in model.columns)


@dataclass(frozen=True)
class Unknowns:
    """The estimated parameters of a model, and the values of those that are held fixed.

    Parameters
    ----------
    parameters : the estimated parameters, in order; the lapse rate last if it is estimated
    full : values of all model parameters, NaN where estimated
    columns : positions of the estimated parameters in the model's order
    lapse : whether the lapse rate is estimated
    """

    parameters: Parameters
    full: Array
    columns: NDArray[np.int64]
    lapse: bool

    @classmethod
    def of(
        cls, model: type[Model], fixed: Mapping[str, float] | None = None, lapse: bool = False
    ) -> Unknowns:
        """Fix the parameters named in `fixed`, and estimate the others (and `lapse`, if true)."""
        parameters = model.parameters
        full = np.full(len(parameters), np.nan)
        for name, value in (fixed or {}).items():
            k = parameters.index(name)
            if not parameters[name].support.contains(np.asarray(value, dtype=float)):
                raise ValueError(
                    f"{name} lies in {parameters[name].support}; got {value:g}. "
                    "Fix it at a value inside its support."
                )
            full[k] = value
        columns = np.flatnonzero(np.isnan(full))
        free: list[Any] = [p for p, v in zip(parameters, full, strict=True) if np.isnan(v)]
        return cls(Parameters(*free, *([LAPSE] if lapse else [])), full, columns, lapse)

    def around(self, mean: Array, sd: Array) -> Unknowns:
        """Return the same with other normal priors on the unconstrained scale, [K] each."""
        law = zip(self.parameters, mean.tolist(), sd.tolist(), strict=True)
        shifted = [replace(parameter, mean=m, sd=s) for parameter, m, s in law]
        return replace(self, parameters=Parameters(*shifted))

    def held(self, model: type[Model]) -> dict[str, float]:
        """Return the values of the fixed parameters, by name."""
        known = zip(model.parameters.names, self.full.tolist(), strict=True)
        return {name: value for name, value in known if not np.isnan(value)}

    @property
    def places(self) -> NDArray[np.int64]:
        """The position of each estimated value among all of the model's, with lapses last, [K]."""
        return np.append(self.columns, len(self.full)) if self.lapse else self.columns

    def whole(self, theta: Array) -> Array:
        """Return estimated values theta [N, K] together with the fixed ones, lapses last."""
        values = np.broadcast_to(self.full, (len(theta), len(self.full))).copy()
        values[:, self.columns] = theta[:, : len(self.columns)]
        return np.column_stack([values, theta[:, len(self.columns) :]])

    def log_likelihood(self, data: ModelData, theta: Array) -> tuple[Array, Array]:
        """Return the log-likelihood [N] at estimated theta [N, K], and its gradient [N, K]."""
        values, lapse = (theta[:, :-1], theta[:, -1]) if self.lapse else (theta, None)
        if len(self.columns) == len(self.full):
            return data.log_likelihood(values, lapse)
        total, gradient = data.log_likelihood(self.whole(values), lapse)
        return total, gradient[:, self.places]


class LikelihoodAtPoints:
    """Log-likelihoods of N subjects at S points each, many in one call of the kernel.

    Parameters
    ----------
    data, unknowns : The trials of the subjects, and their unknowns.
    points : S, the number of points at a time.
    """

    def __init__(self, data: ModelData, unknowns: Unknowns, points: int) -> None:
        self.data, self.unknowns, self.points = data, unknowns, points
        self.copies = min(points, max(1, ROWS // max(len(data), 1)))
        self._repeated = self._copied(self.copies)

    def __call__(self, z: Array) -> Array:
        """Return the log-likelihoods, [S, N], at z [S, N, K] on the unconstrained scale."""
        total = np.empty(z.shape[:2])
        for first in range(0, len(z), self.copies):
            some = z[first : first + self.copies]
            rows = self._repeated if len(some) == self.copies else self._copied(len(some))
            theta = self.unknowns.parameters.constrain(some.reshape(-1, z.shape[2]))
            values = self.unknowns.log_likelihood(rows, theta)[0]
            total[first : first + len(some)] = values.reshape(some.shape[:2])
        return total

    def _copied(self, copies: int) -> ModelData:
        return self.data.repeat(np.tile(np.arange(len(self.data)), copies))
