"""Measures of answers about causal networks: pairs of questions that differ in one thing alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments.causes.network_questions import (
    MADE_ABSENT,
    MADE_PRESENT,
    MOST,
    NETWORK,
    QUESTION,
    SEEN_ABSENT,
    SEEN_PRESENT,
    exact_answers,
    separated,
)
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial
from knownminds.inference.session_measure import SessionRows, mean_by, session_measure

Pair = tuple[int, int]  # positions of two questions in a list
ALIKE = 1e-9  # exact answers that differ by less count as the same


Questions = dict[str, Array]  # columns of the questions that were asked, [questions]
OF_NETWORKS: dict[str, Any] = {
    "environments": ("causal_inference",),
    "columns": (*NETWORK, *QUESTION, "response"),
}


def _mean(answered: Array, exact: Array) -> Array:
    """Return the mean difference of each session, [sessions]."""
    held = np.isfinite(answered)
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(held, answered, 0.0).sum(axis=1) / held.sum(axis=1)
    return mean


def _slope(answered: Array, exact: Array) -> Array:
    """Return the slope of differences on exact ones, through the origin, [sessions]."""
    differs = np.abs(exact) > ALIKE
    x, y = exact[differs], answered[:, differs]
    held = np.isfinite(y)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope: Array = (np.where(held, y, 0.0) @ x) / (held @ x**2)
    return np.where(held.any(axis=1), slope, np.nan)


def of_pairs(
    pairs: Callable[[Questions], Iterator[Pair]], number: Callable[[Array, Array], Array] = _mean
) -> Callable[[SessionRows], Array]:
    """Return a function that reads a number of each session off the answers to paired questions.

    Answers to the same question about the same network are first averaged over stories and rounds.
    A session has the pairs of which it answers both questions.

    Parameters
    ----------
    pairs : The pairs among the questions; a difference is the first answer less the second.
    number : A function of differences between answers, as shares of 1 [sessions, pairs], NaN where
        one is missing, and of exact answers [pairs].
    """

    def by_session(rows: SessionRows) -> Array:
        table = pd.DataFrame({name: rows[name] for name in (*NETWORK, *QUESTION)})
        which = table.groupby(list(table), sort=False).ngroup().to_numpy()
        first = np.unique(which, return_index=True)[1]
        questions = {name: rows[name][first] for name in (*NETWORK, *QUESTION)}
        one, other = np.array(list(pairs(questions)), dtype=np.int64).reshape(-1, 2).T
        given = np.isfinite(rows["response"])
        cell = (rows.session * len(first) + which)[given]
        means = mean_by(cell, rows["response"][given] / 100.0, rows.n * len(first))
        means = means.reshape(rows.n, len(first))
        exact = exact_answers(questions)
        return number(means[:, one] - means[:, other], exact[one] - exact[other])

    return by_session


def _twins(questions: dict[str, Array], change: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield question, variable and twin; in the twin its state is changed as in `change`."""
    table = np.column_stack([questions[name] for name in (*NETWORK, *QUESTION)])
    rows = [tuple(row) for row in table.tolist()]
    at = {row: k for k, row in enumerate(rows)}
    for variable in range(MOST):
        column = table.shape[1] - MOST + variable
        for k, row in enumerate(rows):
            if row[column] in change:
                twin = at.get((*row[:column], change[int(row[column])], *row[column + 1 :]))
                if twin is not None:
                    yield k, variable, twin


def _seen_and_made(questions: Questions) -> Iterator[Pair]:
    change = {SEEN_ABSENT: MADE_ABSENT, SEEN_PRESENT: MADE_PRESENT}
    for seen, _, made in _twins(questions, change):
        yield seen, made


def _screened_off(questions: Questions) -> Iterator[Pair]:
    evidence = np.stack([questions[name] for name in QUESTION[1:]])
    for present, variable, absent in _twins(questions, {SEEN_PRESENT: SEEN_ABSENT}):
        seen = evidence[:, present].max() < MADE_ABSENT
        if seen and separated(questions, variable, present):
            yield present, absent


def _other_cause(questions: Questions) -> Iterator[Pair]:
    change = {SEEN_ABSENT: SEEN_PRESENT, MADE_ABSENT: MADE_PRESENT}
    for absent, other, present in _twins(questions, change):
        query = int(questions["query"][absent])
        for effect in range(max(query, other) + 1, MOST):
            evidence = questions[QUESTION[1 + effect]][absent]
            strengths = [questions[f"w{c + 1}{effect + 1}"][absent] for c in (query, other)]
            if evidence == SEEN_PRESENT and min(strengths) > 0:
                yield absent, present
                break


# The pairs differ in one thing alone: a variable was seen to be present (or absent) in one question
# and was made so in the other. The difference of the answers is compared with that of the exact
# answers, by the slope of the line through the origin over all pairs of a session. The slope is 0
# for a reasoner that takes interventions for observations, and 1 - n for one that neglects them by
# the share n, apart from noise that is cut off at the ends of the scale.
DO_VERSUS_SEE = session_measure(
    name="do_versus_see",
    summary="share of the exact difference between seeing and doing that answers show",
    source="Waldmann and Hagmayer 2005; Sloman and Lagnado 2005",
    reason="no two questions that differ in seeing and doing",
    rational="network_reasoner_seeing",
    violator="network_reasoner_neglect",
    dial=Dial({"neglect": -1.0}, reach=6.0, steps=13),
    **OF_NETWORKS,
)(of_pairs(_seen_and_made, _slope))
# The pairs differ in whether one variable was seen to be present or absent. By the graph that
# variable tells nothing about the query, given what else was seen: the answers of an exact reasoner
# are the same, whatever the strengths. Questions with interventions do not count. The measure is a
# share of 1; an associative reasoner has a part of its share k.
NETWORK_MARKOV_VIOLATION = session_measure(
    name="network_markov_violation",
    summary="how much a variable that is screened off raises the answer",
    source="Rehder 2014; Park and Sloman 2013; separation by Lauritzen and Spiegelhalter 1988",
    reason="no two questions that differ in a variable that is screened off",
    bounds=(-1.0, 1.0),
    rational="network_reasoner_exact",
    violator="network_reasoner_associative",
    dial=Dial({"k": 1.0}, reach=2.0, steps=9),
    **OF_NETWORKS,
)(of_pairs(_screened_off))
# The pairs ask about a cause of an effect that was observed to be present. They differ in whether
# another cause of it is told to be absent or present; both causes produce the effect. The measure
# is a share of 1. How much of it is right depends on the strengths.
NETWORK_EXPLAINING_AWAY = session_measure(
    name="network_explaining_away",
    summary="judgement of a cause that another cause of the same effect takes away",
    source="Pearl 1988; Rehder and Waldmann 2017",
    reason="no two questions about a cause of a present effect that differ in another cause",
    bounds=(-1.0, 1.0),
    violator="network_reasoner_biased",
    dial=Dial({"strength_scale": 1.0, "base_scale": -1.0}, reach=1.0, steps=9),
    **OF_NETWORKS,
)(of_pairs(_other_cause))
