"""The check of trials against an experiment: its columns, answers, fields and rules."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.environment import Environment, answer_columns

if TYPE_CHECKING:
    from .trials import TrialRule, Trials


def check_trials(environment: Environment, trials: Trials) -> None:
    """Raise ValueError at the first column or trial that an experiment cannot have produced."""
    _check_columns(environment, trials)
    for rule in _answer_rules(environment, trials):
        trials.require(*rule)
    _check_fields(environment, trials)
    for rule in environment.rules(trials):
        trials.require(*rule)


def _check_columns(environment: Environment, trials: Trials) -> None:
    """Raise ValueError if a column is missing that the experiment's trials must have."""
    fields, columns = environment.fields, list(trials.frame.columns)
    rewards = ("reward",) if environment.feedback else ()
    needed = (*fields.stimulus, *answer_columns(environment), *rewards, *fields.feedback)
    missing = [column for column in needed if column not in columns]
    if missing:
        near = {name: get_close_matches(name, columns, 1) for name in missing}
        named = [f"{n!r} (nearest: {near[n][0]})" if near[n] else repr(n) for n in missing]
        raise ValueError(
            f"Trials of {environment.name} have a column {', '.join(named)}; got only "
            f"{', '.join(columns)}. Map one with --columns {missing[0]}=YOUR_NAME."
        )


def _answer_rules(environment: Environment, trials: Trials) -> Iterator[TrialRule]:
    """Yield the rules for actions, responses and rewards."""
    name, answers = environment.name, answer_columns(environment)
    if "action" in answers:
        allowed = range(environment.n_actions)
        yield (
            f"Actions of {name} are {', '.join(map(str, allowed))}",
            trials.one_of("action", *allowed),
            ("action",),
            "Recode the actions to whole numbers from 0.",
        )
    if "response" in answers:
        low, high = environment.response_range
        yield (
            f"Responses of {name} go from {low:g} to {high:g}",
            _within(trials.numbers("response"), low, high),
            ("response",),
            "Rescale them.",
        )
    if environment.given == "both":
        yield trials.paired("response")
    if environment.given == "either":
        shown = {name: trials.frame[name].to_numpy() for name in environment.fields.stimulus}
        given = np.asarray(environment.asks(shown))
        for column in answers:
            yield (
                f"Trials of {name} ask for an action or for a response, by what is shown",
                np.isnan(trials.numbers(column)) | (given == column),
                (column,),
                f"Leave the column {column!r} empty where none is required.",
            )
    if not environment.feedback and "reward" in trials.frame:
        yield (
            f"{name} pays no rewards",
            np.isnan(trials.numbers("reward")),
            ("reward",),
            "Leave the column 'reward' out.",
        )
    yield from (trials.paired(column) for column in environment.fields.feedback)


def _check_fields(environment: Environment, trials: Trials) -> None:
    """Raise ValueError at the first trial with a number that a field cannot have.

    Columns with two whole ends hold whole numbers. Stimuli must be there in every row, unless the
    field has gaps.
    """
    for field in environment.fields:
        if field.name not in trials.frame:
            continue
        least, most = field.bounds(environment)
        whole = isinstance(least, int) and isinstance(most, int)
        counted = trials.frame[field.name].dtype.kind in "iub"
        low, high = trials.ends(field.name)
        if low >= least and high <= most and (counted or not whole):
            continue  # this is usual, unless a row has no value
        values = trials.numbers(field.name)
        right = _within(values, least, most)
        if whole:
            right &= np.isnan(values) | (values % 1 == 0)
        if field.role == "stimulus" and not field.gaps:
            right &= ~np.isnan(values)
        kind = "a whole number" if whole else "a number"
        ends = f" from {least:g} to {most:g}" if np.isfinite(most) else f" from {least:g} on"
        remedy = "Recode it."
        setting = field.setting or field.range
        if isinstance(setting, str) and setting in environment.settings:
            remedy = f"Recode it, or say how it was played (--set {setting}=VALUE)."
        rule = f"The column {field.name!r} of {environment.name} holds {kind}"
        rule += ends if np.isfinite([least, most]).any() else ""
        trials.require(rule, right, (field.name,), remedy)


def _within(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.bool_]:
    return np.isnan(values) | ((values >= low) & (values <= high))
