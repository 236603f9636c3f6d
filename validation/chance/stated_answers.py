"""Stated answers beside revealed beliefs, by context and outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from knownminds.agents.parameters import Array
from knownminds.inference.chance.distribution_distance import stated_errors
from knownminds.inference.chance.revealed_belief import Belief, RevealedBeliefs

from .chance_items import ChanceItem

STATED = ("model", "scenario", "context", "outcome", "truth", "stated", "error")  # columns


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
    """Return stated answers about the contexts of some beliefs, by context and outcome.

    One row per outcome that the question is about, with the columns `STATED`: its true and its
    stated probability (the mean of the options by their letters' probabilities) and the stated
    error, 1 - P(correct letter).
    """
    if questions is None:
        return pd.DataFrame(columns=list(STATED))
    letters, items = questions.beliefs, questions.items
    errors = stated_errors(letters, [item.set_up.outcomes[item.correct] for item in items])
    by_name = {belief.name: belief for belief in beliefs}
    groups: dict[tuple[str, int], list[int]] = {}
    for i, item in enumerate(items):
        if item.context in by_name:
            groups.setdefault((item.context, item.outcome), []).append(i)
    rows = []
    for (context, outcome), several in groups.items():
        belief = by_name[context]
        usable = [i for i in several if not letters[i].flag]
        means = [np.dot(letters[i].normalised, items[i].options) for i in usable]
        if letters[several[0]].draws:
            error = _counted_error(questions, several)
        else:
            error = float(errors["value"].iloc[usable].mean())
        about = (model, belief.scenario, context, belief.outcomes[outcome])
        stated = float(np.mean(means)) if means else np.nan
        rows.append((*about, float(belief.truth[outcome]), stated, error))
    return pd.DataFrame(rows, columns=list(STATED))


def _counted_error(questions: Readings, several: Sequence[int]) -> float:
    """Return the share of wrong letters in the answers to questions about one outcome."""
    counts = [questions.beliefs[i].count for i in several]
    right = [count[questions.items[i].correct] for i, count in zip(several, counts, strict=True)]
    given = sum(int(count.sum()) for count in counts)
    return 1.0 - int(sum(right)) / given if given else np.nan


def shares_of(belief: Belief) -> tuple[Array, Array, Array]:
    """Return the normalised belief of a context, and the ends of the interval of each share."""
    return belief.normalised, *belief.interval(np.eye(len(belief.outcomes)))
