"""Recorded sessions that take place again: what was shown is shown again, the rest drawn anew.

Where an experiment pays, rewards are those of new sessions of it, drawn with its settings. What
follows from recorded trials in another way stands in `REDRAWN`, by experiment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from knownminds.environments import Environment
from knownminds.environments.bandits.temporal_discounting import LADDER
from knownminds.environments.world import World

Tables = dict[str, NDArray[Any]]
Generator = np.random.Generator

# Units in which trials may fall away, of which each has room for the longest: the column of the
# unit, that of the trial in it and its first number, and the setting with the length.
ROOMS = {"balloon_risk": ("balloon", "pump", 1, "maxima"), "horizon": ("game", "play", 0,
         "long_horizon")}  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """Rows of N sessions, each at its position in time.

    Parameters
    ----------
    columns : Each [N, T]. A position without a row has the value of the last row before it, or else
        of the session's first row.
    there : Where a row is, [N, T].
    answered : Where a row with an answer is, [N, T].
    """

    columns: Mapping[str, NDArray[Any]]
    there: NDArray[np.bool_]
    answered: NDArray[np.bool_]

    def of(self, sessions: NDArray[np.int64]) -> Recorded:
        """Return these sessions, of which one may be named several times."""
        columns = {name: column[sessions] for name, column in self.columns.items()}
        return Recorded(columns, self.there[sessions], self.answered[sessions])

    def tables(
        self, environment: Environment, sessions: NDArray[np.int64], rng: np.random.Generator
    ) -> Tables:
        """Return tables [M, T, ...] in which these sessions take place once more.

        "present" says which trials happen, those without an answer not among them, since they
        teach nothing, and "kept" of which an answered row is there.
        """
        played, fields = self.of(sessions), environment.fields
        n, n_trials = played.there.shape
        tables: Tables = {}
        if environment.world is not World:  # what it shows and pays is looked up in tables
            tables = _new_sessions(environment, n, n_trials, rng)
        tables |= {
            name: played.columns[name] for name in fields.stimulus if name not in fields.dependent
        }
        tables |= {"present": played.answered, "kept": played.answered}
        redraw = REDRAWN.get(environment.name)
        return tables | redraw(environment, self, played, rng) if redraw else tables


def room_of(environment: Environment) -> int:
    """Return how many positions a unit takes of which trials may fall away; else 1."""
    if environment.name not in ROOMS:
        return 1
    return int(np.max(getattr(environment, ROOMS[environment.name][3])))


def positions(
    environment: Environment, frame: pd.DataFrame, session: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the position of each recorded row in its session, from 0.

    By the numbers of trials, from 0 or 1; where these number something else, so that most
    positions are free, rows stand one after the other. `session` numbers the sessions.
    """
    rows = frame.groupby(session, sort=False)
    if environment.name in ROOMS:
        unit, place, first, _ = ROOMS[environment.name]
        order = rows[unit].transform(lambda units: pd.factorize(units)[0])
        return (order * room_of(environment) + frame[place] - first).to_numpy(dtype=np.int64)
    rank: NDArray[np.int64] = np.asarray(rows.cumcount())
    number: NDArray[np.int64] = frame["trial"].to_numpy(dtype=np.int64)
    number = np.subtract(number, min(int(number.min()), 1), dtype=np.int64)
    dense = number.min() >= 0 and number.max() <= 2 * rank.max() + 1
    return number if dense else rank


def _new_sessions(
    environment: Environment, n: int, n_trials: int, rng: np.random.Generator
) -> Tables:
    """Return tables of n new sessions, the first n_trials of each.

    An experiment with fewer trials is enlarged by its setting of size.
    """
    if environment.n_trials < n_trials:
        size = environment.settings[str(environment.size)]
        enlarged = {str(environment.size): -(-size * n_trials // environment.n_trials)}
        environment = type(environment)(**environment.settings | enlarged)
    tables = environment.tables(rng.random((n, environment.n_draws)))
    return {name: table[:, :n_trials] for name, table in tables.items()}


def _balloons(environment: Any, recorded: Recorded, played: Recorded, rng: Generator) -> Tables:
    """Return the recorded balloons, each inflated anew until it may burst.

    A balloon ends before an answer that is missing.
    """
    most, n = max(environment.maxima), len(played.there)
    there, answered = (rows.reshape(n, -1, most) for rows in (played.there, played.answered))
    kind = played.columns["type"][:, ::most, None]
    pump = np.arange(1, most + 1)
    fatal = (rng.random(kind.shape) * np.array(environment.maxima)[kind]).astype(np.int64) + 1
    unread = np.cumsum(there & ~answered, axis=2) > 0
    present = there.any(axis=2, keepdims=True) & (pump <= fatal) & ~unread
    tables = {"balloon": np.arange(there.shape[1])[:, None], "type": kind, "pump": pump}
    tables |= {"bursts": pump == fatal, "present": present, "kept": present}
    return {
        name: np.broadcast_to(table, there.shape).reshape(n, -1) for name, table in tables.items()
    }


def _casinos(environment: Any, recorded: Recorded, played: Recorded, rng: Generator) -> Tables:
    """Return wins at the rates at which they came in all rows of a casino and machine.

    Half a win and half a loss are added, so that no few visits make it sure.
    """
    casino, action, reward = (recorded.columns[n] for n in ("context", "action", "reward"))
    cell = 2 * casino[recorded.answered] + action[recorded.answered].astype(np.int64)
    size = 2 * environment.n_contexts
    wins = np.bincount(cell, reward[recorded.answered], size)
    rates = ((wins + 0.5) / (np.bincount(cell, minlength=size) + 1.0)).reshape(-1, 2)
    chance = rates[played.columns["context"]]
    return {"payoffs": (rng.random(chance.shape) < chance).astype(np.float64)}


def _flights(environment: Any, recorded: Recorded, played: Recorded, rng: Generator) -> Tables:
    """Return flights at the recorded rate."""
    rate = played.columns["transition"]
    arrives = rng.random(rate[:, ::2].shape) < rate[:, ::2]
    return {"arrives": np.repeat(arrives, 2, axis=1)[:, : rate.shape[1]].astype(np.int64)}


def _sums(environment: Any, recorded: Recorded, played: Recorded, rng: Generator) -> Tables:
    """Return the later sums; the questionnaire as a whole, since answers say what follows.

    Kept are the questions about items of which the session has an answer.
    """
    if environment.plan != "adaptive":
        later = played.columns["later_amount"][..., None]
        return {"later_amounts": later, "ladder": np.full(played.there.shape, LADDER)}
    tables = environment.tables(np.full((len(played.there), environment.n_draws), 0.5))
    answered = np.zeros(tables["item"].shape, dtype=bool)
    answered[:, : played.there.shape[1]] = played.answered
    kept = np.zeros_like(answered)
    for item in np.unique(tables["item"]):
        rows = tables["item"] == item
        kept |= rows & (answered & rows).any(axis=1, keepdims=True)
    return {**tables, "present": np.ones_like(kept), "kept": kept}


def _misread(environment: Any, recorded: Recorded, played: Recorded, rng: Generator) -> Tables:
    """Return by how much each context is misread anew."""
    context = played.columns["context"]
    drawn = rng.standard_normal((len(context), int(context.max()) + 1))
    return {"idiosyncrasy": np.take_along_axis(drawn, context, axis=1)}


# What is drawn anew, or follows, where sessions of all that were recorded take place again.
REDRAWN: dict[str, Callable[[Any, Recorded, Recorded, Generator], Tables]] = {
    "balloon_risk": _balloons,
    "instrumental_learning": _casinos,
    "two_step": _flights,
    "temporal_discounting": _sums,
    "diagnosis": _misread,
}
