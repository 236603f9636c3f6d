"""The subjects of a study: their true parameters, and the sessions they live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from knownminds.agents import AGENTS, Model, Selection, play
from knownminds.agents.parameters import Array, Parameters
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Environment, Outcome, Trials
from knownminds.environments.streams import session_uniforms
from knownminds.inference.fits.model_data import ModelData
from knownminds.inference.groups.formulas import GroupDesign
from knownminds.inference.questions.next_question import chosen_rows

from .arguments import resolve_chosen
from .cells import Cell, Population
from .drawn_groups import correlation_matrix, design_of_sessions, draw_group
from .study import Batch, Study

# Populations of groups; in the usual population each subject is drawn from the model's priors.
HYPERPRIOR = Population(group="hyperprior")
CORRELATED = Population(group="hyperprior", correlated=True)
_GROUP_DRAW = 2**31 + 1  # first part of the address of a replicate's group
CHOSEN_PER_BATCH = 32  # subjects whose questions are chosen: a second or some


@dataclass(frozen=True)
class Subjects:
    """True parameters of the subjects of a batch.

    Parameters
    ----------
    theta : Natural scale, [n, P].
    replicate, number : Replicate and number within it of each subject, [n].
    group_mean, group_sd : What they were drawn from, one row per replicate of the batch, [R, P], on
        the unconstrained scale.
    of_session : Of a group whose parameters change from session to session: of each, [sessions, n,
        P].
    terms : What else was drawn, one number per replicate: "cor(alpha, beta)", see `draw_group`.
    """

    theta: Array
    replicate: NDArray[np.int64]
    number: NDArray[np.int64]
    group_mean: Array
    group_sd: Array
    of_session: Array | None = None
    terms: Mapping[str, Array] = field(default_factory=dict)


def draw_subjects(study: Study, batch: Batch) -> Subjects:
    """Draw the subjects of a batch, those of a replicate from the address (data key, replicate).

    A replicate's stream gives the group first and then subject after subject: a study with more
    subjects begins with the same ones.
    """
    cell = study.cells[batch.cell]
    parameters = AGENTS[cell.model].parameters
    replicate, number = study.subjects_of(batch)
    numbers, position = np.unique(replicate, return_inverse=True)
    n_parameters = len(parameters)
    # The group takes the first numbers of a replicate's stream, subject after subject the rest.
    most = int(number.max()) + 1
    places = np.column_stack([np.full(len(numbers), cell.data_key), numbers])
    uniforms = session_uniforms(study.seed, places, (2 + most) * n_parameters)
    normal = ndtri(np.maximum(uniforms, 2.0**-54)).reshape(len(numbers), 2 + most, n_parameters)
    if cell.population.group_draws:
        mean, spread = _drawn_group(study, cell, numbers)
    else:
        mean, spread = _group(cell, normal[:, 0], normal[:, 1])
    standard = normal[position, 2 + number]
    if cell.population.correlation:
        known = correlation_matrix(parameters.names, cell.population.correlation)
        standard = standard @ np.linalg.cholesky(known).T
    if cell.population.correlated or cell.population.formula:
        return _together(study, cell, replicate, number, (mean, spread, standard))
    theta = parameters.constrain(mean[position] + spread[position] * standard)
    for name, value in cell.truth.items():
        theta[:, parameters.index(name)] = value
    return Subjects(theta, replicate, number, mean, spread)


def _together(
    study: Study,
    cell: Cell,
    replicate: NDArray[np.int64],
    number: NDArray[np.int64],
    drawn: tuple[Array, Array, Array],
) -> Subjects:
    """Draw subjects whose parameters go together or change from session to session."""
    mean, spread, standard = drawn
    whole = AGENTS[cell.model].parameters
    free = np.array([k for k, name in enumerate(whole.names) if name not in cell.truth], dtype=int)
    parameters = Parameters(*(whole[whole.names[k]] for k in free))
    z = np.zeros((cell.sessions, len(replicate), len(whole)))
    z[:] = whole.mean
    terms: dict[str, list[float]] = {}
    for r, number_of in enumerate(np.unique(replicate)):
        mine = np.flatnonzero(replicate == number_of)
        group = draw_group(
            parameters,
            mean[r, free],
            spread[r, free],
            standard[mine[:, None], free],
            sessions=cell.sessions,
            design=design_of(cell, parameters, len(mine)),
            address=(study.seed, cell.data_key, int(number_of)),
        )
        z[:, mine[:, None], free] = group.z
        for name, value in group.terms.items():
            terms.setdefault(name, []).append(value)
    theta = whole.constrain(z)
    for name, value in cell.truth.items():
        theta[..., whole.index(name)] = value
    several = theta if cell.population.formula else None
    drawn_terms = {name: np.array(values) for name, values in terms.items()}
    return Subjects(theta[0], replicate, number, mean, spread, several, drawn_terms)


def design_of(cell: Cell, parameters: Parameters, subjects: int) -> GroupDesign | None:
    """Return the design of a population with a formula; None without one."""
    if not cell.population.formula:
        return None
    return design_of_sessions(
        cell.population.formula,
        AGENTS[cell.model],
        parameters,
        subjects,
        cell.sessions,
        cell.population.correlated,
    )


def _group(cell: Cell, for_mean: Array, for_sd: Array) -> tuple[Array, Array]:
    """Mean and spread of the group of each replicate, [R, P], from standard normal numbers."""
    parameters = AGENTS[cell.model].parameters
    if cell.population.group == "hyperprior":
        scale = np.array([p.group_sd for p in parameters])
        return parameters.mean + parameters.sd * for_mean, scale * np.abs(for_sd)
    mean, spread = parameters.mean, parameters.sd
    if cell.population.group_mean:
        names = parameters.names
        mean = np.array([cell.population.group_mean[name] for name in names])
        spread = np.array([cell.population.group_sd[name] for name in names])
    return np.broadcast_to(mean, for_mean.shape), np.broadcast_to(spread, for_sd.shape)


def lost_share(cell: Cell) -> float:
    """Return which share of the answers is lost: as many as in the pilot, if there was one."""
    count, of = cell.population.lost or (0, 1)
    return float(count) / float(of)


def _drawn_group(study: Study, cell: Cell, replicates: NDArray[np.int64]) -> tuple[Array, Array]:
    """Mean and spread of the group of each replicate, [R, P], from draws of a pilot.

    Both groups of a comparison, and all designs of a study, have the same draw in a replicate. The
    second of two groups that are apart by themselves has the means that the draws name for it.
    """
    own = cell.population.condition == "second" and cell.population.own_effect
    draws = {name: np.array(draws, float) for name, draws in cell.population.group_draws.items()}
    places = np.column_stack([np.full(len(replicates), _GROUP_DRAW), replicates])
    uniform = session_uniforms(study.seed, places, 1)[:, 0]
    which = (uniform * len(draws["mean"])).astype(int)
    return draws["second" if own else "mean"][which], draws["sd"][which]


@dataclass(frozen=True)
class PlayedSessions:
    """Sessions of subjects, as flat arrays in order of time.

    Parameters
    ----------
    environment : What was played.
    columns : Stimulus columns, action and reward, [trials].
    subject, session : Position of the subject in the batch, and number of its session, of each
        trial.
    n_subjects : How many subjects there are.
    """

    environment: Environment
    columns: Mapping[str, NDArray[Any]]
    subject: NDArray[np.int64]
    session: NDArray[np.int64]
    trial: NDArray[np.int64]
    n_subjects: int

    @classmethod
    def of_rows(
        cls, environment: Environment, rows: Sequence[Mapping[str, Any]], n: int
    ) -> PlayedSessions:
        """Return sessions that were played step by step, of n subjects, as flat arrays."""
        frame = pd.DataFrame(rows)
        given = {name for name in ("action", "response", "reward") if name in frame}
        stimuli = [*environment.fields.shown, *environment.fields.hidden]
        columns = {
            name: frame[name].to_numpy(dtype=float if name in given else None, na_value=np.nan)
            for name in (*stimuli, *sorted(given), *environment.fields.feedback)
            if name in frame
        }
        whose, which, trial = (
            frame[name].to_numpy(dtype=np.int64) for name in ("subject", "session", "trial")
        )
        return cls(environment, columns, whose, which, trial, n)

    def data(
        self,
        model: type[Model],
        *,
        selection: Selection | Literal["model"] | None = "model",
        apart: bool = False,
    ) -> ModelData:
        """Return what a model reads of them; `apart` makes every session a subject of its own.

        Session k of subject i is then row k * n_subjects + i. Trials outside the `selection`,
        by default the model's, count as unanswered.
        """
        who, n = self.subject, self.n_subjects
        if apart:
            who = self.session * n + who
            n *= int(self.session.max()) + 1
        separate = [self.session] + [
            self.columns[name].astype(np.int64) for name in model.separate if name in self.columns
        ]
        actions = self.environment.n_actions
        given = None
        chosen = model.selection if isinstance(selection, str) else selection
        if chosen is not None:
            given = chosen.of(self.columns, model.name)
        return ModelData.of_columns(
            model, list(map(str, range(n))), who, separate, self.columns, actions, given
        )

    def of(self, subjects: NDArray[np.int64]) -> PlayedSessions:
        """Return the sessions of these subjects, numbered anew from 0."""
        position = np.full(self.n_subjects, -1)
        position[subjects] = np.arange(len(subjects))
        mine = position[self.subject] >= 0
        columns = {name: column[mine] for name, column in self.columns.items()}
        subject, session = position[self.subject[mine]], self.session[mine]
        return PlayedSessions(
            self.environment, columns, subject, session, self.trial[mine], len(subjects)
        )

    def rows(self, rows: NDArray[np.int64], subject: NDArray[np.int64], n: int) -> PlayedSessions:
        """Return some trials as those of n subjects, of which `subject` names that of each."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        return PlayedSessions(
            self.environment, columns, subject, self.session[rows], self.trial[rows], n
        )

    def first_sessions(self, n: int) -> PlayedSessions:
        """Return the first n sessions of each subject."""
        rows = np.flatnonzero(self.session < n)
        return self.rows(rows, self.subject[rows], self.n_subjects)

    def beside(self, other: PlayedSessions) -> PlayedSessions:
        """Return both together: the sessions of subject i there are those of subject n + i."""
        columns = {
            name: np.concatenate([column, other.columns[name]])
            for name, column in self.columns.items()
        }
        return PlayedSessions(
            self.environment,
            columns,
            np.concatenate([self.subject, other.subject + self.n_subjects]),
            np.concatenate([self.session, other.session]),
            np.concatenate([self.trial, other.trial]),
            self.n_subjects + other.n_subjects,
        )

    def trials(self, *, apart: bool = False) -> Trials:
        """Return the checked record; subjects are named by their position in the batch.

        `apart` makes every session a separate subject, as in `data`.
        """
        who = self.session * self.n_subjects + self.subject if apart else self.subject
        frame = pd.DataFrame(
            {
                "subject": who.astype(str),
                "session": self.session.astype(str),
                "trial": self.trial,
                **self.columns,
                "outcome": Outcome.OK.value,
            }
        )
        return Trials.from_frame(frame, environment=self.environment)


def addresses_of(cell: Cell, subjects: Subjects, first_session: int = 0) -> NDArray[np.int64]:
    """Return the address of each session, [sessions * n, 4]: session after session of all."""
    n = len(subjects.theta)
    each = np.arange(first_session, first_session + cell.sessions)
    return np.column_stack(
        [
            np.full(n * cell.sessions, cell.data_key),
            np.tile(subjects.replicate, cell.sessions),
            np.repeat(each, n),
            np.tile(subjects.number, cell.sessions),
        ]
    )


def live(study: Study, batch: Batch, subjects: Subjects, first_session: int = 0) -> PlayedSessions:
    """Let the subjects of a batch live all their sessions, numbered from `first_session` on."""
    cell = study.cells[batch.cell]
    environment, n = cell.make(), len(subjects.theta)
    each = np.arange(first_session, first_session + cell.sessions)
    addresses = addresses_of(cell, subjects, first_session)
    if cell.analysis.questions is not None:
        return _live_chosen(study, cell, subjects.theta, addresses)
    sessions = simulate_sessions(
        AGENTS[cell.model],
        np.tile(subjects.theta, (cell.sessions, 1))
        if subjects.of_session is None
        else subjects.of_session[each].reshape(-1, subjects.theta.shape[1]),
        environment,
        study.seed,
        addresses=addresses,
        lapse=cell.lapse or None,
        lost=lost_share(cell),
    )
    session, subject = np.divmod(sessions.subject, n)
    return PlayedSessions(environment, sessions.columns, subject, session, sessions.trial, n)


def _live_chosen(
    study: Study, cell: Cell, theta: Array, addresses: NDArray[np.int64]
) -> PlayedSessions:
    """Let subjects answer questions that are chosen one by one, session after session."""
    environment, n, model = cell.make(), len(theta), AGENTS[cell.model]
    adaptive = cell.analysis.adaptive
    fixed = cell.analysis.fixed if adaptive == cell.model else None
    chosen = resolve_chosen(environment, cell.analysis.questions, adaptive, fixed)
    assert chosen is not None
    rows: list[dict[str, Any]] = []
    for row, address in enumerate(addresses.tolist()):
        session, subject = divmod(row, n)
        agent = model.from_theta(theta[subject], lapse=cell.lapse, actions=environment.n_actions)
        played = chosen_rows(agent, environment, chosen, study.seed, *address)
        rows += [{**one, "subject": subject, "session": session} for one in played]
    return PlayedSessions.of_rows(environment, rows, n)


def check_step_loop(study: Study) -> None:
    """Play the first session of each cell trial by trial as well.

    Raises
    ------
    RuntimeError : If it differs from the compiled simulation: no study may rest on either then.
    """
    for c, cell in enumerate(study.cells):
        if cell.analysis.questions is not None:  # which are chosen step by step in any case
            continue
        if cell.population.lost:  # all trials happen here
            cell = replace(cell, population=replace(cell.population, lost=()))
            study = replace(study, cells=(*study.cells[:c], cell, *study.cells[c + 1 :]))
        first = Batch(c, 0, 1)
        subjects = draw_subjects(study, first)
        fast = live(study, first, subjects)
        agent = AGENTS[cell.model].from_theta(
            subjects.theta[0], lapse=cell.lapse, actions=fast.environment.n_actions
        )
        slow = play(agent, fast.environment, study.seed, cell.data_key, 0, 0, 0).frame
        here = (fast.subject == 0) & (fast.session == 0)
        for name in ("trial", *(n for n in ("action", "response", "reward") if n in fast.columns)):
            quick = (fast.trial if name == "trial" else fast.columns[name])[here]
            stepped = slow[name].to_numpy(dtype=float, na_value=np.nan)
            # Numbers that are given may differ in the last digit: compilers order sums anew.
            if len(quick) != len(stepped) or not np.allclose(
                quick, stepped, rtol=1e-12, atol=1e-12, equal_nan=True
            ):
                raise RuntimeError(
                    f"{cell.model} plays differently in {cell.environment} step by step and "
                    f"compiled (column {name}); no study may rest on either."
                )
