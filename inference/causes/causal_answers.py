"""Answers about causal graphs by task and cell, as the measures of causal reasoning read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import AGENTS, Model
from knownminds.agents.causes.noisy_or import CausalReasoner
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.causes.causal_graph import (
    GRAPHS,
    TASKS,
    Question,
    direction_of,
    task_of,
)
from knownminds.environments.later import pandas as pd
from knownminds.environments.words.cover_stories import SENSES, SHIPPED, load_stories
from knownminds.inference.measure import separated_by, with_columns

QUESTION = ("query", "first", "second", "third")
ROMAN = tuple(task.roman for task in TASKS)
CELL = ("domain", "sense", "direction", "task")  # these make an item: a question in its words
CELL_OF_TASKS = CELL[:3]
CELL_OF_ANSWERS = ("domain", "sense", "task")  # the letter cell: both directions together
SCALE = 100.0  # answers go from 0 to 100
DIGITS = 12  # shares are ranked with so many digits: .1 + .2 is .3


def causal_answers(trials: Trials | pd.DataFrame) -> pd.DataFrame:
    """Return the trials about colliders, with answers as shares of 1.

    Parameters
    ----------
    trials : Trials of `collider`, or a table with their columns query, first, second, third and
        response, and graph, domain and sense if they vary. A table that this function returned is
        returned unchanged.

    Returns
    -------
    DataFrame : All columns of the trials, with task (the roman number), direction ("C1" or "C2",
        the queried cause; in task II the absent cause), domain and sense (their names, "" without
        such a column) and answer (NaN where there is none).

    Raises
    ------
    ValueError : If a column is missing, or no trial is about a collider.
    """
    frame = trials.frame if isinstance(trials, Trials) else trials
    if {*CELL, "answer"} <= set(frame):
        return frame
    with_columns(frame, "Causal reasoning", (*QUESTION, "response"))
    graph = frame["graph"] if "graph" in frame else pd.Series(0, index=frame.index)
    rows = frame[(graph == 0).to_numpy()]
    if len(rows) == 0:
        graphs = ", ".join(f"{GRAPHS[int(g)]}s" for g in graph.unique())
        raise ValueError(f"These measures are of colliders; the trials are about {graphs}.")
    question = [rows[name].to_numpy(dtype=np.int64) for name in QUESTION]
    task = task_of(*question)
    if (task < 0).any():
        row = int(np.argmax(task < 0))
        raise ValueError(
            f"Every trial asks one of the eleven tasks; row {row + 1} asks "
            f"{', '.join(f'{n}={q[row]}' for n, q in zip(QUESTION, question, strict=True))}."
        )
    response = rows["response"].to_numpy(dtype=float, na_value=np.nan)
    return rows.assign(
        task=np.array(ROMAN, dtype=object)[task],
        direction=np.array(["C1", "C2"], dtype=object)[direction_of(*question)],
        domain=_named(rows, "domain"),
        sense=_named(rows, "sense"),
        answer=response / SCALE,
    )


def answers_by(trials: Trials | pd.DataFrame, agent: str) -> pd.DataFrame:
    """Return `causal_answers` of trials in which a column names the agent.

    Raises
    ------
    ValueError : If there is no such column.
    """
    answers = causal_answers(trials)
    separated_by(answers, agent)
    return answers


def as_published(answers: pd.DataFrame, agent: pd.Series) -> pd.DataFrame:
    """Return answers as Dettki (2025) reads them, an agent's answers together under its name.

    An agent with several subjects, as her people were, has cell means: each question has one row,
    whose answer is the mean over the subjects and both directions of its cell of domain, sense and
    task. The answers of an agent with one subject do not change.

    Parameters
    ----------
    answers : The table from `causal_answers`, with the column subject.
    agent : The name of each answer's agent, in the same order.

    Returns
    -------
    DataFrame : The table with the columns of the answers; subject is the agent.
    """
    named = answers.assign(subject=agent.astype(str).to_numpy()).reset_index(drop=True)
    people = answers["subject"].astype(str).groupby(agent.astype(str).to_numpy()).nunique()
    many = named["subject"].map(people).gt(1)
    theirs = named[many]
    means = theirs.groupby(["subject", *CELL_OF_ANSWERS], sort=False)["answer"].transform("mean")
    theirs = theirs.assign(answer=means).drop_duplicates(["subject", *CELL])
    return pd.concat([named[~many], theirs]).sort_index().reset_index(drop=True)


def cell_name(domain: str, sense: str, direction: str) -> str:
    """Return the name of a cell in a few words."""
    return " ".join(part for part in (domain, sense, direction) if part)


def judgements(model: type[Model], theta: Array, questions: Sequence[Question]) -> Array:
    """Return agents' judgements of Q questions about a collider before noise and cut, [n, Q].

    Judgements are on a scale from 0 to 1.

    Parameters
    ----------
    theta : Parameters on the natural scale, [n, P]; sigma plays no part.

    Raises
    ------
    ValueError : If the model is no causal reasoner.
    """
    if not issubclass(model, CausalReasoner):
        known = [name for name, agent in AGENTS.items() if issubclass(agent, CausalReasoner)]
        raise ValueError(
            f"The judgements of {', '.join(known)} are known; got {model.name}. Choose one of them."
        )
    graph = np.zeros(len(questions))
    return model.judgements(np.asarray(theta, dtype=float), graph, np.array(questions, dtype=float))


def both_directions(task: str) -> list[Question]:
    """Return the questions of a task (roman number), one or two."""
    task_name = TASKS[ROMAN.index(task)]
    return [task_name.question, *([task_name.mirrored] if task_name.mirrored else [])]


def _named(frame: pd.DataFrame, column: str) -> NDArray[Any]:
    """Return the names of domains or senses, whose positions the trials may hold."""
    if column not in frame:
        return np.full(len(frame), "", dtype=object)
    values = frame[column]
    if not pd.api.types.is_numeric_dtype(values):
        return values.astype(object).to_numpy()
    known = tuple(load_stories(SHIPPED)) if column == "domain" else SENSES
    names = np.array(known, dtype=object)
    position = values.to_numpy(dtype=float, na_value=-1.0)
    strange = ~np.isin(position, np.arange(len(names)))
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"The column {column!r} holds positions among {', '.join(names)}; row {row + 1} has "
            f"{values.iloc[row]}. Correct it, or give names."
        )
    return np.asarray(names[position.astype(np.int64)])
