"""How far first choices follow a plan, rather than earlier rewards."""

from __future__ import annotations

import numpy as np

from knownminds.environments import Trials
from knownminds.inference.measure import Dial, sessions_of, with_columns
from knownminds.inference.regression import Design, RegressionMeasure

REWARD_ALONE = "reward_alone"  # of a day without a readable second choice, in imported files


def model_basedness(released: bool = False) -> RegressionMeasure:
    """The interaction of reward and common transition in whether a first choice is repeated.

    It is a logistic regression of staying on reward (0/1), common transition (0/1) and their
    product, over all days that follow one another. The measure is the product's coefficient, with
    errors robust to dependence within subjects, who differ (within sessions, if there is one
    subject). A plan changes the shuttle if a rare transition led to a reward; a cached value does
    not (Daw et al. 2011).

    The null hypothesis is that of caching agents, and they come close to it, but not exactly: for
    them a rewarded common transition shows that the shuttle has been the better one for longer, and
    so is more likely to be chosen again (Akam, Costa and Dayan 2015).

    The truth is simulated in sessions of 20 days: .02 for caching agents with the shipped priors,
    1.1 for planning ones. It is a little larger in longer sessions (by .05 at 200 days). With many
    days the test rejects for caching agents, too (10% of samples of 40 x 200 days).

    Parameters
    ----------
    released : As in CogBench's released code: ordinary least squares, with reward and transition
        coded -1 and 1, and errors that treat days as independent. Days whose second choice cannot
        be read are used with the reward that the file has for them (`REWARD_ALONE`).
    """
    ending = ", least squares with -1/+1 coding" if released else ""
    return RegressionMeasure(
        lambda trials: days(trials, released),
        name="model_basedness" + ("_released" if released else ""),
        summary=f"reward x common transition in repeating the first choice{ending}",
        source="Daw, Gershman, Seymour, Dayan and Dolan 2011; CogBench",
        environments=("two_step",),
        rational="two_step_model_free",
        violator="two_step_hybrid",
        # Beyond this reach all agents plan, or none does.
        dial=Dial({"w": 1.0}, reach=4.0, steps=17),
        of="interaction",
        unit="day",
        logistic=not released,
        clustered_by="" if released else "subject",
        # Caching agents come close to the null; only agents that ignore rewards have it exactly.
        has_null=lambda model: "reward" not in model.columns,
    )


def days(trials: Trials, released: bool) -> Design:
    """Return the days that are followed by a day in the same session, and whether the choice stays.

    A day whose second choice is missing counts only if `released`, and only if it has a reward
    alone.
    """
    frame = with_columns(trials, "Model-basedness", ("stage", "state", "action", "reward"))
    stage, state, reward, action = (
        trials.numbers(name) for name in ("stage", "state", "reward", "action")
    )
    if released and REWARD_ALONE in frame:
        alone = np.isnan(action) & (stage == 1)
        reward = np.where(alone, trials.numbers(REWARD_ALONE), reward)
        action = np.where(alone & ~np.isnan(reward), 0.0, action)  # any action will do
    trial, session = frame["trial"].to_numpy(dtype=np.int64), sessions_of(trials)
    first = np.flatnonzero(stage == 0)
    follows = session[first[1:]] == session[first[:-1]]
    before, after = first[:-1][follows], first[1:][follows]
    between = np.minimum(before + 1, len(frame) - 1)
    whole = (after == before + 2) & (trial[after] == trial[before] + 2) & (stage[between] == 1)
    whole &= ~np.isnan(action[before] + action[after] + action[between] + reward[between])
    whole &= trial[between] == trial[before] + 1
    counts, (stay, rewarded, common) = np.zeros(len(frame), bool), np.zeros((3, len(frame)))
    counts[before] = True
    stay[before] = np.where(whole, action[after] == action[before], np.nan)
    rewarded[before], common[before] = reward[between] > 0.5, state[between] == action[before]
    if released:
        rewarded, common = 2.0 * rewarded - 1.0, 2.0 * common - 1.0
    return counts, stay, {"reward": rewarded, "common": common, "interaction": rewarded * common}


MODEL_BASEDNESS = tuple(map(model_basedness, (False, True)))
