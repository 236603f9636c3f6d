"""What nobody is told: whether a model goes by it, and whether an experiment's prompts tell it.

A session has numbers that nobody knows who answers: fields that are recorded and not shown, what
actions will bring, and those that an experiment names as `untold`. A model peeks if the probability
of an answer changes with one of these while all else is held fixed. A prompt leaks if its words
tell one of these, or the right answer, see `leaks_of`. Of the shipped models outcome_peeker alone
peeks, and no shipped prompt leaks (`pytest -m long tests/referee/test_truth.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents import Model
from knownminds.environments import Environment, Session, session_stream
from knownminds.environments.design import Design

PEEKS = "peeks"
SESSIONS, TRIALS = 20, 100  # sessions, and trials of each, that are looked at
SUBJECTS = 3  # parameters of a model, from its priors
LEAST = 20  # pairs of trials of the same words, and numbers in prompts, from which a rule speaks
VARIES = 0.2  # share of pairs of other words in which what is told differs
TOLD, TOLD_OF_MEANS = 0.99, 0.9  # correlations; the second with means of as many trials
MANY = 8
_STREAM = 83
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# What code of others raises when it is asked for a probability; the contract says what it is.
FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError,
          ValueError)  # fmt: skip


@dataclass(frozen=True)
class Lived:
    """A session that was played at random.

    Parameters
    ----------
    design : What was drawn.
    rows : Of each trial all that is recorded, and the tables of the design.
    words : The prompt of each trial without those before it.
    """

    design: Design
    rows: list[dict[str, Any]]
    words: list[str]


def lived(
    environment: Environment, seed: int = 0, sessions: int = SESSIONS, told: bool = True
) -> Iterator[Lived]:
    """Yield sessions of somebody who answers at random; words are empty unless they are `told`."""
    middle = sum(environment.response_range) / 2
    for number in range(sessions):
        rng = session_stream(seed, _STREAM, number)
        design = environment.draw(rng)
        session, words = Session(environment, design), []
        for seen in session:
            text = repr(environment.render(design.labels, seen, ())) if told else ""
            words.append(text)
            given = environment.given
            asked = environment.asks(seen) if given == "either" else given
            action = int(rng.integers(environment.n_actions)) if environment.n_actions else 0
            session.take((action, middle) if asked == "both" else
                         middle if asked == "response" else action)  # fmt: skip
            if len(words) >= TRIALS:
                break
        rows = [
            {name: table[row["trial"]] for name, table in design.table.items()} | row
            for row in session.rows
        ]
        yield Lived(design, rows, words)


def secrets_of(environment: Environment) -> list[str]:
    """Return the names of what nobody knows who answers a trial.

    Of shown fields those that an experiment names as `untold`.
    """
    fields = environment.fields
    unseen = [name for name in environment.drawn if name not in fields.shown]
    names = (*_never_told(environment), *unseen, "reward", *fields.feedback)
    return list(dict.fromkeys(names))


def _never_told(environment: Environment) -> tuple[str, ...]:
    return (*environment.fields.hidden, *_untold(environment))


def _untold(environment: Environment) -> tuple[str, ...]:
    return getattr(environment, "untold", ())


def peeks_of(model: type[Model], environment: Environment, seed: int = 0) -> list[str]:
    """Return the names of what nobody is told that move a model's probability of an answer.

    Each is replaced by its value on another trial, before the model answers; all else stays as it
    was. What is never told is replaced in all that the model sees and learns from. Empty for a
    model that cannot be asked.
    """
    sessions = list(lived(environment, seed, SUBJECTS, told=False))
    pool = [row for one in sessions for row in one.rows]
    theta = model.parameters.draw(session_stream(seed, _STREAM), SUBJECTS)
    found: dict[str, None] = {}
    secrets = secrets_of(environment)
    for one, values in zip(sessions, theta, strict=True):
        try:
            agent, *others = (
                model.from_theta(values, actions=environment.n_actions or None)
                for _ in (None, *_never_told(environment))
            )
            misled = dict(zip(_never_told(environment), others, strict=True))
            for row in one.rows:
                action = None if model.given == "response" else row.get("action")
                response = None if model.given == "action" else row.get("response")
                p = agent.log_probability(row, action, response)
                for name in secrets:
                    other = next((r[name] for r in pool if np.any(r[name] != row[name])), row[name])
                    changed, asked = {**row, name: other}, misled.get(name, agent)
                    if abs(p - asked.log_probability(changed, action, response)) > 1e-9:
                        found[name] = None
                    if asked is not agent:
                        asked.learn(changed, -1 if action is None else action, row["reward"])
                agent.learn(row, -1 if action is None else action, row["reward"])
        except FAULTS:
            continue
    return list(found)


def leaks_of(environment: Environment, seed: int = 0) -> list[str]:
    """Return what prompts tell that nobody is to know: sentences, none for an experiment in order.

    Prompts are those of trials without earlier ones. They tell a number of the session

    - if it is the same whenever the words are, in 20 pairs of trials of a session at least, and
      differs in a fifth of the pairs of other words; or
    - if a number in them goes with its means over the trials of a session with that number:
      correlation .99, or .9 where these are 8 trials on average.

    The right number of a trial is told by the second rule alone: words are to lead to it.
    """
    if not environment.has_words():
        return []
    parts = [_table(environment, k, one) for k, one in enumerate(lived(environment, seed))]
    table = _without_counters(pd.concat(parts, ignore_index=True))
    secrets = [name for name in table if str(name).startswith(("right", "hidden"))]
    found = []
    for name in secrets:
        own = table[table[name].notna()]
        what = str(name).partition(" ")[2] or "the right answer"
        if not (own.groupby("trial")[str(name)].nunique() > 1).any():
            continue  # the same in all sessions
        if name != "right" and _by_words(own, str(name)):
            found.append(f"the words tell {what}")
        elif position := _by_numbers(own, str(name)):
            found.append(f"number {position} of the words tells {what}")
    return found


def _table(environment: Environment, number: int, one: Lived) -> pd.DataFrame:
    """Return words, the numbers in them and what is hidden, a row per trial."""
    columns: dict[str, Any] = {"session": number, "words": one.words}
    said = [[float(n) for n in _NUMBER.findall(text)] for text in one.words]
    for k in range(min(map(len, said), default=0)):
        columns[f"said {k + 1}"] = [numbers[k] for numbers in said]
        columns[f"said -{k + 1}"] = [numbers[-k - 1] for numbers in said]
    for name in secrets_of(environment):
        values = np.array([row[name] for row in one.rows], dtype=object)
        if name not in environment.drawn and name not in _untold(environment):
            continue  # what an answer brought, which the tables have for every answer
        each = np.array([np.ravel(np.asarray(v, dtype=float)) for v in values])
        for k in range(each.shape[1]):
            columns[f"hidden {name}" + (f" {k}" if each.shape[1] > 1 else "")] = each[:, k]
    trials = columns["trial"] = [row["trial"] for row in one.rows]
    right = environment.right({n: np.asarray(t) for n, t in one.design.table.items()})
    if right is not None:
        columns["right"] = np.asarray(right, dtype=float)[trials]
    return pd.DataFrame(columns)


def _without_counters(table: pd.DataFrame) -> pd.DataFrame:
    """Replace the numbers in words that are the same in all sessions, such as that of the trial."""
    first = [str(c) for c in table if str(c).startswith("said ") and "-" not in str(c)]
    steady = [int(c[5:]) for c in first if (table.groupby("trial")[c].nunique() == 1).all()]

    def bare(text: str) -> str:
        place = count(1)
        return _NUMBER.sub(lambda found: "#" if next(place) in steady else found[0], text)

    return table.assign(words=table["words"].map(bare))


def _by_words(table: pd.DataFrame, name: str) -> bool:
    """Say whether the same words always go with the same value, and others often do not."""
    same, other = [], []
    for _, part in table.groupby("session"):
        codes, values = pd.factorize(part["words"])[0], part[name].to_numpy()
        i, j = np.triu_indices(len(part), MANY)  # trials next to each other may share a prompt
        alike = codes[i] == codes[j]
        equal = values[i] == values[j]
        same += equal[alike].tolist()
        other += equal[~alike].tolist()
    varies = bool(other) and float(np.mean(other)) <= 1.0 - VARIES
    return len(same) >= LEAST and all(same) and varies


def _by_numbers(table: pd.DataFrame, name: str) -> str:
    """Return the position of a number in the words that goes with a value; "" if there is none."""
    for said in (str(c) for c in table if str(c).startswith("said ")):
        groups = table.dropna(subset=[said]).groupby(["session", said])
        means, sizes = groups[name].mean().reset_index(), groups.size().to_numpy()
        if sizes.sum() < LEAST or means[said].nunique() < 3 or means[name].nunique() < 3:
            continue
        x, y = (means[c].to_numpy() - np.average(means[c], weights=sizes) for c in (said, name))
        size = np.sqrt((sizes * x * x).sum() * (sizes * y * y).sum())
        bound = TOLD_OF_MEANS if sizes.mean() >= MANY else TOLD
        if size > 0 and abs((sizes * x * y).sum()) / size >= bound:
            return said.partition(" ")[2]
    return ""
