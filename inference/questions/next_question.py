"""The next question to ask: the one whose answer is expected to tell most about a subject.

An answer y to a question d carries information about parameters theta: their mutual information
under the posterior so far, H(y | d) - E[H(y | d, theta)] (Lindley 1956; MacKay 1992; Myung,
Cavagnaro and Pitt 2013). The likelihoods are the model's kernels, one row for each question and
answer. The posterior is kept by particles (`Particles`).

Actions are few, so their sum is exact. For numbers, answers are drawn, each by a particle. The
information is then the mean of log p(y | d, theta) - log p(y | d) over them, with the same random
numbers for every question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from knownminds.agents import AGENTS, Model
from knownminds.agents.parameters import Array
from knownminds.agents.play import play_tables
from knownminds.environments import (
    ChosenSession,
    Design,
    Environment,
    PickedQuestion,
    Trials,
    answer_columns,
    check_questions,
    session_stream,
)
from knownminds.environments.session import Pick
from knownminds.environments.world import follow_world
from knownminds.inference.fits.model_data import ModelData, Unknowns

from .particles import Particles, evenly

By = Literal["information", "order"]
PARTICLES = 512
ANSWERS = 64  # answers drawn for each question that asks for a number
_SEED = 21  # seed of the numbers by which answers are drawn
_ANSWERS = ("action", "response", "reward")


@dataclass(frozen=True)
class ChosenQuestions:
    """How the questions of a session are chosen, whoever answers them.

    The answers are fitted as usual. The choice of the next question depends on the earlier answers
    alone, which are in the data. So its probability does not contain the parameters and cancels
    from the likelihood (Rubin 1976; MacKay 1992).

    Parameters
    ----------
    model : The model whose parameters the questions should estimate; ignored if `by` is "order".
    questions : How many of the questions in a session's design are asked.
    by : "information": the question with the largest expected information is next; or "order": the
        first questions of the design, a fixed list for comparison.
    fixed : Parameters with known values, on the natural scale.
    particles : How many particles carry the posterior, a power of two.
    """

    model: type[Model] | None
    questions: int
    by: By = "information"
    fixed: Mapping[str, float] | None = None
    particles: int = PARTICLES

    def __post_init__(self) -> None:
        if self.by == "information" and self.model is None:
            known = "a model whose parameters they are to tell"
            raise ValueError(f"Questions are chosen for {known}; got none. Name one.")
        if self.particles < 64 or self.particles & (self.particles - 1):
            raise ValueError(
                f"The number of particles is a power of two from 64 on; got {self.particles}."
            )

    def check(self, environment: Environment) -> None:
        """Raise ValueError if the questions of an experiment cannot be chosen for the model."""
        check_questions(environment, self.questions)
        if self.by == "order":
            return
        assert self.model is not None
        self.model.check_plays(environment)
        if self.model.remembers:
            able = [name for name, other in AGENTS.items() if _tells(other, environment)]
            raise ValueError(
                f"Questions are chosen one by one for a model whose answers do not depend on "
                f"earlier ones; those of {self.model.name} do. Choose one of "
                f"{', '.join(able) or 'none'}."
            )
        if not len(Unknowns.of(self.model, self.fixed).parameters):
            raise ValueError(
                f"Questions are to tell parameters; all of {self.model.name} are held. Free one."
            )

    def __call__(self, environment: Environment, design: Design) -> Pick:
        """Return the function that picks the questions of the session with this design."""
        if self.by == "order":
            return _in_order
        assert self.model is not None
        return Inquiry(self.model, environment, design, self.fixed, self.particles)

    def session(self, environment: Environment, design: Design) -> ChosenSession:
        """Begin a session."""
        pick = self(environment, design)
        return ChosenSession(environment, design, self.questions, pick)

    def as_dict(self) -> dict[str, Any]:
        """Return everything that defines the choice, JSON-able."""
        model = None if self.model is None else self.model.name
        options = {"model": model, "fixed": dict(self.fixed or {}), "particles": self.particles}
        return {"questions": self.questions, "by": self.by} | (
            options if self.by == "information" else {}
        )


def _tells(model: type[Model], environment: Environment) -> bool:
    return model.plays(environment) and not model.remembers and len(model.parameters) > 0


def _in_order(rows: Sequence[Mapping[str, Any]]) -> PickedQuestion:
    return PickedQuestion(len(rows))


def play_chosen(
    agent: Model, environment: Environment, chosen: ChosenQuestions, seed: int, *address: int
) -> Trials:
    """Let an agent answer questions that are chosen by its answers so far.

    The session is the one at this address, as for `play`: the same design holds the questions. The
    answer to a trial uses the random numbers at the trial's number in the session's stream.
    """
    import pandas as pd

    chosen.check(environment)
    agent.check_plays(environment)
    frame = pd.DataFrame(chosen_rows(agent, environment, chosen, seed, *address))
    frame["subject"] = str(address[-1]) if address else "0"
    return Trials.from_frame(frame, environment=environment)


def chosen_rows(
    agent: Model, environment: Environment, chosen: ChosenQuestions, seed: int, *address: int
) -> list[dict[str, Any]]:
    """Return the rows of such a session, unchecked."""
    rng = session_stream(seed, *address)
    session = chosen.session(environment, environment.draw(rng))
    numbers = rng.random((environment.n_trials, agent.n_uniforms))
    agent.reset()
    for seen in session:
        drawn: Any = _Given(numbers[int(seen["trial"])].tolist())
        session.take(agent.choose(seen, drawn))
    return session.rows


class _Given:
    """Numbers that were drawn before, handed out like those of a generator."""

    def __init__(self, numbers: list[float]):
        self._numbers = iter(numbers)

    def random(self, size: int | None = None) -> Any:
        if size is None:
            return next(self._numbers)
        return np.array([next(self._numbers) for _ in range(size)])


class Inquiry:
    """The questions of one session, and what is known about the participant.

    Parameters
    ----------
    model : The model whose parameters are unknown; it must have no memory.
    environment, design : The experiment, and the session that holds the questions.
    fixed : Parameters with known values.
    particles : How many particles carry the posterior.
    """

    def __init__(
        self,
        model: type[Model],
        environment: Environment,
        design: Design,
        fixed: Mapping[str, float] | None = None,
        particles: int = PARTICLES,
    ) -> None:
        self.model, self.environment = model, environment
        self.unknowns = Unknowns.of(model, fixed)
        self.particles = Particles(self.unknowns.parameters, particles)
        columns = _questions_of(model, environment, design)
        names = list(columns)
        table = np.column_stack([columns[name] for name in names])
        rows, first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)
        self._kind = kind.ravel()  # places with the same question share their results
        self._columns = dict(zip(names, rows.T, strict=True))
        self._tables = {name: column[first] for name, column in design.table.items()}
        self._left = np.ones(len(table), dtype=bool)
        self._seen = 0
        self._told: list[dict[str, float]] = []  # each answer with its question
        self._expected: _Actions | _Numbers | None = None

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> PickedQuestion | None:
        """Return the question of the largest expected information among those not yet asked.

        Among equals it is the first one in the design.
        """
        self.take_in(rows)
        if not self._left.any():
            return None
        information, _ = self.expected()
        among = np.where(self._left, information[self._kind], -np.inf)
        position = int(np.argmax(among))
        return PickedQuestion(position, float(among[position]))

    def take_in(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Learn from the rows of the session that are not yet known."""
        for row in rows[self._seen :]:
            self._left[int(row["picked"])] = False
            given = {n: row[n] for n in ("action", "response") if row.get(n) is not None}
            if given:
                kind = self._kind[int(row["picked"])]
                shown = {name: float(column[kind]) for name, column in self._columns.items()}
                one = shown | {name: float(value) for name, value in given.items()}
                if self.particles.take_in(self._log_likelihood([one])(self.particles.theta)):
                    self._told.append(one)
        self._seen = len(rows)
        if self._told and self.particles.worn:
            self.particles.renew(self._log_likelihood(self._told))

    def expected(self) -> tuple[Array, Array]:
        """Return the expected information of each kind of question in nats, and its error."""
        known = self._expected
        if known is None or known.spent(self.particles):
            self._expected = known = self._reckoned()
        return known.information(self.particles.weights)

    def _reckoned(self) -> _Actions | _Numbers:
        particles = self.particles
        if self.model.given == "action":
            n_actions = self.environment.n_actions
            if particles.generation == 0:
                key = tuple((name, column.tobytes()) for name, column in self._columns.items())
                fixed = tuple(sorted(self.unknowns.held(self.model).items()))
                return _prior_table(self.model, key, n_actions, fixed, particles.n)
            theta, generation = particles.theta, particles.generation
            return _Actions.of(
                self.unknowns, self.model, self._columns, n_actions, theta, generation
            )
        return _Numbers.of(self)

    def _log_likelihood(self, rows: list[dict[str, float]]) -> Any:
        """Return the log-likelihood of answers as a function of points: [n, K] -> [n]."""
        flat = {name: np.array([one.get(name, np.nan) for one in rows]) for name in self._names}
        data = _data(self.model, flat, np.zeros(len(rows), dtype=np.int64), self._actions)

        def reckon(theta: Array) -> Array:
            many = data.repeat(np.zeros(len(theta), dtype=np.int64))
            return self.unknowns.log_likelihood(many, theta)[0]

        return reckon

    @property
    def _actions(self) -> int:
        return self.environment.n_actions

    @property
    def _names(self) -> list[str]:
        return [*self._columns, *answer_columns(self.environment)]


def _questions_of(model: type[Model], environment: Environment, design: Design) -> dict[str, Array]:
    """Return the columns in which questions differ for a model, each [questions]."""
    n = environment.n_trials
    wanted = [name for name in (*model.columns, *model.separate) if name not in _ANSWERS]
    brought: Mapping[str, NDArray[Any]] = {}
    if set(wanted) & set(environment.fields.dependent):
        brought = follow_world(environment.world, design.table, np.full(n, -1))
    depends = {name: brought[name] for name in environment.fields.dependent if name in brought}
    shown = {**design.table, **depends}
    result = {name: np.asarray(shown[name], dtype=float) for name in wanted if name in shown}
    if environment.given == "either":  # whether a trial asks for an action or for a number
        seen = {name: np.asarray(shown[name]) for name in environment.fields.stimulus}
        result["asks_action"] = (np.asarray(environment.asks(seen)) == "action").astype(float)
    return result or {"alike": np.zeros(n)}


def _data(
    model: type[Model], flat: Mapping[str, Array], subject: NDArray[np.int64], n_actions: int
) -> ModelData:
    """Return rows as the model reads them, each row a sequence of its own."""
    n = int(subject.max(initial=-1)) + 1
    rows = np.arange(len(subject))
    whole = dict(flat)
    for name in model.columns:
        whole.setdefault(name, np.zeros(len(subject)))
    return ModelData.of_columns(model, list(map(str, range(n))), subject, [rows], whole, n_actions)


def _table(unknowns: Unknowns, data: ModelData, theta: Array) -> Array:
    """Return the log-likelihood of each row at each point, [rows, n]."""
    values = np.empty((len(data), len(theta)))
    for s, point in enumerate(theta):
        at = np.broadcast_to(point, (len(data), len(point)))
        values[:, s] = unknowns.log_likelihood(data, at)[0]
    return values


@dataclass(frozen=True)
class _Actions:
    """Probabilities of actions, [kinds, actions, n], and the entropy at each point, [kinds, n]."""

    shares: Array
    entropy: Array
    generation: int

    @classmethod
    def of(
        cls,
        unknowns: Unknowns,
        model: type[Model],
        columns: Mapping[str, Array],
        n_actions: int,
        theta: Array,
        generation: int,
    ) -> _Actions:
        n = len(next(iter(columns.values())))
        flat = {name: np.repeat(column, n_actions) for name, column in columns.items()}
        flat["action"] = np.tile(np.arange(n_actions, dtype=float), n)
        data = _data(model, flat, np.arange(n * n_actions), n_actions)
        shares = np.exp(_table(unknowns, data, theta)).reshape(n, n_actions, len(theta))
        return cls(shares, -xlogy(shares, shares).sum(axis=1), generation)

    def spent(self, particles: Particles) -> bool:
        """Whether the points have been replaced since."""
        return particles.generation != self.generation

    def information(self, weights: Array) -> tuple[Array, Array]:
        """Return the entropy of the answer less its mean for known theta; there is no error."""
        p = self.shares @ weights
        information = -xlogy(p, p).sum(axis=1) - self.entropy @ weights
        return information, np.zeros(len(information))


@lru_cache(maxsize=8)
def _prior_table(
    model: type[Model],
    columns_key: tuple[tuple[str, bytes], ...],
    n_actions: int,
    fixed: tuple[tuple[str, float], ...],
    n: int,
) -> _Actions:
    """Return the table of the prior's points; sessions with the same questions share it."""
    unknowns = Unknowns.of(model, dict(fixed))
    theta = Particles(unknowns.parameters, n).theta
    columns = {name: np.frombuffer(column) for name, column in columns_key}
    return _Actions.of(unknowns, model, columns, n_actions, theta, 0)


@dataclass
class _Numbers:
    """Answers drawn for each kind of question, and their densities at each point.

    Parameters
    ----------
    density : density of each answer at each point, over the largest of its row, [kinds, answers, n]
    own : log density of each answer at the point that gave it, less that of the largest
    source : the points that gave the answers, [answers]
    begun : the weights of these points when the answers were drawn
    """

    density: Array
    own: Array
    source: NDArray[np.int64]
    begun: Array
    generation: int

    @classmethod
    def of(cls, inquiry: Inquiry) -> _Numbers:
        particles, model, unknowns = inquiry.particles, inquiry.model, inquiry.unknowns
        source = evenly(particles.weights, ANSWERS)
        columns, environment = inquiry._columns, inquiry.environment
        kinds = len(next(iter(columns.values())))
        theta = np.broadcast_to(unknowns.full, (ANSWERS, len(unknowns.full))).copy()
        theta[:, unknowns.columns] = particles.theta[source]
        # All questions use the same numbers, so that only the questions differ.
        uniforms = session_stream(_SEED).random((ANSWERS, 1, model.n_uniforms))
        uniforms = np.repeat(uniforms, kinds, axis=1).reshape(ANSWERS, -1)
        tables = {
            name: np.broadcast_to(column, (ANSWERS, *column.shape)).copy()
            for name, column in inquiry._tables.items()
        }
        given = play_tables(model, theta, environment, tables, uniforms, None).columns
        flat = {name: np.tile(column, ANSWERS) for name, column in columns.items()}
        flat |= {name: np.asarray(given[name], float) for name in answer_columns(environment)}
        data = _data(model, flat, np.arange(kinds * ANSWERS), inquiry._actions)
        table = _table(unknowns, data, particles.theta)
        most = table.max(axis=1, keepdims=True)
        table -= np.where(np.isfinite(most), most, 0.0)
        whole = table.reshape(ANSWERS, kinds, particles.n).swapaxes(0, 1)
        numbers = whole[:, np.arange(ANSWERS), source]
        begun = particles.weights[source].copy()
        return cls(np.exp(whole), numbers, source, begun, particles.generation)

    def spent(self, particles: Particles) -> bool:
        """Whether the points were replaced, or too few of the answers are still likely."""
        if particles.generation != self.generation:
            return True
        shares = self._shares(particles.weights)
        return bool(1.0 / np.square(shares).sum() < ANSWERS / 2)

    def information(self, weights: Array) -> tuple[Array, Array]:
        """Return the mean gain in log density over answers, and its Monte-Carlo error."""
        shares = self._shares(weights)
        gain = self.own - np.log(self.density @ weights)
        mean = gain @ shares
        away = np.square(gain - mean[:, None]) @ np.square(shares)
        return mean, np.sqrt(away)

    def _shares(self, weights: Array) -> Array:
        shares = weights[self.source] / self.begun
        return np.asarray(shares / shares.sum())
