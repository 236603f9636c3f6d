"""Answers to the items of the discounting questionnaire made into its trials."""

from __future__ import annotations

import numpy as np
import pandas as pd

from knownminds.environments import TemporalDiscounting
from knownminds.environments.bandits.temporal_discounting import (
    BASELINES,
    LADDER,
    OVER,
    questioned_factors,
)

_SHOWN = ("sooner_amount", "sooner_delay", "later_delay")


def questions_of_answers(answers: pd.DataFrame, environment: TemporalDiscounting) -> pd.DataFrame:
    """Return answers to items, one row each, as the trials of the questionnaire.

    The questionnaire asks 0 to 6: three baselines of two or three questions each, of which the
    answers decide the next, and four that build on the first. So the answers alone tell which sums
    were on offer.

    Parameters
    ----------
    answers : Columns subject, item (0 to 6), action (0 the sooner sum, 1 the later one, missing
        where nothing was answered), in the order of the items; and session if there are several.
        Others are kept.
    environment : The questionnaire, with its sums and delays.

    Raises
    ------
    ValueError : If a column is missing, an item is none of the seven, or has more answers than
        questions.
    """
    wanted = ("subject", "item", "action")
    missing = [name for name in wanted if name not in answers]
    if missing:
        raise ValueError(
            f"Answers to items have the columns {', '.join(wanted)}; {', '.join(missing)} is "
            f"missing among {', '.join(map(str, answers.columns))}. Rename yours."
        )
    item = answers["item"].to_numpy(dtype=float, na_value=np.nan)
    items = BASELINES + environment.n_trials - BASELINES * LADDER
    wrong = np.flatnonzero(~np.isin(item, np.arange(items)))
    if len(wrong):
        raise ValueError(
            f"Items are numbered from 0 to {items - 1}; row {wrong[0] + 1} has {item[wrong[0]]:g}. "
            "Recode it."
        )
    keys = [name for name in ("subject", "session") if name in answers]
    nth = answers.groupby([*keys, "item"], sort=False).cumcount().to_numpy()
    many = np.flatnonzero(nth >= np.where(item < BASELINES, LADDER, 1))
    if len(many):
        raise ValueError(
            f"A baseline has {LADDER} questions at most, another item one; row {many[0] + 1} is "
            f"answer {nth[many[0]] + 1} to item {item[many[0]]:g}. Leave it out."
        )
    slot = np.where(item < BASELINES, LADDER * item + nth, BASELINES * (LADDER - 1) + item)
    slot = slot.astype(np.int64)
    session = answers.groupby(keys, sort=False).ngroup().to_numpy()
    actions = np.full((int(session.max()) + 1, environment.n_trials), -1)
    actions[session, slot] = answers["action"].to_numpy(dtype=float, na_value=-1.0).astype(np.int64)
    factor = questioned_factors(actions)[session, slot]
    never = np.flatnonzero(factor == OVER)
    if len(never):
        raise ValueError(
            "An item goes on as its answers ask for; row "
            f"{never[0] + 1} answers a question that does not follow from the answers before it. "
            "Leave it out, or correct the order."
        )
    tables = environment.tables(np.full((1, environment.n_draws), 0.5))
    columns = {name: tables[name][0][slot] for name in _SHOWN}
    later = tables["later_amounts"][0][slot, factor]
    return answers.assign(trial=slot, item=item.astype(np.int64), later_amount=later, **columns)
