"""A player of balloons who learns how safe a pump is, and inflates up to a target."""

from __future__ import annotations

from math import exp, log, log1p

import numpy as np
from numba import njit

from knownminds.agents.agent import Agent
from knownminds.agents.exponential import exp_of_negative
from knownminds.agents.parameters import POSITIVE, UNIT, Array, Parameter, Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py: the number of sequences a kernel plays side by side

# What a kernel carries along the trials, one row of LANES numbers each, in one flat buffer, as
# in rescorla_wagner.py. PUMPS and BURSTS are what was seen so far; PUSH is the derivative of a
# balloon's log-likelihood with respect to tau x target, and BY_PHI, BY_ETA, BY_GAMMA are those of
# the target.
TAU, LAPSE, TARGET, PUMPS, BURSTS, LINEAR, PRODUCT = (k * LANES for k in range(7))
BY_PHI, BY_ETA, BY_GAMMA, PUSH = (k * LANES for k in range(7, 11))
SCORE_PHI, SCORE_ETA, SCORE_GAMMA, SCORE_TAU, SCORE_LAPSE = (k * LANES for k in range(11, 16))
N_ROWS = 16
ALIVE = LINEAR  # whether the balloon is still there; simulation alone needs it

RAREST = 1e-15  # the least belief that a pump bursts, or that it does not
TINY = 1e-150  # a product of probabilities is rescaled below this, and each counts at least this
LOG_TINY = log(TINY)


@njit(cache=True, nogil=True, error_model="numpy")
def _aim(z, i, phi, eta, gamma):  # type: ignore[no-untyped-def]
    """Set the target of the next balloon, and its derivatives, by what was seen so far."""
    weight = 1.0 + eta * z[PUMPS + i]
    risk = (1.0 - phi + eta * z[BURSTS + i]) / weight
    if RAREST < risk < 1.0 - RAREST:
        # d target / d risk
        slope = -gamma / (log1p(-risk) ** 2 * (1.0 - risk))
    else:
        risk = min(max(risk, RAREST), 1.0 - RAREST)
        slope = 0.0
    by_gamma = -1.0 / log1p(-risk)
    z[TARGET + i] = gamma * by_gamma
    z[BY_GAMMA + i] = by_gamma
    z[BY_PHI + i] = -slope / weight
    z[BY_ETA + i] = slope * (z[BURSTS + i] - z[PUMPS + i] * (1.0 - phi)) / weight**2


@njit(cache=True, nogil=True, error_model="numpy")
def _count_balloon(z, i):  # type: ignore[no-untyped-def]
    """Add to the scores what the balloon that is over says about its target."""
    push = z[PUSH + i] * z[TAU + i]
    z[SCORE_PHI + i] += push * z[BY_PHI + i]
    z[SCORE_ETA + i] += push * z[BY_ETA + i]
    z[SCORE_GAMMA + i] += push * z[BY_GAMMA + i]
    z[PUSH + i] = 0.0


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_likelihood(theta, lapse, n_actions, row, start, pump, action, reward):  # type: ignore[no-untyped-def]
    """Log-likelihood of each row of theta, with its exact gradient.

    The target changes only where a balloon begins: that is done lane by lane. The choices come
    after it in a second pass over the lanes, without branches. The log is taken once per 512
    trials, of the product of the 1 + e**-|x|, each between 1 and 2.
    """
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 4 if lapse is None else 5))
    z = np.empty(N_ROWS * LANES)
    for block in range(len(row)):
        z[:] = 0.0
        for i in range(LANES):
            q = row[block, i]
            z[TAU + i] = theta[q, 3]
            z[LAPSE + i] = 0.0 if lapse is None else lapse[q]
            z[PRODUCT + i] = 1.0
            _aim(z, i, theta[q, 0], theta[q, 1], theta[q, 2])

        for t in range(start[block], start[block + 1]):
            if (t - start[block]) % 512 == 511:
                for i in range(LANES):
                    z[LINEAR + i] -= log(z[PRODUCT + i])
                    z[PRODUCT + i] = 1.0
            for i in range(LANES):
                if pump[t, i] == 1.0:
                    q = row[block, i]
                    _count_balloon(z, i)
                    _aim(z, i, theta[q, 0], theta[q, 1], theta[q, 2])
            for i in range(LANES):
                a = action[t, i]
                given = 1.0 if a >= 0.0 else 0.0
                one = a * given  # 1 for a pump, otherwise 0
                side = 2.0 * one - given
                gap = z[TARGET + i] - pump[t, i]
                x = side * z[TAU + i] * gap
                e = exp_of_negative(-abs(x))
                missed = (e if x > 0.0 else 1.0) / (1.0 + e)  # probability of the other action
                if lapse is None:
                    z[LINEAR + i] += min(x, 0.0)
                    z[PRODUCT + i] *= 1.0 + e * given
                    push = side * missed
                else:
                    taken = 1.0 - missed if x > 0.0 else e / (1.0 + e)
                    mixed = (1.0 - z[LAPSE + i]) * taken + 0.5 * z[LAPSE + i]
                    mixed = max(mixed, TINY)
                    product = z[PRODUCT + i] / (mixed if a >= 0.0 else 1.0)
                    large = product > 1.0 / TINY
                    z[PRODUCT + i] = product * TINY if large else product
                    z[LINEAR + i] += LOG_TINY if large else 0.0
                    push = side * (1.0 - z[LAPSE + i]) * taken * missed / mixed
                    z[SCORE_LAPSE + i] += given * (0.5 - taken) / mixed
                z[PUSH + i] += push
                z[SCORE_TAU + i] += push * gap
                z[PUMPS + i] += one
                z[BURSTS + i] += one if reward[t, i] < 1.0 else 0.0

        for i in range(LANES):
            q = row[block, i]
            _count_balloon(z, i)
            total[q] += z[LINEAR + i] - log(z[PRODUCT + i])
            gradient[q, 0] += z[SCORE_PHI + i]
            gradient[q, 1] += z[SCORE_ETA + i]
            gradient[q, 2] += z[SCORE_GAMMA + i]
            gradient[q, 3] += z[SCORE_TAU + i]
            if lapse is not None:
                gradient[q, 4] += z[SCORE_LAPSE + i]
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def simulate(theta, lapse, n_actions, row, start, uniforms, pump, bursts):  # type: ignore[no-untyped-def]
    """Play the sequences; a balloon falls away after the first action that is no pump."""
    action = np.empty((start[-1], LANES))
    z = np.empty(N_ROWS * LANES)
    for block in range(len(row)):
        z[:] = 0.0
        for i in range(LANES):
            q = row[block, i]
            z[TAU + i] = theta[q, 3]
            z[LAPSE + i] = 0.0 if lapse is None else lapse[q]
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                if pump[t, i] == 1.0:
                    q = row[block, i]
                    _aim(z, i, theta[q, 0], theta[q, 1], theta[q, 2])
                    z[ALIVE + i] = 1.0
            for i in range(LANES):
                x = z[TAU + i] * (z[TARGET + i] - pump[t, i])
                e = exp_of_negative(-abs(x))
                stop = (e if x > 0.0 else 1.0) / (1.0 + e)
                stop = (1.0 - z[LAPSE + i]) * stop + 0.5 * z[LAPSE + i]
                alive = z[ALIVE + i]
                one = 0.0 if uniforms[t, i] < stop else alive
                action[t, i] = one + alive - 1.0
                z[ALIVE + i] = one
                z[PUMPS + i] += one
                z[BURSTS + i] += one * bursts[t, i]
    return action


class BalloonPumper(Agent):
    """A target follows from the belief that a pump is safe; pumping stops around it.

    For each type of balloon, p = (phi + eta x pumps that held) / (1 + eta x pumps) before a
    balloon begins, over all pumps of that type so far, those before a burst and the one that
    burst among them; target = -gamma / log(p); P(pump k) = logistic(tau (target - k)). Under a
    constant p the target with gamma = 1 has the highest expected points.
    """

    name = "balloon_pumper"
    summary = "learns from pumps and bursts how safe a pump is, and inflates up to a target"
    source = "van Ravenzwaaij, Dutilh and Wagenmakers 2011; Wallsten, Pleskac and Lejuez 2005"
    n_actions = 2
    parameters = Parameters(
        Parameter(
            "phi",
            UNIT,
            mean=3.0,
            sd=1.0,
            description="prior belief that a pump is safe",
            source="van Ravenzwaaij et al. 2011",
        ),
        Parameter(
            "eta",
            POSITIVE,
            mean=-3.0,  # 20 pumps weigh as much as the prior belief
            sd=0.7,
            description="weight of a pump that was seen, against 1 for the prior belief",
            source="van Ravenzwaaij et al. 2011",
        ),
        Parameter(
            "gamma",
            POSITIVE,
            mean=0.0,
            sd=0.5,
            description="risk taking: the target grows with it",
            source="van Ravenzwaaij et al. 2011",
        ),
        Parameter(
            "tau",
            POSITIVE,
            mean=-1.0,
            sd=0.7,
            description="consistency: how sharply pumping stops at the target",
            source="van Ravenzwaaij et al. 2011",
        ),
    )
    columns = ("pump", "action", "reward")
    design = ("pump", "bursts")
    separate = ("type",)
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    def reset(self) -> None:
        """Forget all balloons."""
        self.pumps: dict[int, int] = {}
        self.bursts: dict[int, int] = {}

    def action_probabilities(self, observation: Observation) -> Array:
        """Logistic in the distance from the target."""
        phi, eta, gamma, tau = self.theta.tolist()
        kind = int(observation.get("type", 0))
        # The pumps of this balloon, which all held, are left out: the target stays what it was.
        pumps = max(self.pumps.get(kind, 0) - (observation["pump"] - 1), 0)
        risk = (1.0 - phi + eta * self.bursts.get(kind, 0)) / (1.0 + eta * pumps)
        target = -gamma / log1p(-min(max(risk, RAREST), 1.0 - RAREST))
        x = tau * (target - observation["pump"])
        e = exp(-abs(x))
        stop = (e if x > 0.0 else 1.0) / (1.0 + e)
        return np.array([stop, 1.0 - stop])

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Count the pump, and whether it burst the balloon."""
        kind = int(observation.get("type", 0))
        if action == 1:
            self.pumps[kind] = self.pumps.get(kind, 0) + 1
            self.bursts[kind] = self.bursts.get(kind, 0) + (reward != 1.0)
