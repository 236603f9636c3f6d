"""Choices between two machines by what they paid and by how little is known of them."""

from __future__ import annotations

from math import exp, log
from typing import ClassVar

import numpy as np
from numba import njit

from knownminds.agents.agent import Agent, Integers, Prepared, Selection
from knownminds.agents.exponential import exp_of_negative
from knownminds.agents.parameters import IDENTITY, POSITIVE, Array, Parameter, Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py
UNIT_OF_POINTS = 10.0  # differences of points are counted in tens


# What the likelihood carries along the trials, one row of LANES numbers each, all in one flat
# buffer: only then can the compiler turn the loop over lanes into vector instructions.
A_1, A_6, B, PER_NOISE_1, PER_NOISE_6, LAPSE = (k * LANES for k in range(6))
LINEAR, PRODUCT = (k * LANES for k in range(6, 8))
SCORE_A_1, SCORE_A_6, SCORE_B, SCORE_1, SCORE_6, SCORE_LAPSE = (k * LANES for k in range(8, 14))
N_ROWS = 14

TINY = 1e-150  # a product of probabilities is rescaled below this, and each counts at least this
LOG_TINY = log(TINY)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_likelihood(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, action, horizon, mean_0, mean_1, count_0, count_1
):
    """Log-likelihood and gradient; what matters of the past stands in each trial's columns.

    The log is taken once per 512 trials, of the product of the 1 + e**-|x|, each from 1 to 2.
    """
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 5 if lapse is None else 6))
    z = np.empty(N_ROWS * LANES)
    for block in range(len(row)):
        z[LINEAR:] = 0.0
        for i in range(LANES):
            q = row[block, i]
            z[A_1 + i] = theta[q, 0]
            z[A_6 + i] = theta[q, 1]
            z[B + i] = theta[q, 2]
            z[PER_NOISE_1 + i] = 1.0 / theta[q, 3]
            z[PER_NOISE_6 + i] = 1.0 / theta[q, 4]
            if lapse is not None:
                z[LAPSE + i] = lapse[q]
            z[PRODUCT + i] = 1.0
        for t in range(start[block], start[block + 1]):
            if (t - start[block]) % 512 == 511:
                for i in range(LANES):
                    z[LINEAR + i] -= log(z[PRODUCT + i])
                    z[PRODUCT + i] = 1.0
            for i in range(LANES):
                a = action[t, i]
                given = 1.0 if a >= 0.0 else 0.0
                side = (2.0 * a - 1.0) * given  # 1 for machine 1, -1 for machine 0, 0 for none
                long = 1.0 if horizon[t, i] > 1.0 else 0.0
                bonus = z[A_6 + i] if long > 0.0 else z[A_1 + i]
                per_noise = z[PER_NOISE_6 + i] if long > 0.0 else z[PER_NOISE_1 + i]
                less = count_0[t, i] - count_1[t, i]
                information = (1.0 if less > 0.0 else 0.0) - (1.0 if less < 0.0 else 0.0)
                gain = (mean_1[t, i] - mean_0[t, i]) / 10.0
                lead = (gain + bonus * information + z[B + i]) * per_noise
                x = side * lead
                e = exp_of_negative(-abs(x))
                missed = (e if x > 0.0 else 1.0) / (1.0 + e)
                if lapse is None:
                    z[LINEAR + i] += min(x, 0.0)
                    z[PRODUCT + i] *= 1.0 + e * given
                    push = side * missed * per_noise
                else:
                    taken = (1.0 if x > 0.0 else e) / (1.0 + e)
                    mixed = max((1.0 - z[LAPSE + i]) * taken + 0.5 * z[LAPSE + i], TINY)
                    product = z[PRODUCT + i] / (mixed if a >= 0.0 else 1.0)
                    large = product > 1.0 / TINY
                    z[PRODUCT + i] = product * TINY if large else product
                    z[LINEAR + i] += LOG_TINY if large else 0.0
                    push = side * (1.0 - z[LAPSE + i]) * taken * missed / mixed * per_noise
                    z[SCORE_LAPSE + i] += given * (0.5 - taken) / mixed
                z[SCORE_A_1 + i] += (1.0 - long) * push * information
                z[SCORE_A_6 + i] += long * push * information
                z[SCORE_B + i] += push
                z[SCORE_1 + i] -= (1.0 - long) * push * lead
                z[SCORE_6 + i] -= long * push * lead
        for i in range(LANES):
            q = row[block, i]
            total[q] += z[LINEAR + i] - log(z[PRODUCT + i])
            gradient[q, 0] += z[SCORE_A_1 + i]
            gradient[q, 1] += z[SCORE_A_6 + i]
            gradient[q, 2] += z[SCORE_B + i]
            gradient[q, 3] += z[SCORE_1 + i]
            gradient[q, 4] += z[SCORE_6 + i]
            if lapse is not None:
                gradient[q, 5] += z[SCORE_LAPSE + i]
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def simulate(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, horizon, forced_count, forced_sum, points
):
    """Play the games; points[t, a, i] is what machine a would pay in place (t, i)."""
    action = np.empty((start[-1], LANES))
    for block in range(len(row)):
        for i in range(LANES):
            if start[block] == start[block + 1]:
                continue
            q = row[block, i]
            count_0, count_1 = forced_count[start[block], 0, i], forced_count[start[block], 1, i]
            sum_0, sum_1 = forced_sum[start[block], 0, i], forced_sum[start[block], 1, i]
            long = 1 if horizon[start[block], i] > 1.0 else 0
            bonus, bias, noise = theta[q, long], theta[q, 2], theta[q, 3 + long]
            lapsed = 0.0 if lapse is None else lapse[q]
            for t in range(start[block], start[block + 1]):
                less = count_0 - count_1
                information = 1.0 if less > 0.0 else (-1.0 if less < 0.0 else 0.0)
                gain = (sum_1 / count_1 - sum_0 / count_0) / 10.0
                x = (gain + bonus * information + bias) / noise
                e = exp(-abs(x))
                p_0 = (1.0 - lapsed) * ((e if x > 0.0 else 1.0) / (1.0 + e)) + 0.5 * lapsed
                if uniforms[t, i] < p_0:
                    action[t, i] = 0.0
                    count_0 += 1.0
                    sum_0 += points[t, 0, i]
                else:
                    action[t, i] = 1.0
                    count_1 += 1.0
                    sum_1 += points[t, 1, i]
    return action


@njit(cache=True, nogil=True, error_model="numpy")
def _two_horizons(theta):  # type: ignore[no-untyped-def]
    wide = np.empty((len(theta), 5))
    for k, column in enumerate((0, 0, 1, 2, 2)):
        wide[:, k] = theta[:, column]
    return wide


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood_one_horizon(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, action, mean_0, mean_1, count_0, count_1
):
    """Return the same with one bonus and one noise for games of any length."""
    total, wide = log_likelihood(
        _two_horizons(theta), lapse, n_actions, row, start,
        action, np.zeros_like(action), mean_0, mean_1, count_0, count_1,
    )  # fmt: skip
    gradient = np.empty((len(theta), wide.shape[1] - 2))
    gradient[:, 0] = wide[:, 0] + wide[:, 1]
    gradient[:, 1] = wide[:, 2]
    gradient[:, 2] = wide[:, 3] + wide[:, 4]
    if lapse is not None:
        gradient[:, 3] = wide[:, 5]
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy")
def simulate_one_horizon(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, forced_count, forced_sum, points
):
    """Play with one bonus and one noise for games of any length."""
    return simulate(
        _two_horizons(theta), lapse, n_actions, row, start, uniforms,
        np.zeros_like(uniforms), forced_count, forced_sum, points,
    )  # fmt: skip


def deal(
    subject: Integers, sequence: Integers, columns: tuple[Array, ...], lapse: bool
) -> Prepared:
    """Deal the answered trials of each subject into sequences of 32.

    Games are told apart for the simulation only: what a choice goes by stands in its columns. A
    sequence costs as much as ten trials, and a game of first free choices is a single one.
    """
    kept = np.flatnonzero(columns[0] >= 0.0)
    kept = kept[np.argsort(subject[kept], kind="stable")]
    own = subject[kept]
    within = np.arange(len(own)) - np.searchsorted(own, own)
    return own, within // LANES, tuple(column[kept] for column in columns)


FIRST_FREE_CHOICES = Selection(
    "play",
    0.0,
    "first free choices",
    "Later choices of a game follow from earlier ones, and people mostly exploit there, which an "
    "information bonus fitted to all plays would take for a dislike of information.",
)

BIAS = Parameter(
    "B",
    IDENTITY,
    mean=0.0,
    sd=0.5,
    description="liking of machine 1, in tens of points",
    source="Wilson et al. 2014",
)


class HorizonExplorer(Agent):
    """Prefers the machine that paid more, and, for its own sake, the one that is known less.

    P(machine 1) = logistic((dR + A_h dI + B) / s_h). dR is how much more machine 1 has paid per
    play so far, in tens of points; dI is 1 where it was played less often than machine 0, -1
    where more often, else 0. The bonus A and the noise s hang on whether the game has one free
    play (A_1, s_1) or several (A_6, s_6), and hold for all its plays.

    As in the source, fits go by the first free choice of each game. Only there have the forced
    plays, and not earlier choices, made what is known; and people explore there and exploit later:
    a bonus fitted to all plays is mostly that of the later ones, and has come out negative for
    people whose first choices go to the machine that is known less. All plays are fitted only when
    asked for (`all_trials`), which is right for agents that keep to this equation throughout.

    Directed exploration is A_6 - A_1, random exploration s_6 - s_1.
    """

    name = "horizon_explorer"
    summary = "explores for information and at random, more or less where plays are left"
    source = "Wilson, Geana, White, Ludvig and Cohen 2014"
    n_actions = 2
    parameters = Parameters(
        Parameter(
            "A_1",
            IDENTITY,
            mean=0.0,
            sd=0.7,
            description="information bonus in games with one free play, in tens of points",
            source="Wilson et al. 2014",
        ),
        Parameter(
            "A_6",
            IDENTITY,
            mean=0.5,
            sd=0.7,
            description="information bonus in longer games, in tens of points",
            source="Wilson et al. 2014",
        ),
        BIAS,
        Parameter(
            "s_1",
            POSITIVE,
            mean=-0.5,
            sd=0.5,
            description="decision noise in games with one free play, in tens of points",
            source="Wilson et al. 2014",
        ),
        Parameter(
            "s_6",
            POSITIVE,
            mean=-0.2,
            sd=0.5,
            description="decision noise in longer games, in tens of points",
            source="Wilson et al. 2014",
        ),
    )
    columns: ClassVar[tuple[str, ...]] = (
        "action",
        "horizon",
        "mean_0",
        "mean_1",
        "count_0",
        "count_1",
    )
    design: ClassVar[tuple[str, ...]] = ("horizon", "forced_count", "forced_sum", "points")
    separate = ("game",)
    selection = FIRST_FREE_CHOICES
    remembers = False  # all that matters of earlier trials is part of what is seen
    prepare = staticmethod(deal)
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    def reset(self) -> None:
        """Nothing to forget."""

    def action_probabilities(self, observation: Observation) -> Array:
        """Logistic of what machine 1 has ahead."""
        bonus, bias, noise = self._three(observation["horizon"] > 1)
        information = float(np.sign(observation["count_0"] - observation["count_1"]))
        gain = (observation["mean_1"] - observation["mean_0"]) / UNIT_OF_POINTS
        x = (gain + bonus * information + bias) / noise
        e = exp(-abs(x))
        p_0 = (e if x > 0 else 1.0) / (1.0 + e)
        return np.array([p_0, 1.0 - p_0])

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Nothing to learn that the next observation does not tell."""

    def _three(self, long: bool) -> tuple[float, float, float]:
        a_1, a_6, bias, s_1, s_6 = self.theta.tolist()
        return (a_6, bias, s_6) if long else (a_1, bias, s_1)


class HorizonBlind(HorizonExplorer):
    """Explores as `HorizonExplorer` does, but alike in short and long games.

    P(machine 1) = logistic((dR + A dI + B) / s): its directed and random exploration, which are
    differences between long and short games, are 0.
    """

    name = "horizon_blind"
    summary = "explores for information and at random, however many plays are left"
    source = "Wilson, Geana, White, Ludvig and Cohen 2014, without the effect of the horizon"
    parameters = Parameters(
        Parameter(
            "A",
            IDENTITY,
            mean=0.25,
            sd=0.7,
            description="information bonus, in tens of points",
            source="Wilson et al. 2014",
        ),
        BIAS,
        Parameter(
            "s",
            POSITIVE,
            mean=-0.35,
            sd=0.5,
            description="decision noise, in tens of points",
            source="Wilson et al. 2014",
        ),
    )
    columns = ("action", "mean_0", "mean_1", "count_0", "count_1")
    design = ("forced_count", "forced_sum", "points")
    log_likelihood = staticmethod(log_likelihood_one_horizon)
    simulate = staticmethod(simulate_one_horizon)

    def _three(self, long: bool) -> tuple[float, float, float]:
        bonus, bias, noise = self.theta.tolist()
        return bonus, bias, noise
