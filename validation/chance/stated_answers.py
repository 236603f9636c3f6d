"""Stated answers beside revealed beliefs, by context and outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from knownminds.agents.parameters import Array
from knownminds.inference.chance.distribution_distance import stated_errors
from knownminds.inference.chance.revealed_belief import Belief, RevealedBeliefs, wilson

from .chance_items import ChanceItem

# Columns of a stated answer.
STATED = (
    *("model", "scenario", "context", "outcome", "truth", "revealed", "revealed_low"),
    *("revealed_high", "stated", "error", "low", "high", "questions", "flag"),
)
UNKNOWN = (float("nan"),) * 3


@dataclass(frozen=True)
class Readings:
    """What a participant believes about some items: a table, and the naive reading beside it.

    Parameters
    ----------
    items : contexts, or questions whose outcomes are letters
    beliefs : of the items, in their order
    naive : probability of the tokens of each outcome alone, normalised, [rows]; NaN if unknown
    known : the belief of an agent whose belief is known, [rows]; NaN of others
    """

    items: Sequence[ChanceItem]
    beliefs: RevealedBeliefs
    naive: Array
    known: Array


def stated_frame(model: str, beliefs: RevealedBeliefs, questions: Readings | None) -> pd.DataFrame:
    """Join stated answers to the revealed beliefs of their contexts, by context and outcome.

    One row per outcome that the question is about, with the columns `STATED`: true, revealed and
    stated probability (the mean of the options by their letters' probabilities) and the stated
    error, 1 - P(correct letter), with its interval.
    """
    if questions is None:
        return pd.DataFrame(columns=list(STATED))
    letters, items = questions.beliefs, questions.items
    correct = [item.set_up.outcomes[item.correct] for item in items]
    errors = stated_errors(letters, correct)
    by_name = {belief.name: belief for belief in beliefs}
    groups: dict[tuple[str, int], list[int]] = {}
    for i, item in enumerate(items):
        groups.setdefault((item.context, item.outcome), []).append(i)
    rows = []
    for (context, outcome), several in groups.items():
        if context not in by_name:
            continue
        belief = by_name[context]
        shares = [np.nan if belief.flag else s[outcome] for s in shares_of(belief)]
        usable = [i for i in several if not letters[i].flag]
        means = [np.dot(letters[i].normalised, items[i].options) for i in usable]
        error: Sequence[float]
        if letters[several[0]].draws:
            error = _counted_error(questions, several)
        else:
            ends = errors[["value", "low", "high"]].iloc[usable]
            error = ends.mean().tolist() if usable else UNKNOWN
        values = [
            belief.truth[outcome],
            *shares,
            float(np.mean(means)) if means else np.nan,
            *error,
        ]
        flag = belief.flag or ("" if usable else f"question: {letters[several[0]].flag}")
        about = (model, belief.scenario, context, belief.outcomes[outcome])
        rows.append((*about, *map(float, values), len(several), flag))
    return pd.DataFrame(rows, columns=list(STATED))


def _counted_error(questions: Readings, several: Sequence[int]) -> Sequence[float]:
    """Return the share of wrong letters, and its interval, of questions about one outcome."""
    counts = [questions.beliefs[i].count for i in several]
    given = sum(int(count.sum()) for count in counts)
    if not given:
        return UNKNOWN
    right = sum(
        int(count[questions.items[i].correct]) for i, count in zip(several, counts, strict=True)
    )
    low, high = wilson(np.array([float(right)]), np.array([float(given)]))
    return 1.0 - right / given, 1.0 - float(high[0]), 1.0 - float(low[0])


def shares_of(belief: Belief) -> tuple[Array, Array, Array]:
    """Return the normalised belief of a context, and the ends of the interval of each share."""
    return belief.normalised, *belief.interval(np.eye(len(belief.outcomes)))
