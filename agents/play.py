"""How agents play environments: trial by trial, or whole populations in one compiled call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from knownminds.environments import (
    Environment,
    Observation,
    Session,
    Trials,
    Turn,
    answer_columns,
    session_stream,
)
from knownminds.environments.later import pandas as pd
from knownminds.environments.streams import session_uniforms
from knownminds.environments.turn import Choice
from knownminds.environments.world import follow_world

from .compiled import read_only
from .compiler.kernels import CompiledSimulation
from .model import Model
from .parameters import LAPSE, Array
from .sequences import LANES, Sequences

# So many trials are drawn and played before the next sessions are. Their arrays then stay in the
# processor's caches, and memory is allocated once.
AT_ONCE = 2**16
_LOST = 2**31 + 2  # last part of the address of the numbers that decide which answers are lost


def play(agent: Model, environment: Environment, seed: int, *address: int) -> Trials:
    """Let an agent play one session trial by trial.

    The session is the one at `address` of the study with this seed (see `session_stream`). The
    subject is named by the last part of the address.
    """
    agent.check_plays(environment)
    if agent.actions != environment.n_actions:
        raise ValueError(
            f"This {agent.name} chooses between {agent.actions} actions; {environment.name} "
            f"offers {environment.n_actions}. Make it with actions={environment.n_actions}."
        )
    rng = session_stream(seed, *address)
    session = Session(environment, environment.draw(rng))
    player = AgentInSession(agent, rng)
    for seen in session:
        player.learn(session.take(player.choose(seen)))
    frame = pd.DataFrame(session.rows)
    frame["subject"] = str(address[-1]) if address else "0"
    return Trials.from_frame(frame, environment=environment)


class AgentInSession:
    """An agent at the beginning of a session, and the random numbers by which it will choose.

    Parameters
    ----------
    rng : The session's stream, from which its design has been drawn.
    """

    def __init__(self, agent: Model, rng: np.random.Generator) -> None:
        self.agent, self._rng, self._drawn = agent, rng, 0
        agent.reset()

    def choose(self, seen: Observation) -> Choice:
        """Choose on a trial; earlier trials that fell away leave their numbers unused."""
        trial = int(seen["trial"])
        self._rng.random((trial - self._drawn) * self.agent.n_uniforms)
        self._drawn = trial + 1
        return self.agent.choose(seen, self._rng)

    def learn(self, turn: Turn) -> None:
        """Learn from what a trial brought."""
        action = -1 if turn.action is None else turn.action
        answer: dict[str, Any] = {} if self.agent.given == "action" else {"response": turn.response}
        reward = nan if turn.reward is None else turn.reward
        self.agent.learn({**turn.known, **answer}, action, reward)


@dataclass(frozen=True)
class Sessions:
    """Simulated sessions as flat arrays, session after session: cheap, and ready for a fit.

    Parameters
    ----------
    environment : the experiment
    subject, trial : numbers of subject and trial, [trials]
    columns : stimulus and hidden columns, answers and rewards, each [trials]
    """

    environment: Environment
    subject: NDArray[np.int64]
    trial: NDArray[np.int64]
    columns: Mapping[str, NDArray[Any]]

    def to_trials(self, names: Sequence[str] | None = None) -> Trials:
        """Return the trial record; subjects are named 0, 1, ... unless `names` are given."""
        n = int(self.subject.max(initial=-1)) + 1
        labels = list(map(str, range(n) if names is None else names))
        return Trials.from_sessions(
            self.subject, labels, self.trial, self.columns, self.environment
        )


def simulate(
    model: type[Model],
    theta: ArrayLike,
    environment: Environment,
    seed: int,
    *,
    address: Sequence[int] = (),
    lapse: ArrayLike | None = None,
) -> Trials:
    """Let subjects with parameters theta[N, P] each play one session, in compiled code.

    Subject i plays the session at (*address, i). Draw for draw, it is the same as
    ``play(model.from_theta(theta[i]), environment, seed, *address, i)``.

    Parameters
    ----------
    lapse : Lapse rates, one number or [N]; None for none.
    """
    return simulate_sessions(
        model, theta, environment, seed, address=address, lapse=lapse
    ).to_trials()


def simulate_sessions(
    model: type[Model],
    theta: ArrayLike,
    environment: Environment,
    seed: int,
    *,
    address: Sequence[int] = (),
    addresses: Sequence[Sequence[int]] | NDArray[np.int64] | None = None,
    lapse: ArrayLike | None = None,
    stream: int | None = None,
    lost: float = 0.0,
) -> Sessions:
    """Simulate as `simulate` does, but return flat arrays instead of a checked record.

    Parameters
    ----------
    addresses : Addresses of the N sessions; (*address, 0) to (*address, N - 1) if None.
    stream : Subjects choose by the numbers at (*address, i, stream) instead of those of the
        session, so that they play the same session again with other choices.
    lost : Share of the answers that are lost at random. Such a trial brings nothing, teaches
        nothing, and has no row.
    """
    model.check_plays(environment)
    values = np.atleast_2d(np.asarray(theta, dtype=float))
    model.parameters.check(values)
    n, n_trials = len(values), environment.n_trials
    rates = None
    if lapse is not None:
        rates = np.broadcast_to(np.asarray(lapse, dtype=float), (n,)).copy()
        if not LAPSE.support.contains(rates).all():
            raise ValueError(f"lapse lies in {LAPSE.support}; got {rates.min():g}.")

    places = np.asarray([(*address, 0)] * n if addresses is None else addresses)
    if addresses is None:
        places[:, -1] = np.arange(n)
    at_once = max(LANES, AT_ONCE // max(1, n_trials) // LANES * LANES)
    for_design = environment.n_draws
    for_choices = model.n_uniforms * n_trials

    def run_part(these: slice) -> Sessions:
        addresses_of_part = places[these]
        if stream is None:
            uniforms = session_uniforms(seed, addresses_of_part, for_design + for_choices)
            drawn, choices = uniforms[:, :for_design], uniforms[:, for_design:]
        else:
            drawn = session_uniforms(seed, addresses_of_part, for_design)
            choices = session_uniforms(seed, _below(addresses_of_part, stream), for_choices)
        tables = dict(environment.tables(drawn))
        if lost:
            given = session_uniforms(seed, _below(addresses_of_part, _LOST), n_trials) >= lost
            tables["present"] = given & tables.get("present", np.True_)
        rate = None if rates is None else rates[these]
        return play_tables(model, values[these], environment, tables, choices, rate)

    first = range(0, max(n, 1), at_once)
    return _joined([run_part(slice(k, k + at_once)) for k in first], first)


def _below(addresses: NDArray[np.int64], last: int) -> NDArray[np.int64]:
    """Return addresses with one more part at the end."""
    return np.column_stack([addresses, np.full(len(addresses), last)])


def _joined(parts: Sequence[Sessions], first: Sequence[int]) -> Sessions:
    """Put sessions together; `first` is the number of each part's first subject."""
    if len(parts) == 1:
        return parts[0]
    subject = [part.subject + k for part, k in zip(parts, first, strict=True)]
    return Sessions(
        parts[0].environment,
        np.concatenate(subject),
        np.concatenate([part.trial for part in parts]),
        {n: np.concatenate([part.columns[n] for part in parts]) for n in parts[0].columns},
    )


def play_tables(
    model: type[Model],
    theta: Array,
    environment: Environment,
    tables: Mapping[str, NDArray[Any]],
    uniforms: Array,
    lapse: Array | None,
) -> Sessions:
    """Let subjects with parameters theta[N, P] play one session each, given the sessions' tables.

    Parameters
    ----------
    tables : Tables as `Environment.tables` makes them, [N, T, ...].
    uniforms : The model's random numbers, [N, T * n_uniforms].
    lapse : Lapse rates [N]; None for none.
    """
    k, n = model.n_uniforms, len(theta)
    n_trials = uniforms.shape[1] // k
    drawn = uniforms.reshape(n * n_trials, *((k,) if k > 1 else ()))
    flat = {name: table.reshape(n * n_trials, *table.shape[2:]) for name, table in tables.items()}
    whole_sessions = "present" not in flat
    subject, trial = np.repeat(np.arange(n), n_trials), np.tile(np.arange(n_trials), n)
    present = np.flatnonzero(flat.get("present", np.ones(n * n_trials, dtype=bool)))

    def there(table: NDArray[Any]) -> NDArray[Any]:
        return table if whole_sessions else np.take(table, present, axis=0)

    recorded = (*environment.fields.shown, *environment.fields.hidden)
    fields = [name for name in recorded if name in flat or name in environment.fields.dependent]
    stimuli = {name: flat[name] for name in fields if name not in environment.fields.dependent}
    separate = [there(stimuli[name]) for name in model.separate if name in stimuli]
    sequences = Sequences.group(there(subject), separate, n)
    kernel, design = model.simulation(environment)
    packed = kernel(
        read_only(theta),
        read_only(np.zeros(n) if lapse is None else lapse),  # compiled for one of both alone
        environment.n_actions,
        read_only(sequences.row, np.int64),
        read_only(sequences.start, np.int64),
        read_only(sequences.pack(there(drawn))),
        *(read_only(sequences.pack(there(flat[name]))) for name in design),
    )
    names, parts = answer_columns(environment), packed
    if isinstance(kernel, CompiledSimulation):
        names = kernel.columns
    elif model.given not in ("both", "either"):
        parts = (packed,)

    def everywhere(values: NDArray[Any], gone: float) -> NDArray[Any]:
        if whole_sessions:
            return values
        spread = np.full(n * n_trials, gone, dtype=values.dtype)
        spread[present] = values
        return spread

    brought = {
        name: everywhere(sequences.unpack(part, len(present)), np.nan)
        for name, part in zip(names, parts, strict=False)
    }
    whole = {name: brought[name] for name in answer_columns(environment)}
    action = np.full(n * n_trials, -1)
    if "action" in whole:
        action = np.nan_to_num(whole["action"], nan=-1.0).astype(np.int64)
        whole["action"] = action
    if model.given == "either":  # what a trial does not ask for is empty
        acts = environment.asks(stimuli) == "action"
        whole["action"] = np.where(acts, action, np.nan)
        whole["response"] = np.where(acts, np.nan, whole["response"])
    later = (*environment.fields.dependent, "reward", *environment.fields.feedback)
    if set(later) <= brought.keys():
        if "present" in brought or not whole_sessions:
            falls = brought.get("present", np.ones(n * n_trials))
            brought["present"] = np.nan_to_num(falls) > 0.0
    else:
        follows = follow_world(environment.world, tables, action.reshape(n, n_trials))
        brought = {name: column.ravel() for name, column in follows.items()}
    columns = {**stimuli, **{name: brought[name] for name in environment.fields.dependent}}
    columns = (
        {name: columns[name] for name in fields}
        | whole
        | {name: brought[name] for name in ("reward", *environment.fields.feedback)}
    )
    if "present" not in brought:
        return Sessions(environment, subject, trial, columns)
    happened = np.flatnonzero(brought["present"] & flat.get("present", np.True_))
    columns = {name: np.take(column, happened) for name, column in columns.items()}
    return Sessions(environment, np.take(subject, happened), np.take(trial, happened), columns)
