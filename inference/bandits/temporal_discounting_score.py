"""How often the sooner sum is preferred in the questionnaire on temporal discounting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from knownminds.agents import Agent, ExponentialDiscounter
from knownminds.agents.parameters import Array
from knownminds.environments import TemporalDiscounting, Trials
from knownminds.environments.bandits.temporal_discounting import (
    BASELINES,
    CLIMB,
    LADDER,
    SCORES,
    factors_asked,
)
from knownminds.inference.measure import Dial, SubjectMeasure, Values

_BUILT_ON = BASELINES * LADDER  # the first of the items that build on the first baseline
_SCORES = np.array(SCORES)


class TemporalDiscountingScore(SubjectMeasure):
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

    source = "Ruggeri et al. 2022; CogBench"
    environments = ("temporal_discounting",)
    null = float("nan")
    bounds = (0.0, 19.0)
    rational = ""
    violator = "hyperbolic_discounter"
    # In agents so steep that 12 months are as good as 24 the score falls again.
    dial = Dial({"k": 1.0}, reach=2.0, steps=81)

    def __init__(self, released: bool = False):
        self.released = released
        self.name = "temporal_discounting" + ("_released" if released else "")
        self.summary = "how much sooner sums are preferred to later ones, 0 to 19" + (
            ", as the released code scores it" if released else ""
        )
        self._questions = TemporalDiscounting()

    def values(self, trials: Trials) -> Values:
        """Score each subject's questionnaires."""
        frame = trials.frame
        session = frame.groupby(["subject", "session"], sort=False).ngroup().to_numpy()
        trial = frame["trial"].to_numpy(dtype=np.int64)
        slots = self._questions.n_trials
        inside = (trial >= 0) & (trial < slots)
        if "action" not in frame or not inside.all() or not self._asks(trials, trial):
            raise ValueError(
                f"{self.name} is read off the questionnaire, whose {slots} trials have actions; "
                f"got {trials.row_name(int(np.argmin(inside)))}. "
                'Take sessions with design="adaptive".'
            )
        actions = np.full((int(session.max()) + 1, slots), -1)
        actions[session, trial] = frame["action"].to_numpy(dtype=float, na_value=-1.0)
        score = self.score(actions)
        subject = np.zeros(len(score), dtype=np.int64)
        subject[session] = frame.groupby("subject", sort=False).ngroup().to_numpy()
        return Values.means(subject, score, int(subject.max()) + 1, "unanswered items")

    def score(self, actions: NDArray[np.int64]) -> Array:
        """Score sessions of actions[n, 13] (0 sooner, 1 later, -1 none), [n]; NaN if incomplete."""
        factor = factors_asked(actions)
        ended = np.where((factor >= 0) & (actions >= 0), _SCORES[factor, actions], -1)
        baselines = ended[:, :_BUILT_ON].reshape(-1, BASELINES, LADDER).max(axis=2)
        built_on = actions[:, _BUILT_ON:]
        complete = (baselines >= 0).all(axis=1) & (built_on >= 0).all(axis=1)
        points = 1 - built_on
        if self.released:
            points[:, -1] = built_on[:, -1]
            points[baselines[:, 0] == 5] = 0
        return np.where(complete, baselines.sum(axis=1) + points.sum(axis=1), np.nan)

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the expected score of agents with parameters theta[n, P], over all branches."""
        later = self._waiting(model, theta)
        baseline = later[:, :_BUILT_ON].reshape(len(theta), BASELINES, LADDER, -1)[:, :, 0]
        first, low, lowest = baseline[..., 2], baseline[..., 1], baseline[..., 0]
        high, highest = baseline[..., 3], baseline[..., 4]
        ends = np.stack(
            [
                first * low * lowest,
                first * low * (1.0 - lowest),
                first * (1.0 - low),
                (1.0 - first) * high,
                (1.0 - first) * (1.0 - high) * highest,
                (1.0 - first) * (1.0 - high) * (1.0 - highest),
            ],
            axis=-1,
        )  # [n, baselines, scores]
        points = 1.0 - later[:, _BUILT_ON:]
        if self.released:
            points[:, -1] = later[:, _BUILT_ON:][:, -1]
        waits = ends[:, 0, : len(CLIMB)].copy()
        if not self.released:
            waits[:, -1] += ends[:, 0, -1]
        built_on = np.einsum("nf,nif->n", waits, points)
        score: Array = (ends @ np.arange(6.0)).sum(axis=1) + built_on
        return score

    def _waiting(self, model: type[Agent], theta: Array) -> Array:
        """Return the probability of the later sum, by trial and factor, [n, 13, 5]."""
        asked = self._questions.tables(np.zeros((1, self._questions.n_draws)))
        later = asked["later_amounts"][0]
        shape = (len(theta), *later.shape)
        if model.name == "random_responder":
            return np.full(shape, 0.5)
        if not issubclass(model, ExponentialDiscounter):
            raise ValueError(
                f"The true {self.name} is known of discounters and of random_responder; got "
                f"{model.name}. Choose another model."
            )
        wide = [
            np.broadcast_to(asked[name][0][:, None], later.shape).ravel()
            for name in ("sooner_amount", "sooner_delay", "later_delay")
        ]
        lead = model.advantage_of_later(theta, wide[0], wide[1], later.ravel(), wide[2])
        return np.asarray(expit(lead)).reshape(shape)

    def _asks(self, trials: Trials, trial: NDArray[np.int64]) -> bool:
        """Say whether the trials ask what the questionnaire asks at their number."""
        if "item" not in trials.frame:
            return True
        asked = self._questions.tables(np.zeros((1, self._questions.n_draws)))["item"][0]
        item = trials.frame["item"].to_numpy(dtype=float, na_value=np.nan)
        return bool(np.array_equal(item, asked[trial]))
