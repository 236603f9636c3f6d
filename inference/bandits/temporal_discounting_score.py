"""How often the sooner sum is preferred in the questionnaire on temporal discounting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import TemporalDiscounting, Trials
from knownminds.environments.bandits.temporal_discounting import (
    BASELINES,
    LADDER,
    SCORES,
    questioned_factors,
)
from knownminds.inference.measure import Dial, Values
from knownminds.inference.session_measure import SessionMeasure, SessionRows

_BUILT_ON = BASELINES * LADDER  # the first of the items that build on the first baseline
_SCORES = np.array(SCORES)


class TemporalDiscountingScore(SessionMeasure):
    """The score of the adaptive questionnaire, from 0 (always later) to 19 (always sooner).

    Each of three baselines scores 0 to 5 by where the participant switched from the later to
    the sooner sum, and each of four further items 1 point for the sooner one. *The sooner option
    scores throughout, with losses as well*, where it is the patient one (paying now rather than
    more later): somebody who discounts gains and losses alike gains points with the gains and
    gives away some with the losses. Several sessions of a subject are averaged; sessions with an
    item that was not answered have no score.

    Parameters
    ----------
    released
        As in CogBench's released code. It skips the four items after a first baseline in which
        the sooner sum was always chosen, so that always choosing it scores 15; and its fourth
        item names the options in the other order, so that 1 point goes to the later sum. (It also
        cuts off decimals of the sums, which changes its prompts and not the score, and its flag
        for present bias starts at 1, which is no part of the score either.)
    """

    kind = TemporalDiscounting
    columns = ("action",)
    reason = "unanswered items"
    source = "Ruggeri et al. 2022; CogBench"
    bounds = (0.0, 19.0)
    violator = "hyperbolic_discounter"
    # In agents so steep that 12 months are as good as 24 the score falls again.
    dial = Dial({"k": 1.0}, reach=2.0, steps=9)

    def __init__(self, released: bool = False):
        super().__init__()
        self.released = released
        self.name = "temporal_discounting" + ("_released" if released else "")
        self.summary = "how much sooner sums are preferred to later ones, 0 to 19" + (
            ", as the released code scores it" if released else ""
        )
        if released:  # which falls sooner
            self.dial = Dial({"k": 1.0}, reach=1.0, steps=9)

    def values(self, trials: Trials) -> Values:
        """Score each subject's questionnaires."""
        trial, slots = trials.frame["trial"].to_numpy(dtype=np.int64), self.environment.n_trials
        inside = (trial >= 0) & (trial < slots)
        if "action" not in trials.frame or not inside.all() or not self._asks(trials, trial):
            raise ValueError(
                f"{self.name} is read off the questionnaire, whose {slots} trials have actions; "
                f"got {trials.row_name(int(np.argmin(inside)))}. "
                'Take sessions with design="adaptive".'
            )
        return super().values(trials)

    def by_session(self, rows: SessionRows) -> Array:
        """Return the score of each questionnaire; NaN if an item was not answered, [sessions]."""
        actions = np.full((rows.n, self.environment.n_trials), -1)
        actions[rows.session, rows.trial] = np.where(np.isnan(rows["action"]), -1, rows["action"])
        factor = questioned_factors(actions)
        ended = np.where((factor >= 0) & (actions >= 0), _SCORES[factor, actions], -1)
        baselines = ended[:, :_BUILT_ON].reshape(-1, BASELINES, LADDER).max(axis=2)
        built_on = actions[:, _BUILT_ON:]
        complete = (baselines >= 0).all(axis=1) & (built_on >= 0).all(axis=1)
        points = 1 - built_on
        if self.released:
            points[:, -1] = built_on[:, -1]
            points[baselines[:, 0] == 5] = 0
        return np.where(complete, baselines.sum(axis=1) + points.sum(axis=1), np.nan)

    def _asks(self, trials: Trials, trial: NDArray[np.int64]) -> bool:
        """Say whether the trials ask what the questionnaire asks at their number."""
        if "item" not in trials.frame:
            return True
        items = self.environment.tables(np.zeros((1, self.environment.n_draws)))["item"][0]
        item = trials.frame["item"].to_numpy(dtype=float, na_value=np.nan)
        return bool(np.array_equal(item, items[trial]))
