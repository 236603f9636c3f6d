"""Planning and caching in the two-step task: a mixture of both, and its members."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from knownminds.agents.agent import Agent
from knownminds.agents.exponential import exp_of_negative
from knownminds.agents.parameters import IDENTITY, POSITIVE, UNIT, Array, Parameter, Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py: the number of sequences a kernel plays side by side

# What a kernel carries along the trials, one row of LANES numbers each, all in one flat buffer:
# only then can the compiler prove that rows do not overlap, and turn the loop over lanes into
# vector instructions. VALUE_sa is the value of alien a of planet s, SLOPE_sa its derivative with
# respect to alpha_2. CACHED_k is the model-free value of shuttle k, and RATE_k, DEEP_k and
# TRACE_k its derivatives with respect to alpha_1, alpha_2 and lambda.
ALPHA_1, ALPHA_2, TRACE, BETA_1, BETA_2, WEIGHT, STAY, LAPSE = (k * LANES for k in range(8))
VALUE_00, VALUE_01, VALUE_10, VALUE_11, CACHED_0, CACHED_1 = (k * LANES for k in range(8, 14))
SLOPE_00, SLOPE_01, SLOPE_10, SLOPE_11 = (k * LANES for k in range(14, 18))
RATE_0, RATE_1, DEEP_0, DEEP_1, TRACE_0, TRACE_1 = (k * LANES for k in range(18, 24))
LAST, PENDING, LINEAR, PRODUCT = (k * LANES for k in range(24, 28))
SCORE_ALPHA_1, SCORE_DEEP, SCORE_TRACE, SCORE_PLAN, SCORE_CACHE, SCORE_STAY = (
    k * LANES for k in range(28, 34)
)
SCORE_ALPHA_2, SCORE_BETA_2, SCORE_LAPSE = (k * LANES for k in range(34, 37))
N_ROWS = 37

TINY = 1e-150  # a product of probabilities is rescaled below this, and each counts at least this
LOG_TINY = log(TINY)


@njit(inline="always", error_model="numpy", fastmath={"contract"})
def _first_stage(z, t, lapse, stage, transition, action):  # type: ignore[no-untyped-def]
    """Choose a shuttle, by what is planned and what is cached."""
    for i in range(LANES):
        a = action[t, i]
        given = (1.0 if a >= 0.0 else 0.0) * (1.0 if stage[t, i] == 0.0 else 0.0)
        side = given * (2.0 * a - 1.0)  # 1 for shuttle 1, -1 for shuttle 0, or 0
        last = z[LAST + i]
        value_00 = z[VALUE_00 + i]
        value_01 = z[VALUE_01 + i]
        value_10 = z[VALUE_10 + i]
        value_11 = z[VALUE_11 + i]
        slope_0 = z[SLOPE_00 + i] if value_00 > value_01 else z[SLOPE_01 + i]
        slope_1 = z[SLOPE_10 + i] if value_10 > value_11 else z[SLOPE_11 + i]
        more = 2.0 * transition[t, i] - 1.0  # how much likelier the own planet is
        plan = more * (max(value_10, value_11) - max(value_00, value_01))
        cache = z[CACHED_1 + i] - z[CACHED_0 + i]
        weight = z[WEIGHT + i]
        rest = 1.0 - weight
        lead = weight * plan + rest * cache
        x = side * (z[BETA_1 + i] * lead + z[STAY + i] * last)
        e = exp_of_negative(-abs(x))
        missed = (e if x > 0.0 else 1.0) / (1.0 + e)  # probability of the other one
        if lapse is None:
            z[LINEAR + i] += min(x, 0.0)
            z[PRODUCT + i] *= 1.0 + e * given
            push = side * missed
        else:
            taken = 1.0 - missed if x > 0.0 else e / (1.0 + e)
            mixed = (1.0 - z[LAPSE + i]) * taken + 0.5 * z[LAPSE + i]
            mixed = max(mixed, TINY)
            product = z[PRODUCT + i] / (mixed if given > 0.0 else 1.0)
            large = product > 1.0 / TINY
            z[PRODUCT + i] = product * TINY if large else product
            z[LINEAR + i] += LOG_TINY if large else 0.0
            push = side * (1.0 - z[LAPSE + i]) * taken * missed / mixed
            z[SCORE_LAPSE + i] += given * (0.5 - taken) / mixed
        deep = z[DEEP_1 + i] - z[DEEP_0 + i]
        z[SCORE_ALPHA_1 + i] += push * (z[RATE_1 + i] - z[RATE_0 + i])
        z[SCORE_DEEP + i] += push * (rest * deep + weight * more * (slope_1 - slope_0))
        z[SCORE_TRACE + i] += push * (z[TRACE_1 + i] - z[TRACE_0 + i])
        z[SCORE_PLAN + i] += push * plan
        z[SCORE_CACHE + i] += push * cache
        z[SCORE_STAY + i] += push * last
        z[LAST + i] = side if given > 0.0 else last
        z[PENDING + i] = side if given > 0.0 else z[PENDING + i]


@njit(inline="always", error_model="numpy", fastmath={"contract"})
def _second_stage(z, t, lapse, stage, state, action, reward):  # type: ignore[no-untyped-def]
    """Choose an alien, and learn of it and of the shuttle."""
    for i in range(LANES):
        a = action[t, i]
        given = (1.0 if a >= 0.0 else 0.0) * (1.0 if stage[t, i] == 1.0 else 0.0)
        held = given > 0.0
        one = a == 1.0
        far = state[t, i] == 1.0
        value_00 = z[VALUE_00 + i]
        value_01 = z[VALUE_01 + i]
        value_10 = z[VALUE_10 + i]
        value_11 = z[VALUE_11 + i]
        slope_00 = z[SLOPE_00 + i]
        slope_01 = z[SLOPE_01 + i]
        slope_10 = z[SLOPE_10 + i]
        slope_11 = z[SLOPE_11 + i]
        value_0 = value_10 if far else value_00
        value_1 = value_11 if far else value_01
        slope_0 = slope_10 if far else slope_00
        slope_1 = slope_11 if far else slope_01
        value = value_1 if one else value_0
        slope = slope_1 if one else slope_0
        lead = given * (value - (value_0 if one else value_1))
        x = z[BETA_2 + i] * lead
        e = exp_of_negative(-abs(x))
        missed = (e if x > 0.0 else 1.0) / (1.0 + e)
        if lapse is None:
            z[LINEAR + i] += min(x, 0.0)
            z[PRODUCT + i] *= 1.0 + e * given
            push = given * missed
        else:
            taken = 1.0 - missed if x > 0.0 else e / (1.0 + e)
            mixed = (1.0 - z[LAPSE + i]) * taken + 0.5 * z[LAPSE + i]
            mixed = max(mixed, TINY)
            product = z[PRODUCT + i] / (mixed if held else 1.0)
            large = product > 1.0 / TINY
            z[PRODUCT + i] = product * TINY if large else product
            z[LINEAR + i] += LOG_TINY if large else 0.0
            push = given * (1.0 - z[LAPSE + i]) * taken * missed / mixed
            z[SCORE_LAPSE + i] += given * (0.5 - taken) / mixed
        z[SCORE_ALPHA_2 + i] += push * (slope - (slope_0 if one else slope_1))
        z[SCORE_BETA_2 + i] += push * lead

        # The chosen shuttle's value steps toward that of the alien, and on along the
        # trace; the alien's value steps toward the reward.
        surprise = reward[t, i] - value
        alpha_1 = z[ALPHA_1 + i]
        trace = z[TRACE + i]
        pending = z[PENDING + i]
        cached_0 = z[CACHED_0 + i]
        cached_1 = z[CACHED_1 + i]
        rate_0 = z[RATE_0 + i]
        rate_1 = z[RATE_1 + i]
        deep_0 = z[DEEP_0 + i]
        deep_1 = z[DEEP_1 + i]
        trace_0 = z[TRACE_0 + i]
        trace_1 = z[TRACE_1 + i]
        upper = pending > 0.0
        cached = cached_1 if upper else cached_0
        rate = rate_1 if upper else rate_0
        deep = deep_1 if upper else deep_0
        traced = trace_1 if upper else trace_0
        step = value - cached + trace * surprise
        cached += alpha_1 * step
        rate += step - alpha_1 * rate
        deep += alpha_1 * ((1.0 - trace) * slope - deep)
        traced += alpha_1 * (surprise - traced)
        moved = given * pending
        hit_0 = moved < 0.0
        hit_1 = moved > 0.0
        z[CACHED_0 + i] = cached if hit_0 else cached_0
        z[CACHED_1 + i] = cached if hit_1 else cached_1
        z[RATE_0 + i] = rate if hit_0 else rate_0
        z[RATE_1 + i] = rate if hit_1 else rate_1
        z[DEEP_0 + i] = deep if hit_0 else deep_0
        z[DEEP_1 + i] = deep if hit_1 else deep_1
        z[TRACE_0 + i] = traced if hit_0 else trace_0
        z[TRACE_1 + i] = traced if hit_1 else trace_1
        z[PENDING + i] = 0.0 if held else pending

        alpha_2 = z[ALPHA_2 + i]
        value += alpha_2 * surprise
        slope += surprise - alpha_2 * slope
        met = given * (2.0 * state[t, i] + a + 1.0)  # 1 to 4 for the alien, or 0
        z[VALUE_00 + i] = value if met == 1.0 else value_00
        z[VALUE_01 + i] = value if met == 2.0 else value_01
        z[VALUE_10 + i] = value if met == 3.0 else value_10
        z[VALUE_11 + i] = value if met == 4.0 else value_11
        z[SLOPE_00 + i] = slope if met == 1.0 else slope_00
        z[SLOPE_01 + i] = slope if met == 2.0 else slope_01
        z[SLOPE_10 + i] = slope if met == 3.0 else slope_10
        z[SLOPE_11 + i] = slope if met == 4.0 else slope_11


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_likelihood(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, stage, transition, state, action, reward
):
    """Log-likelihood of each row of theta, with its gradient carried forward trial by trial.

    The stages of a place are usually the same in all lanes; where they are not, because a second
    stage fell away somewhere, both are gone through. Which of them a lane has, and what was
    chosen, enters as factors 0 and 1 and as selections, so that every lane does the same work.
    The log is taken once per 512 trials, of the product of the 1 + e**-|x|, each between 1 and 2.
    """
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 7 if lapse is None else 8))
    z = np.empty(N_ROWS * LANES)
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            for k in range(7):
                z[k * LANES + i] = theta[q, k]
            if lapse is not None:
                z[LAPSE + i] = lapse[q]
        z[VALUE_00 : CACHED_1 + LANES] = 0.5
        z[SLOPE_00:] = 0.0
        z[PRODUCT : PRODUCT + LANES] = 1.0

        for t in range(start[block], start[block + 1]):
            if (t - start[block]) % 512 == 511:
                for i in range(LANES):
                    z[LINEAR + i] -= log(z[PRODUCT + i])
                    z[PRODUCT + i] = 1.0
            firsts, seconds = 0, 0
            for i in range(LANES):
                firsts += stage[t, i] == 0.0
                seconds += stage[t, i] == 1.0

            if firsts:
                _first_stage(z, t, lapse, stage, transition, action)
            if seconds:
                _second_stage(z, t, lapse, stage, state, action, reward)

        for i in range(LANES):
            q = row[block, i]
            beta_1, weight = z[BETA_1 + i], z[WEIGHT + i]
            plan, cache = z[SCORE_PLAN + i], z[SCORE_CACHE + i]
            total[q] += z[LINEAR + i] - log(z[PRODUCT + i])
            gradient[q, 0] += beta_1 * (1.0 - weight) * z[SCORE_ALPHA_1 + i]
            gradient[q, 1] += beta_1 * z[SCORE_DEEP + i] + z[BETA_2 + i] * z[SCORE_ALPHA_2 + i]
            gradient[q, 2] += beta_1 * (1.0 - weight) * z[SCORE_TRACE + i]
            gradient[q, 3] += weight * plan + (1.0 - weight) * cache
            gradient[q, 4] += z[SCORE_BETA_2 + i]
            gradient[q, 5] += beta_1 * (plan - cache)
            gradient[q, 6] += z[SCORE_STAY + i]
            if lapse is not None:
                gradient[q, 7] += z[SCORE_LAPSE + i]
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def simulate(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, stage, transition, arrives, gems
):
    """Play the sequences; gems[t, 2 s + a, i] is what alien a of planet s would pay.

    Lanes that do not have the stage of a place do the same work with factors 0.
    """
    action = np.empty((start[-1], LANES))
    z = np.empty(N_ROWS * LANES)
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            for k in range(7):
                z[k * LANES + i] = theta[q, k]
            z[LAPSE + i] = 0.0 if lapse is None else lapse[q]
        z[VALUE_00 : CACHED_1 + LANES] = 0.5
        z[LAST:] = 0.0
        for t in range(start[block], start[block + 1]):
            firsts, seconds = 0, 0
            for i in range(LANES):
                firsts += stage[t, i] == 0.0
                seconds += stage[t, i] == 1.0
                action[t, i] = -1.0

            if firsts:
                for i in range(LANES):
                    held = stage[t, i] == 0.0
                    more = 2.0 * transition[t, i] - 1.0
                    plan = more * (
                        max(z[VALUE_10 + i], z[VALUE_11 + i])
                        - max(z[VALUE_00 + i], z[VALUE_01 + i])
                    )
                    cache = z[CACHED_1 + i] - z[CACHED_0 + i]
                    weight = z[WEIGHT + i]
                    lead = weight * plan + (1.0 - weight) * cache
                    x = z[BETA_1 + i] * lead + z[STAY + i] * z[LAST + i]
                    e = exp_of_negative(-abs(x))
                    p_0 = (e if x > 0.0 else 1.0) / (1.0 + e)
                    p_0 = (1.0 - z[LAPSE + i]) * p_0 + 0.5 * z[LAPSE + i]
                    one = 0.0 if uniforms[t, i] < p_0 else 1.0
                    action[t, i] = one if held else action[t, i]
                    z[LAST + i] = 2.0 * one - 1.0 if held else z[LAST + i]

            if seconds:
                for i in range(LANES):
                    held = stage[t, i] == 1.0
                    last = z[LAST + i]
                    value_00 = z[VALUE_00 + i]
                    value_01 = z[VALUE_01 + i]
                    value_10 = z[VALUE_10 + i]
                    value_11 = z[VALUE_11 + i]
                    reached = 1.0 if arrives[t, i] > 0.0 else -1.0
                    far = last * reached > 0.0
                    value_0 = value_10 if far else value_00
                    value_1 = value_11 if far else value_01
                    x = z[BETA_2 + i] * (value_1 - value_0)
                    e = exp_of_negative(-abs(x))
                    p_0 = (e if x > 0.0 else 1.0) / (1.0 + e)
                    p_0 = (1.0 - z[LAPSE + i]) * p_0 + 0.5 * z[LAPSE + i]
                    one = 0.0 if uniforms[t, i] < p_0 else 1.0
                    action[t, i] = one if held else action[t, i]
                    paid_0 = gems[t, 2, i] if far else gems[t, 0, i]
                    paid_1 = gems[t, 3, i] if far else gems[t, 1, i]
                    value = value_1 if one > 0.0 else value_0
                    surprise = (paid_1 if one > 0.0 else paid_0) - value
                    cached_0 = z[CACHED_0 + i]
                    cached_1 = z[CACHED_1 + i]
                    cached = cached_1 if last > 0.0 else cached_0
                    cached += z[ALPHA_1 + i] * (value - cached + z[TRACE + i] * surprise)
                    count = 1.0 if held else 0.0
                    z[CACHED_0 + i] = cached if count * last < 0.0 else cached_0
                    z[CACHED_1 + i] = cached if count * last > 0.0 else cached_1
                    value += z[ALPHA_2 + i] * surprise
                    met = count * ((2.0 if far else 0.0) + one + 1.0)
                    z[VALUE_00 + i] = value if met == 1.0 else value_00
                    z[VALUE_01 + i] = value if met == 2.0 else value_01
                    z[VALUE_10 + i] = value if met == 3.0 else value_10
                    z[VALUE_11 + i] = value if met == 4.0 else value_11
    return action


# For each parameter of the hybrid the position of the member's own; where it is held, -1 - value.
MODEL_FREE = np.array([0, 1, 2, 3, 4, -1, 5])
MODEL_BASED = np.array([-1, 0, -1, 1, 2, -2, 3])
REDUCED = np.array([0, 0, -2, 1, 1, 2, 3])


@njit(cache=True, nogil=True, error_model="numpy")
def _widen(theta, column):  # type: ignore[no-untyped-def]
    """Write a member's parameters as those of the hybrid."""
    wide = np.empty((len(theta), 7))
    for k in range(7):
        for q in range(len(theta)):
            wide[q, k] = theta[q, column[k]] if column[k] >= 0 else -1.0 - column[k]
    return wide


@njit(cache=True, nogil=True, error_model="numpy")
def _narrow(gradient, column, n):  # type: ignore[no-untyped-def]
    """Gather the hybrid's gradient for a member's n parameters; a lapse rate stays last."""
    narrow = np.zeros((len(gradient), n + gradient.shape[1] - 7))
    for q in range(len(gradient)):
        for k in range(7):
            if column[k] >= 0:
                narrow[q, column[k]] += gradient[q, k]
        for k in range(7, gradient.shape[1]):
            narrow[q, n + k - 7] = gradient[q, k]
    return narrow


def likelihood(column: NDArray[np.int64]) -> Any:
    """Make the kernel of a member whose parameters stand in these columns of the hybrid's."""

    @njit(cache=True, nogil=True, error_model="numpy")
    def of_member(theta, lapse, *trials):  # type: ignore[no-untyped-def]
        total, gradient = log_likelihood(_widen(theta, column), lapse, *trials)
        return total, _narrow(gradient, column, theta.shape[1])

    return of_member


def simulation(column: NDArray[np.int64]) -> Any:
    """Make what simulates a member, in Python: another compilation would gain nothing."""

    def of_member(theta: Array, lapse: Array | None, *session: Any) -> Any:
        return simulate(_widen(theta, column), lapse, *session)

    return of_member


def _rate(name: str, description: str) -> Parameter:
    return Parameter(
        name, UNIT, mean=0.0, sd=1.0, description=description, source="Daw et al. 2011"
    )


def _temperature(name: str, choices: str) -> Parameter:
    return Parameter(
        name,
        POSITIVE,
        mean=1.3,
        sd=0.6,
        description=f"inverse temperature of {choices}",
        source="Daw et al. 2011, whose medians are 5.2 and 3.7",
    )


ALPHA_1_PARAMETER = _rate("alpha_1", "learning rate of the first stage's cached values")
ALPHA_2_PARAMETER = _rate("alpha_2", "learning rate of the second stage's values")
LAMBDA_PARAMETER = _rate(
    "lambda_", "share of the second stage's surprise that the first learns from"
)
BETA_1_PARAMETER = _temperature("beta_1", "the first stage")
BETA_2_PARAMETER = _temperature("beta_2", "the second stage")
W_PARAMETER = _rate("w", "share of planning, as against caching, in the first stage's values")
PI_PARAMETER = Parameter(
    "pi",
    IDENTITY,
    mean=0.0,
    sd=0.5,
    description="perseveration: log-odds added to the last choice of the first stage",
    source="Lau and Glimcher 2005; Daw et al. 2011",
)


class TwoStepHybrid(Agent):
    """First choices follow planned and cached values, mixed; second ones the aliens' values.

    All values are 0.5 at first. With planet s reached by shuttle a, alien b chosen there and
    reward r, the day ends with

    d_1 = Q2[s, b] - Q1[a],  d_2 = r - Q2[s, b],
    Q1[a] += alpha_1 (d_1 + lambda d_2),  Q2[s, b] += alpha_2 d_2.

    The plan knows the probability p of a common transition (the column "transition"): QP[a] =
    p max Q2[a] + (1 - p) max Q2[1 - a]. P(a) is softmax(beta_1 (w QP + (1 - w) Q1) + pi [a was
    the last first choice]), and P(b) is softmax(beta_2 Q2[s]).

    All seven are recovered from sessions of 2,000 days; of 1,000, all but alpha_1 and lambda;
    of 20, none is. As values cross, the best alien changes: the likelihood has kinks in alpha_2.
    """

    name = "two_step_hybrid"
    summary = "plans and caches: the seven-parameter mixture for the two-step task"
    source = "Daw, Gershman, Seymour, Dayan and Dolan 2011"
    n_actions = 2
    columns = ("stage", "transition", "state", "action", "reward")
    design = ("stage", "transition", "arrives", "gems")
    separate = ()
    parameters = Parameters(
        ALPHA_1_PARAMETER,
        ALPHA_2_PARAMETER,
        LAMBDA_PARAMETER,
        BETA_1_PARAMETER,
        BETA_2_PARAMETER,
        W_PARAMETER,
        PI_PARAMETER,
    )
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    def reset(self) -> None:
        """Forget everything."""
        self.values = [[0.5, 0.5], [0.5, 0.5]]
        self.cached = [0.5, 0.5]
        self.last: int | None = None
        self.pending: int | None = None

    def action_probabilities(self, observation: Observation) -> Array:
        """Softmax over the shuttles' mixed values, or over the values of the planet's aliens."""
        _, _, _, beta_1, beta_2, w, pi = self._seven()
        if observation["stage"]:
            value_0, value_1 = self.values[int(observation["state"])]
            x = beta_2 * (value_1 - value_0)
        else:
            more = 2.0 * observation["transition"] - 1.0
            plan = more * (max(self.values[1]) - max(self.values[0]))
            cache = self.cached[1] - self.cached[0]
            stay = 0.0 if self.last is None else (pi if self.last == 1 else -pi)
            x = beta_1 * (w * plan + (1.0 - w) * cache) + stay
        e = exp(-abs(x))
        p = (1.0 if x > 0.0 else e) / (1.0 + e)
        return np.array([1.0 - p, p])

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Remember the shuttle; after the deal, step all values of the day."""
        if action < 0:
            return
        if not observation["stage"]:
            self.last = self.pending = action
            return
        alpha_1, alpha_2, trace, _, _, _, _ = self._seven()
        values = self.values[int(observation["state"])]
        surprise = reward - values[action]
        if self.pending is not None:
            step = values[action] - self.cached[self.pending] + trace * surprise
            self.cached[self.pending] += alpha_1 * step
            self.pending = None
        values[action] += alpha_2 * surprise

    def _seven(self) -> tuple[float, float, float, float, float, float, float]:
        alpha_1, alpha_2, trace, beta_1, beta_2, w, pi = self.theta.tolist()
        return alpha_1, alpha_2, trace, beta_1, beta_2, w, pi


class TwoStepModelFree(TwoStepHybrid):
    """The hybrid that plans nothing, w = 0: first choices follow cached values alone."""

    name = "two_step_model_free"
    summary = "caches and never plans: the hybrid with w = 0"
    parameters = Parameters(
        ALPHA_1_PARAMETER,
        ALPHA_2_PARAMETER,
        LAMBDA_PARAMETER,
        BETA_1_PARAMETER,
        BETA_2_PARAMETER,
        PI_PARAMETER,
    )
    log_likelihood = staticmethod(likelihood(MODEL_FREE))
    simulate = staticmethod(simulation(MODEL_FREE))

    def _seven(self) -> tuple[float, float, float, float, float, float, float]:
        alpha_1, alpha_2, trace, beta_1, beta_2, pi = self.theta.tolist()
        return alpha_1, alpha_2, trace, beta_1, beta_2, 0.0, pi


class TwoStepModelBased(TwoStepHybrid):
    """The hybrid that only plans, w = 1: alpha_1 and lambda have no part in it."""

    name = "two_step_model_based"
    summary = "plans and never caches: the hybrid with w = 1"
    parameters = Parameters(ALPHA_2_PARAMETER, BETA_1_PARAMETER, BETA_2_PARAMETER, PI_PARAMETER)
    log_likelihood = staticmethod(likelihood(MODEL_BASED))
    simulate = staticmethod(simulation(MODEL_BASED))

    def _seven(self) -> tuple[float, float, float, float, float, float, float]:
        alpha_2, beta_1, beta_2, pi = self.theta.tolist()
        return 0.0, alpha_2, 0.0, beta_1, beta_2, 1.0, pi


class TwoStepReduced(TwoStepHybrid):
    """The hybrid with one learning rate, one inverse temperature and lambda = 1.

    All four are recovered from single sessions of 300 days, all but w of 100; of 20 days, none.
    """

    name = "two_step_reduced"
    summary = "the hybrid with four parameters: one alpha, one beta, lambda = 1"
    parameters = Parameters(
        _rate("alpha", "learning rate of all values"),
        _temperature("beta", "both stages"),
        W_PARAMETER,
        PI_PARAMETER,
    )
    log_likelihood = staticmethod(likelihood(REDUCED))
    simulate = staticmethod(simulation(REDUCED))

    def _seven(self) -> tuple[float, float, float, float, float, float, float]:
        alpha, beta, w, pi = self.theta.tolist()
        return alpha, alpha, 1.0, beta, beta, w, pi
