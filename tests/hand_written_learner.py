"""The Rescorla-Wagner learners with kernels written by hand: the reference of generated ones."""

from __future__ import annotations

from math import exp, log

import numpy as np
from numba import njit

from knownminds.agents.agent import Agent
from knownminds.agents.exponential import exp_of_negative
from knownminds.agents.parameters import IDENTITY, POSITIVE, UNIT, Array, Parameter, Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py: the number of sequences a kernel plays side by side

# What a kernel carries along the trials, one row of LANES numbers each, all in one flat buffer:
# only then can the compiler prove that rows do not overlap, and turn the loop over lanes into
# vector instructions. RISE and FALL are the derivatives of a value with respect to the rates
# for positive and negative surprises.
ALPHA_POSITIVE, ALPHA_NEGATIVE, BETA, KAPPA, LAPSE = (k * LANES for k in range(5))
VALUE_0, VALUE_1, RISE_0, RISE_1, FALL_0, FALL_1, LAST = (k * LANES for k in range(5, 12))
LINEAR, PRODUCT = (k * LANES for k in range(12, 14))
SCORE_POSITIVE, SCORE_NEGATIVE, SCORE_BETA, SCORE_KAPPA, SCORE_LAPSE = (
    k * LANES for k in range(14, 19)
)
N_ROWS = 19

TINY = 1e-150  # a product of probabilities is rescaled below this, and each counts at least this
LOG_TINY = log(TINY)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_likelihood(theta, lapse, n_actions, row, start, action, reward):  # type: ignore[no-untyped-def]
    """Log-likelihood of each row of theta, with its gradient carried forward trial by trial.

    What was chosen enters as factors 0 and 1, so that every lane does the same work. The log is
    taken once per 512 trials, of the product of the 1 + e**-|x|, each between 1 and 2.
    """
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 4 if lapse is None else 5))
    z = np.empty(N_ROWS * LANES)
    for block in range(len(row)):
        z[LAST:] = 0.0
        for i in range(LANES):
            q = row[block, i]
            z[ALPHA_POSITIVE + i] = theta[q, 0]
            z[ALPHA_NEGATIVE + i] = theta[q, 1]
            z[BETA + i] = theta[q, 2]
            z[KAPPA + i] = theta[q, 3]
            if lapse is not None:
                z[LAPSE + i] = lapse[q]
            z[VALUE_0 + i] = 0.5
            z[VALUE_1 + i] = 0.5
            z[PRODUCT + i] = 1.0
        z[RISE_0 : LAST + LANES] = 0.0

        for t in range(start[block], start[block + 1]):
            if (t - start[block]) % 512 == 511:
                for i in range(LANES):
                    z[LINEAR + i] -= log(z[PRODUCT + i])
                    z[PRODUCT + i] = 1.0
            for i in range(LANES):
                a = action[t, i]
                given = 1.0 if a >= 0.0 else 0.0
                one = a * given  # 1 for action 1, otherwise 0; `zero` likewise for action 0
                zero = given - one
                side = one - zero
                last = z[LAST + i]
                value_0 = z[VALUE_0 + i]
                value_1 = z[VALUE_1 + i]
                rise_0 = z[RISE_0 + i]
                rise_1 = z[RISE_1 + i]
                fall_0 = z[FALL_0 + i]
                fall_1 = z[FALL_1 + i]

                lead = value_1 - value_0
                x = side * (z[BETA + i] * lead + z[KAPPA + i] * last)
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
                z[SCORE_POSITIVE + i] += push * (rise_1 - rise_0)
                z[SCORE_NEGATIVE + i] += push * (fall_1 - fall_0)
                z[SCORE_BETA + i] += push * lead
                z[SCORE_KAPPA + i] += push * last

                surprise = reward[t, i] - (value_1 if a == 1.0 else value_0)
                alpha_positive = z[ALPHA_POSITIVE + i]
                alpha_negative = z[ALPHA_NEGATIVE + i]
                rate = alpha_positive if surprise > 0.0 else alpha_negative
                rise = max(surprise, 0.0) - rate * (rise_1 if a == 1.0 else rise_0)
                fall = min(surprise, 0.0) - rate * (fall_1 if a == 1.0 else fall_0)
                z[VALUE_0 + i] = value_0 + rate * surprise if a == 0.0 else value_0
                z[VALUE_1 + i] = value_1 + rate * surprise if a == 1.0 else value_1
                z[RISE_0 + i] = rise_0 + zero * rise
                z[RISE_1 + i] = rise_1 + one * rise
                z[FALL_0 + i] = fall_0 + zero * fall
                z[FALL_1 + i] = fall_1 + one * fall
                z[LAST + i] = last + (side - last) * given

        for i in range(LANES):
            q = row[block, i]
            total[q] += z[LINEAR + i] - log(z[PRODUCT + i])
            gradient[q, 0] += z[SCORE_POSITIVE + i] * z[BETA + i]
            gradient[q, 1] += z[SCORE_NEGATIVE + i] * z[BETA + i]
            gradient[q, 2] += z[SCORE_BETA + i]
            gradient[q, 3] += z[SCORE_KAPPA + i]
            if lapse is not None:
                gradient[q, 4] += z[SCORE_LAPSE + i]
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def simulate(theta, lapse, n_actions, row, start, uniforms, payoffs):  # type: ignore[no-untyped-def]
    """Play the sequences; payoffs[t, a, i] is what action a would pay in trial t of sequence i."""
    action = np.empty((start[-1], LANES))
    z = np.empty(N_ROWS * LANES)
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            z[ALPHA_POSITIVE + i] = theta[q, 0]
            z[ALPHA_NEGATIVE + i] = theta[q, 1]
            z[BETA + i] = theta[q, 2]
            z[KAPPA + i] = theta[q, 3]
            z[LAPSE + i] = 0.0 if lapse is None else lapse[q]
            z[VALUE_0 + i] = 0.5
            z[VALUE_1 + i] = 0.5
            z[LAST + i] = 0.0
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                value_0 = z[VALUE_0 + i]
                value_1 = z[VALUE_1 + i]
                x = z[BETA + i] * (value_1 - value_0) + z[KAPPA + i] * z[LAST + i]
                e = exp_of_negative(-abs(x))
                p_0 = (e if x > 0.0 else 1.0) / (1.0 + e)
                p_0 = (1.0 - z[LAPSE + i]) * p_0 + 0.5 * z[LAPSE + i]
                one = 0.0 if uniforms[t, i] < p_0 else 1.0
                zero = 1.0 - one
                paid = zero * payoffs[t, 0, i] + one * payoffs[t, 1, i]
                surprise = paid - (zero * value_0 + one * value_1)
                alpha_positive = z[ALPHA_POSITIVE + i]
                alpha_negative = z[ALPHA_NEGATIVE + i]
                rate = alpha_positive if surprise > 0.0 else alpha_negative
                z[VALUE_0 + i] = value_0 + zero * rate * surprise
                z[VALUE_1 + i] = value_1 + one * rate * surprise
                z[LAST + i] = one - zero
                action[t, i] = one
    return action


@njit(cache=True, nogil=True, error_model="numpy")
def _two_rates(theta):  # type: ignore[no-untyped-def]
    wide = np.empty((len(theta), 4))
    for n in range(len(theta)):  # an assignment of slices takes seconds to compile
        wide[n, 0] = theta[n, 0]
        for k in range(3):
            wide[n, 1 + k] = theta[n, k]
    return wide


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood_one_rate(theta, lapse, n_actions, row, start, action, reward):  # type: ignore[no-untyped-def]
    """Return the same with alpha_positive = alpha_negative = theta[:, 0]."""
    total, gradient = log_likelihood(
        _two_rates(theta), lapse, n_actions, row, start, action, reward
    )
    for n in range(len(theta)):
        gradient[n, 1] += gradient[n, 0]
    return total, gradient[:, 1:].copy()


@njit(cache=True, nogil=True, error_model="numpy")
def simulate_one_rate(theta, lapse, n_actions, row, start, uniforms, payoffs):  # type: ignore[no-untyped-def]
    """Play with alpha_positive = alpha_negative = theta[:, 0]."""
    return simulate(_two_rates(theta), lapse, n_actions, row, start, uniforms, payoffs)


BETA_PARAMETER = Parameter(
    "beta",
    POSITIVE,
    mean=1.0,
    sd=0.7,
    description="inverse temperature: how strictly choices follow the learned values",
)
KAPPA_PARAMETER = Parameter(
    "kappa",
    IDENTITY,
    mean=0.0,
    sd=0.5,
    description="perseveration: log-odds added to the last choice in the same context",
    source="Lau and Glimcher 2005; Katahira 2018",
)


class RescorlaWagnerDual(Agent):
    """Values step toward rewards, at a rate that depends on the sign of the surprise.

    In each context, with V = 0.5 for both actions at first and r the reward of action a,
    V[a] += alpha_positive (r - V[a]) where r > V[a], and alpha_negative (r - V[a]) otherwise;
    P(a) is softmax(beta V + kappa [a was the last choice in this context]).
    """

    name = "rescorla_wagner_dual"
    summary = "Rescorla-Wagner learner with separate rates for good and for bad surprises"
    source = "Lefebvre, Lebreton, Meyniel, Bourgeois-Gironde and Palminteri 2017"
    n_actions = 2
    parameters = Parameters(
        Parameter(
            "alpha_positive",
            UNIT,
            mean=-0.5,
            sd=1.0,
            description="learning rate where the reward exceeds the value",
            source="Lefebvre et al. 2017",
        ),
        Parameter(
            "alpha_negative",
            UNIT,
            mean=-0.5,
            sd=1.0,
            description="learning rate where the reward falls short of the value",
            source="Lefebvre et al. 2017",
        ),
        BETA_PARAMETER,
        KAPPA_PARAMETER,
    )
    log_likelihood = staticmethod(log_likelihood)
    simulate = staticmethod(simulate)

    def reset(self) -> None:
        """Forget everything."""
        self.values: dict[int, list[float]] = {}
        self.last: dict[int, int] = {}

    def action_probabilities(self, observation: Observation) -> Array:
        """Softmax over the values of the present context."""
        _, _, beta, kappa = self._four()
        context = int(observation.get("context", 0))
        value_0, value_1 = self.values.get(context, (0.5, 0.5))
        last = self.last.get(context)
        stay = 0.0 if last is None else (kappa if last == 1 else -kappa)
        p = 1.0 / (1.0 + exp(-(beta * (value_1 - value_0) + stay)))
        return np.array([1.0 - p, p])

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Step the chosen action's value toward the reward."""
        alpha_positive, alpha_negative, _, _ = self._four()
        context = int(observation.get("context", 0))
        values = self.values.setdefault(context, [0.5, 0.5])
        surprise = reward - values[action]
        values[action] += (alpha_positive if surprise > 0 else alpha_negative) * surprise
        self.last[context] = action

    def _four(self) -> tuple[float, float, float, float]:
        alpha_positive, alpha_negative, beta, kappa = self.theta.tolist()
        return alpha_positive, alpha_negative, beta, kappa


class RescorlaWagner(RescorlaWagnerDual):
    """Values step toward rewards at one learning rate.

    In each context, with V = 0.5 for both actions at first and r the reward of action a,
    V[a] += alpha (r - V[a]); P(a) is softmax(beta V + kappa [a was the last choice in this
    context]).
    """

    name = "rescorla_wagner"
    summary = "Rescorla-Wagner learner with one learning rate"
    source = "Rescorla and Wagner 1972; Sutton and Barto 2018, chapter 2"
    parameters = Parameters(
        Parameter(
            "alpha",
            UNIT,
            mean=-0.5,
            sd=1.0,
            description="learning rate: share of the surprise that enters the value",
            source="Rescorla and Wagner 1972",
        ),
        BETA_PARAMETER,
        KAPPA_PARAMETER,
    )
    log_likelihood = staticmethod(log_likelihood_one_rate)
    simulate = staticmethod(simulate_one_rate)

    def _four(self) -> tuple[float, float, float, float]:
        alpha, beta, kappa = self.theta.tolist()
        return alpha, alpha, beta, kappa
