"""How far estimates can move, whatever the missing answers would have been."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from knownminds.agents import Model
from knownminds.agents.parameters import Array
from knownminds.agents.sequences import numbered
from knownminds.environments import Trials, unknown
from knownminds.environments.later import pandas as pd
from knownminds.environments.record.tabled_result import TabledResult
from knownminds.inference.subject_table import subject_table

from .model_data import ModelData, Unknowns
from .point import PointFit, maximum_a_posteriori, maximum_likelihood

Integers = NDArray[np.int64]
Fitter = Callable[[ModelData], PointFit]

METHODS = ("map", "mle")
MOST_ROUNDS = 20  # rounds of the search; it ends by itself long before
MOST_EXCHANGES = 8  # exchanges that are tried at a time for each end
LEAST_GAIN = 1e-9  # a smaller move of an estimate is rounding


@dataclass(frozen=True)
class MissingAnswerBounds(TabledResult):
    """Estimates of N subjects, and how far the missing answers could have moved them.

    Parameters
    ----------
    fit : The estimates from the observed answers. They are right if answers are missing at random:
        if an answer's absence does not depend on what it would have been.
    n_missing : Trials without an answer, [N].
    low_z, high_z : Lowest and highest estimate on the unconstrained scale over the assumed answers,
        [N, K]; NaN where no fit succeeded.
    low_error, high_error : Standard errors of the fits that reached these estimates, on the same
        scale, [N, K].
    refits : How often the trials with assumed answers were fitted.
    """

    fit: PointFit
    n_missing: Integers
    low_z: Array
    high_z: Array
    low_error: Array
    high_error: Array
    refits: int

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the estimated parameters."""
        return self.fit.names

    @property
    def low(self) -> Array:
        """Lowest estimate on the natural scale, [N, K]."""
        return self.fit.parameters.constrain(self.low_z)

    @property
    def high(self) -> Array:
        """Highest estimate on the natural scale, [N, K]."""
        return self.fit.parameters.constrain(self.high_z)

    def interval(self, mass: float = 0.9) -> tuple[Array, Array]:
        """Bounds with sampling error, on the natural scale, [N, K] each.

        They reach from the lower end of the interval at the lowest estimate to the upper end of
        the interval at the highest (Horowitz and Manski 2000); without missing answers they are
        `PointFit.interval`.
        """
        half = scipy.stats.norm.ppf(0.5 + mass / 2)
        constrain = self.fit.parameters.constrain
        low = constrain(self.low_z - half * self.low_error)
        return low, constrain(self.high_z + half * self.high_error)

    def to_frame(self, mass: float = 0.9) -> pd.DataFrame:
        """One row per subject: estimates, bounds with sampling error, bounds without, status."""
        more: dict[str, object] = {}
        for k, name in enumerate(self.names):
            more |= {f"{name}_lowest": self.low[:, k], f"{name}_highest": self.high[:, k]}
        more |= {"n_trials": self.fit.n_trials, "n_missing": self.n_missing}
        more |= {"status": self.fit.status, "message": self.fit.message}
        fit = self.fit
        return subject_table(fit.subjects, self.names, fit.estimate, self.interval(mass), more)


def missing_answer_bounds(
    model: type[Model],
    trials: Trials,
    *,
    method: Literal["map", "mle"] = "map",
    fixed: Mapping[str, float] | None = None,
    lapse: bool = False,
    n_actions: int | None = None,
    workers: int | None = None,
) -> MissingAnswerBounds:
    """Fit each subject, and bound its estimates over all possible values of the missing answers.

    A fit leaves out trials without an answer, which is right if answers are missing at random. Here
    each of these trials counts as a choice that was made but not read. With action a it adds log
    P(a | the answered trials before it). It teaches nothing, since no reward came. The bounds are
    the lowest and the highest estimate over all assignments of actions to these trials, and over
    leaving them out. They include the estimate from the unread choices, whatever hid them. Any
    narrower bounds need an assumption about the reason.

    There are (number of actions)**(missing answers) assignments, too many to try them all. The
    search for an end first sets the action of each trial by the influence of its score on the
    parameter (score times inverse information; Cook 1986), fits anew, and repeats this until the
    estimate moves no further. It then exchanges single actions as long as that helps. So an end may
    fall short of the true one. In designs where all assignments could be tried, 99% of the ends of
    "map" were the true ones, and the others lacked 0.01% of all widths. For "mle" it was 93%, since
    its estimates jump to the ends of their supports (see the tests).

    Parameters
    ----------
    trials : With an outcome on every trial; those without an action are the missing answers.
    method, fixed, lapse, workers : As in `maximum_a_posteriori` ("map") and `maximum_likelihood`
        ("mle").
    n_actions : How many actions could have been given; as in the model, or as many as occur, if
        None.

    Raises
    ------
    ValueError : If the model reads no action, or a trial without an answer lacks what the model
        must know to predict it.
    """
    if method not in METHODS:
        raise ValueError(unknown("method", method, METHODS))
    estimate = maximum_a_posteriori if method == "map" else maximum_likelihood

    def fitter(data: ModelData) -> PointFit:
        return estimate(model, data, fixed=fixed, lapse=lapse, workers=workers)

    gaps = MissingAnswers.read(model, trials, n_actions)
    fit = fitter(gaps.data)
    search = _Search(fitter, fit, gaps, Unknowns.of(model, fixed, lapse))
    search.by_influence()
    search.by_exchange()
    (low, low_error), (high, high_error) = search.end(-1.0), search.end(1.0)
    return MissingAnswerBounds(fit, gaps.n_missing, low, high, low_error, high_error, search.refits)


@dataclass(frozen=True)
class Completed(ModelData):
    """Trials as a model reads them, together with answers that are assumed.

    For each assumed answer there is a row: `given` holds the trials before it and, last, its trial
    with that answer; `before` holds the same trials without the last. The difference of the two
    log-likelihoods is that of the assumed answer. The model learns nothing from assumed answers.
    """

    given: ModelData
    before: ModelData

    @classmethod
    def of(cls, data: ModelData, given: ModelData, before: ModelData) -> Completed:
        """Put assumed answers beside the trials `data`."""
        parts: dict[str, Any] = {field.name: getattr(data, field.name) for field in fields(data)}
        return cls(**parts, given=given, before=before)

    def repeat(self, subjects: ArrayLike) -> Completed:
        """Return the data in which row k stands for subject number `subjects[k]`."""
        repeated = super().repeat(subjects)
        return Completed.of(repeated, self.given.repeat(subjects), self.before.repeat(subjects))

    def read_by(self, model: type[Model]) -> ModelData:
        """Return trials and assumed answers as another model reads them."""
        given, before = self.given.read_by(model), self.before.read_by(model)
        data = super().read_by(model)
        assert isinstance(data, Completed)
        return replace(data, given=given, before=before)

    def log_likelihood(self, theta: Array, lapse: Array | None = None) -> tuple[Array, Array]:
        """Log-likelihood [N] of theta [N, P] and its gradient on the natural scale."""
        total, gradient = super().log_likelihood(theta, lapse)
        more, more_gradient = self.given.log_likelihood(theta, lapse)
        less, less_gradient = self.before.log_likelihood(theta, lapse)
        return total + more - less, gradient + more_gradient - less_gradient


@dataclass(frozen=True)
class MissingAnswers:
    """The trials of many subjects, and what each answer that is missing would have added.

    Parameters
    ----------
    data : The trials; those without an answer add nothing.
    subject : Subject of each of the M missing answers, in order of subjects, [M].
    given : The trials before each missing answer and, last, its trial with action a; row m *
        n_actions + a is answer m with action a.
    before : The trials before each missing answer, row m.
    """

    data: ModelData
    subject: Integers
    given: ModelData
    before: ModelData

    @classmethod
    def read(
        cls, model: type[Model], trials: Trials, n_actions: int | None = None
    ) -> MissingAnswers:
        """Take from the trials what the model needs; ValueError as in `missing_answer_bounds`."""
        if model.given != "action" or "action" not in model.columns:
            raise ValueError(
                "Bounds are over the actions that missing answers could have named; "
                f"{model.name} reads {', '.join(model.columns)}. Choose a model of actions alone."
            )
        data = ModelData.read(model, trials, n_actions)
        frame = trials.frame
        gone = frame["action"].isna().to_numpy()
        if model.selection is not None:
            gone &= model.selection.of(frame, model.name)
        missing = np.flatnonzero(gone)
        columns = {
            name: frame[name].to_numpy(dtype=float, na_value=np.nan)[missing]
            for name in model.columns
            if name != "action"
        }
        if "reward" in columns:  # it comes after the choice, so that none is needed
            columns["reward"] = np.zeros(len(missing))
        for name, column in columns.items():
            lost = np.flatnonzero(~np.isfinite(column))
            if len(lost):
                raise ValueError(
                    f"What {model.name} chooses by must be known also where the answer is missing; "
                    f"{trials.row_name(missing[lost[0]])} has no {name!r}. Fill it in."
                )
        keys = [frame[name] for name in ("subject", "session", *model.separate) if name in frame]
        sequence = pd.Series(frame.groupby(keys, sort=False).ngroup().to_numpy())
        before = np.asarray(sequence.groupby(sequence).cumcount(), dtype=np.int64)[missing]
        order = np.argsort(sequence, kind="stable")
        begin = np.searchsorted(sequence.to_numpy()[order], sequence.to_numpy()[missing])
        subject = pd.factorize(frame["subject"])[0]
        by_subject = np.argsort(subject[missing], kind="stable")
        answer = np.repeat(by_subject, data.n_actions)
        action = np.tile(np.arange(data.n_actions), len(missing))

        def rows(chosen: Integers, with_answer: bool) -> ModelData:
            """Return the trials before each chosen answer, and last its trial if `with_answer`."""
            row, step = numbered(before[chosen])
            trial = order[begin[chosen][row] + step]
            flat = dict(zip(model.columns, (column[trial] for column in data.flat), strict=True))
            given = data.answered[trial]
            if with_answer:
                completed = {
                    **{n: column[chosen] for n, column in columns.items()},
                    "action": action,
                }
                flat = {name: np.append(flat[name], completed[name]) for name in model.columns}
                row = np.append(row, np.arange(len(chosen)))
                given = np.append(given, np.ones(len(chosen), dtype=bool))
            return ModelData.of_columns(
                model, ("",) * len(chosen), row, (), flat, data.n_actions, given
            )

        return cls(data, subject[missing][by_subject], rows(answer, True), rows(by_subject, False))

    @property
    def n_missing(self) -> Integers:
        """How many answers each subject lacks, [N]."""
        return np.bincount(self.subject, minlength=len(self.data)).astype(np.int64)

    def of(self, subjects: Integers) -> tuple[Integers, Integers]:
        """Return the pairs of row k and missing answer of `subjects[k]`, row after row."""
        row, within = numbered(self.n_missing[subjects])
        return row, np.searchsorted(self.subject, subjects)[row] + within

    def completed(
        self, subjects: Integers, row: Integers, answer: Integers, action: Integers
    ) -> Completed:
        """Return the data of `subjects` with assumed answers.

        Parameters
        ----------
        subjects : Subject of each row.
        row, answer, action : Of each assumed answer: its row, its number, and what is assumed,
            [pairs].
        """
        data = self.data.repeat(subjects)
        given = _gathered(self.given, answer * self.data.n_actions + action, row, data)
        before = _gathered(self.before, answer, row, data)
        n_trials = data.n_trials + np.bincount(row, minlength=len(subjects))
        return Completed.of(replace(data, n_trials=n_trials), given, before)

    def scores(self, unknowns: Unknowns, answer: Integers, theta: Array) -> Array:
        """Gradient [pairs, n_actions, K] of the log-probability of each action at theta[pairs, K].

        It is that of missing answer number `answer[p]`, on the natural scale.
        """
        n_actions = self.data.n_actions
        each = (answer[:, None] * n_actions + np.arange(n_actions)).ravel()
        _, with_it = unknowns.log_likelihood(
            self.given.repeat(each), np.repeat(theta, n_actions, axis=0)
        )
        _, without = unknowns.log_likelihood(self.before.repeat(answer), theta)
        return with_it.reshape(len(answer), n_actions, without.shape[1]) - without[:, None]


def _gathered(data: ModelData, chosen: Integers, row: Integers, like: ModelData) -> ModelData:
    """Put row chosen[p] of the data into row row[p] of new data with the rows of `like`."""
    picked = data.repeat(chosen)
    sequences = replace(
        picked.sequences, subject=row[picked.sequences.subject], n_subjects=len(like)
    )
    return replace(picked, subjects=like.subjects, sequences=sequences, n_trials=like.n_trials)


class _Search:
    """Seeks, for each subject that lacks answers, the ends of each estimate.

    A problem is a subject, a parameter and a direction; pair p is the assumed answer number
    `answer[p]` of problem `row[p]`.
    """

    def __init__(self, fitter: Fitter, fit: PointFit, gaps: MissingAnswers, unknowns: Unknowns):
        k = len(fit.names)
        lacking = np.flatnonzero(gaps.n_missing)
        number = np.arange(len(lacking) * k * 2)
        self.fitter, self.fit, self.gaps, self.unknowns = fitter, fit, gaps, unknowns
        self.subjects = lacking[number // (2 * k)] if k else number
        self.parameter = number // 2 % k if k else number
        self.sign = np.where(number % 2, 1.0, -1.0)
        self.row, self.answer = gaps.of(self.subjects)
        self.action = np.full(len(self.row), -1)
        self.z, self.covariance = fit.z[self.subjects], _usable(fit)[self.subjects]
        self.best = np.full(len(number), -np.inf)
        self.error = np.full(len(number), np.nan)
        self.refits = 0

    def by_influence(self) -> None:
        """Choose all actions by their influence on the estimate, fit, and again while it gains."""
        gaining = np.ones(len(self.subjects), dtype=bool)
        for _ in range(MOST_ROUNDS):
            pair = np.flatnonzero(gaining[self.row])
            action = self._influence(pair).argmax(axis=1)
            problem = np.unique(self.row[pair[action != self.action[pair]]])
            if len(problem) == 0:
                break
            if not np.isfinite(self.best).any():
                self.action[pair] = action
            changed = np.isin(self.row[pair], problem)
            candidate = np.searchsorted(problem, self.row[pair[changed]])
            gaining = self._attempt(problem, candidate, pair[changed], action[changed])

    def by_exchange(self) -> None:
        """Exchange single actions, where influence speaks least against it, while it gains."""
        gaining = np.ones(len(self.subjects), dtype=bool)
        for _ in range(MOST_ROUNDS):
            pair, action = self._exchanges(np.flatnonzero(gaining[self.row]))
            if len(pair) == 0:
                break
            gaining = self._attempt(self.row[pair], np.arange(len(pair)), pair, action)

    def _exchanges(self, pair: Integers) -> tuple[Integers, Integers]:
        """Return pairs and the action to try instead: the least unfavourable of each problem."""
        if len(pair) == 0:
            return pair, pair
        influence = self._influence(pair)
        row = np.arange(len(pair))
        loss = influence[row, self.action[pair]][:, None] - influence
        loss[row, self.action[pair]] = np.inf
        position, action = np.indices(loss.shape).reshape(2, -1)
        order = np.lexsort((loss.ravel(), self.row[pair[position]]))
        order = order[np.isfinite(loss.ravel()[order])]
        problem = self.row[pair[position[order]]]
        rank = np.arange(len(order)) - np.searchsorted(problem, problem)
        order = order[rank < MOST_EXCHANGES]
        return pair[position[order]], action[order]

    def _influence(self, pair: Integers) -> Array:
        """First-order influence [pairs, n_actions] of each action on the signed estimate."""
        row, parameters = self.row[pair], self.fit.parameters
        theta = parameters.constrain(self.z)
        covariance = self.covariance[np.arange(len(self.sign)), self.parameter]
        pull = self.sign[:, None] * covariance * parameters.slope(theta)
        scores = self.gaps.scores(self.unknowns, self.answer[pair], theta[row])
        influence: Array = np.einsum("paj,pj->pa", scores, pull[row])
        return influence

    def _attempt(
        self, problem: Integers, candidate: Integers, pair: Integers, action: Integers
    ) -> NDArray[np.bool_]:
        """Fit candidates for problems, each with some actions changed; say which problems gain.

        The best candidate of a problem stays if its estimate reaches further than before.

        Parameters
        ----------
        problem : Of each candidate; those of a problem stand together.
        candidate, pair, action : Of each change: in which candidate, and which action of which
            pair.
        """
        first = np.searchsorted(self.row, problem)
        count = np.searchsorted(self.row, problem, side="right") - first
        row, within = numbered(count)
        pairs = first[row] + within
        assumed = self.action[pairs]
        assumed[(np.cumsum(count) - count - first)[candidate] + pair] = action
        subjects = self.subjects[problem]
        fit = self.fitter(self.gaps.completed(subjects, row, self.answer[pairs], assumed))
        self.refits += len(problem)
        usable = np.array([status != "failed" for status in fit.status], dtype=bool)
        z = fit.z[np.arange(len(problem)), self.parameter[problem]]
        value = np.where(usable, self.sign[problem] * z, -np.inf)
        order = np.lexsort((value, problem))  # the best candidate of a problem comes last
        last = order[np.flatnonzero(np.diff(problem[order], append=-1))]
        chosen = last[value[last] > self.best[problem[last]] + LEAST_GAIN]
        better = problem[chosen]
        self.best[better] = value[chosen]
        self.z[better] = fit.z[chosen]
        self.covariance[better] = _usable(fit)[chosen]
        self.error[better] = fit.standard_error[chosen, self.parameter[better]]
        stays = np.isin(row, chosen)
        self.action[pairs[stays]] = assumed[stays]
        gaining = np.zeros(len(self.subjects), dtype=bool)
        gaining[better] = True
        return gaining

    def end(self, sign: float) -> tuple[Array, Array]:
        """Return the lowest or highest estimates and the standard errors of their fits, [N, K].

        Leaving the answers out is one possibility.
        """
        failed = np.array([status == "failed" for status in self.fit.status], dtype=bool)[:, None]
        value = np.where(failed, np.nan, self.fit.z)
        error = np.where(failed, np.nan, self.fit.standard_error)
        position = self.subjects, self.parameter
        further = (self.sign == sign) & np.isfinite(self.best)
        further &= ~(sign * value[position] >= self.best)
        position = self.subjects[further], self.parameter[further]
        value[position], error[position] = sign * self.best[further], self.error[further]
        return value, error


def _usable(fit: PointFit) -> Array:
    """Return the inverse information [N, K, K], the prior's information included.

    A subject whose estimate ran away has no finite covariance; the prior's takes its place.
    """
    prior = np.diag(fit.parameters.sd**2)
    finite = np.asarray(np.isfinite(fit.covariance).all(axis=(1, 2)))
    covariance = np.where(finite[:, None, None], fit.covariance, prior)
    if fit.method == "mle":
        covariance = prior - prior @ np.linalg.solve(prior + covariance, prior[None])
    return covariance
