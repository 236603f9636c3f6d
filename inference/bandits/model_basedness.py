"""How far first choices follow what was planned, rather than what was rewarded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.agents.play import simulate_sessions
from knownminds.environments import Trials, TwoStep
from knownminds.inference.measure import Dial, Estimate, Measure, with_columns
from knownminds.inference.regression import coefficient, estimate_of

SEED = 20111  # of the sessions by which the truth is computed
SESSIONS = 4096  # of them, for a group of agents; at least
SESSIONS_EACH = 16  # for each agent
REWARD_ALONE = "reward_alone"  # of a day whose deal cannot be read, in imported files


@dataclass(frozen=True)
class _Pairs:
    """Days followed by a day: whether the shuttle is the same again, and what was in between.

    Arrays are [pairs]; `n_unread` counts the days that are followed by one but lack an answer, or
    are followed by one that does.
    """

    stay: NDArray[np.bool_]
    rewarded: NDArray[np.bool_]
    common: NDArray[np.bool_]
    session: NDArray[np.int64]
    n_unread: int


class ModelBasedness(Measure):
    """The interaction of reward and common transition in whether a first choice is repeated.

    Logistic regression of staying on reward (0/1), common transition (0/1) and their product, over
    all days that follow one another; the product's coefficient, with errors robust to dependence
    within sessions. A plan turns to the other shuttle after a reward that a rare transition
    led to; a cached value does not (Daw et al. 2011).

    Caching agents are what the test takes for its null, and they come close to it, not quite: in
    them a rewarded common transition tells that the shuttle was the better one for longer, and so
    the more likely to be chosen again (Akam, Costa and Dayan 2015).

    The truth is that of sessions of 20 days, by simulation: .02 in caching agents with the shipped
    priors, 1.1 in planning ones. In longer sessions it is a little more (by .05 at 200 days), and
    with many days the test rejects for caching agents, too (10% of samples of 40 x 200 days).

    Parameters
    ----------
    released
        As in CogBench's released code: ordinary least squares, with reward and transition coded
        -1 and 1, errors that take days for independent, and days whose deal cannot be read used
        with the reward that the file has for them (`REWARD_ALONE`).
    """

    source = "Daw, Gershman, Seymour, Dayan and Dolan 2011; CogBench"
    environments = ("two_step",)
    rational = "two_step_model_free"
    violator = "two_step_hybrid"
    # Beyond this reach everybody plans or nobody does.
    dial = Dial({"w": 1.0}, reach=4.0, steps=17)

    def __init__(self, released: bool = False):
        self.released = released
        self.name = "model_basedness" + ("_released" if released else "")
        ending = ", least squares with -1/+1 coding" if released else ""
        self.summary = f"reward x common transition in repeating the first choice{ending}"

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the measure of agents with parameters theta[n, P] in many sessions each."""
        if "reward" not in model.columns:
            return np.zeros(len(theta))
        return self._interaction(_counts(model, theta, SESSIONS // SESSIONS_EACH))

    def group_truth(self, model: type[Agent], theta: Array) -> float:
        """Return the measure of all agents' sessions together, which is not the mean of theirs."""
        if "reward" not in model.columns:
            return 0.0
        each = max(SESSIONS_EACH, -(-SESSIONS // len(theta)))
        counts = _counts(model, theta, each).sum(axis=0)
        return float(self._interaction(counts[None])[0])

    def estimate(self, trials: Trials) -> Estimate:
        """Regress staying on what the day before brought."""
        pairs = _pairs(trials, without_deal=self.released)
        reward, common = pairs.rewarded.astype(float), pairs.common.astype(float)
        if self.released:
            reward, common = 2.0 * reward - 1.0, 2.0 * common - 1.0
        clusters = None if self.released else pairs.session
        regression = coefficient(
            "interaction",
            pairs.stay.astype(float),
            {"reward": reward, "common": common, "interaction": reward * common},
            logistic=not self.released,
            clusters=clusters,
        )
        return estimate_of(regression, self.name, "day", pairs.n_unread, clusters)

    def _interaction(self, counts: Array) -> Array:
        """Return the coefficient from counts[n, rewarded, common, stay]: the model is saturated.

        Half a day is added to each count (Haldane 1956): someone may never leave.
        """
        filled = counts + 0.5
        stays = filled[..., 1] / filled.sum(axis=-1)
        scale = stays / 4.0 if self.released else logit(stays)
        value: Array = scale[:, 1, 1] - scale[:, 1, 0] - scale[:, 0, 1] + scale[:, 0, 0]
        return value


def _counts(model: type[Agent], theta: Array, each: int) -> Array:
    """Let each agent live sessions; count its days, [n, rewarded, common, stay]."""
    environment = TwoStep()
    n, days = len(theta), environment.n_days
    simulated = simulate_sessions(model, np.repeat(theta, each, axis=0), environment, SEED)
    flight, deal = (
        {
            name: simulated.columns[name].reshape(-1, days, 2)[..., stage]
            for name in simulated.columns
        }
        for stage in (0, 1)
    )
    stay = flight["action"][:, 1:] == flight["action"][:, :-1]
    common = (deal["state"] == flight["action"])[:, :-1]
    rewarded = deal["reward"][:, :-1] > 0.5
    mind = np.repeat(np.arange(n), each)[:, None]
    cell = ((mind * 2 + rewarded) * 2 + common) * 2 + stay
    counted = np.bincount(cell.ravel(), minlength=8 * n)
    return counted.reshape(n, 2, 2, 2).astype(float)


def _pairs(trials: Trials, *, without_deal: bool) -> _Pairs:
    """Find the days that are followed by a day in the same session.

    A day whose second choice is missing has a pair only `without_deal`, and with a reward alone.
    """
    frame = with_columns(trials, "Model-basedness", ("stage", "state", "action", "reward"))
    stage, state, reward, action = (
        frame[name].to_numpy(dtype=float, na_value=np.nan)
        for name in ("stage", "state", "reward", "action")
    )
    if without_deal and REWARD_ALONE in frame:
        alone = np.isnan(action) & (stage == 1)
        reward = np.where(alone, trials.numbers(REWARD_ALONE), reward)
        action = np.where(alone & ~np.isnan(reward), 0.0, action)  # which one does not matter
    trial = frame["trial"].to_numpy(dtype=np.int64)
    session = frame.groupby(["subject", "session"], sort=False).ngroup().to_numpy()
    first = np.flatnonzero(stage == 0)
    follows = session[first[1:]] == session[first[:-1]]
    before, after = first[:-1][follows], first[1:][follows]
    between = np.minimum(before + 1, len(frame) - 1)
    whole = (after == before + 2) & (trial[after] == trial[before] + 2) & (stage[between] == 1)
    whole &= ~np.isnan(action[before] + action[after] + action[between] + reward[between])
    whole &= trial[between] == trial[before] + 1
    before, between, after = before[whole], between[whole], after[whole]
    return _Pairs(
        stay=action[after] == action[before],
        rewarded=reward[between] > 0.5,
        common=state[between] == action[before],
        session=session[before],
        n_unread=int((~whole).sum()),
    )
