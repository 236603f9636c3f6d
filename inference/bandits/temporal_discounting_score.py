"""How often the sooner sum is preferred in the questionnaire on temporal discounting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.bandits.temporal_discounting import (
    BASELINES,
    LADDER,
    SCORES,
    questioned_factors,
)
from knownminds.inference.measure import Dial, Values
from knownminds.inference.session_measure import DeclaredMeasure, SessionRows, session_measure

_BUILT_ON, _ITEMS = BASELINES * LADDER, 4  # the first and the number of items built on baselines
_SCORES = np.array(SCORES)


def check_questionnaire(measure: DeclaredMeasure, trials: Trials) -> None:
    """Raise ValueError unless the trials are those of the questionnaire, number by number."""
    place, trial = measure.place, trials.frame["trial"].to_numpy(dtype=np.int64)
    inside = (trial >= 0) & (trial < place.n_trials)
    same = "action" in trials.frame and bool(inside.all())
    if same and "item" in trials.frame:
        items = place.tables(np.zeros((1, place.n_draws)))["item"][0]
        same = np.array_equal(trials.numbers("item"), items[trial])
    if not same:
        raise ValueError(
            f"{measure.name} is read off the questionnaire, whose {place.n_trials} trials have "
            f"actions; got {trials.row_name(int(np.argmin(inside)))}. "
            'Take sessions with design="adaptive".'
        )


def temporal_discounting(released: bool = False) -> DeclaredMeasure:
    """The score of the adaptive questionnaire, from 0 (always later) to 19 (always sooner).

    Each of three baselines scores 0 to 5 by where the participant switched from the later to the
    sooner sum. Each of four further items scores 1 point for the sooner sum. *The sooner option
    scores in all questions, with losses as well*, where it is the patient one (paying now rather
    than more later). So a participant who discounts gains and losses alike scores points with gains
    and loses some with losses. Several sessions of a subject are averaged; sessions with an
    unanswered item have no score.

    Parameters
    ----------
    released : As in CogBench's released code. It skips the four items after a first baseline in
        which the sooner sum was always chosen, so that always choosing it scores 15. Its fourth
        item names the options in the other order, so that the later sum scores 1 point. (Two
        further differences do not change the score: it cuts off decimals of the sums in its
        prompts, and its flag for present bias starts at 1.)
    """

    ending = ", as the released code scores it" if released else ""

    @session_measure(
        name="temporal_discounting" + ("_released" if released else ""),
        summary=f"how much sooner sums are preferred to later ones, 0 to 19{ending}",
        source="Ruggeri et al. 2022; CogBench",
        environments=("temporal_discounting",),
        bounds=(0.0, 19.0),
        violator="hyperbolic_discounter",
        # In agents so steep that 12 months are no better than 24, the score falls again; the
        # released score falls sooner.
        dial=Dial({"k": 1.0}, reach=1.0 if released else 2.0, steps=9),
        columns=("action",),
        reason="unanswered items",
    )
    def score(rows: SessionRows) -> Array:
        actions = np.full((rows.n, _BUILT_ON + _ITEMS), -1)
        actions[rows.session, rows.trial] = np.where(np.isnan(rows["action"]), -1, rows["action"])
        factor = questioned_factors(actions)
        ended = np.where((factor >= 0) & (actions >= 0), _SCORES[factor, actions], -1)
        baselines = ended[:, :_BUILT_ON].reshape(-1, BASELINES, LADDER).max(axis=2)
        built_on = actions[:, _BUILT_ON:]
        complete = (baselines >= 0).all(axis=1) & (built_on >= 0).all(axis=1)
        points = 1 - built_on
        if released:
            points[:, -1] = built_on[:, -1]
            points[baselines[:, 0] == 5] = 0
        return np.where(complete, baselines.sum(axis=1) + points.sum(axis=1), np.nan)

    def read(measure: DeclaredMeasure, trials: Trials) -> Values:
        check_questionnaire(measure, trials)
        return score.read(measure, trials)

    return replace(score, read=read)


DISCOUNTING = tuple(map(temporal_discounting, (False, True)))
