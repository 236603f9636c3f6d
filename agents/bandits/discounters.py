"""Discounters: a sum is worth less the longer it takes, by one of three curves."""

from __future__ import annotations

from math import exp, log
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from knownminds.agents.agent import Agent
from knownminds.agents.parameters import POSITIVE, UNIT, Array, Parameter, Parameters
from knownminds.environments.environment import Observation

LANES = 32  # as in sequences.py
LARGE = 1e200  # a product of numbers from 1 to 2 is put away when it exceeds this
TINY = 1e-300

# How a baseline of the questionnaire goes on, as in the environment: the position of the factor
# that is asked next, by the present one and the choice (-1 ends it), and of the factor that made
# the participant wait (-1 where that is still open).
NEXT_IF_SOONER = np.array([-1, -1, 3, 4, -1])
NEXT_IF_LATER = np.array([-1, 0, 1, -1, -1])
WAITS_IF_SOONER = np.array([1, 2, -1, -1, 4])
WAITS_IF_LATER = np.array([0, -1, -1, 3, 4])
START, LADDER = 2, 3


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def log_likelihood_of_four(  # type: ignore[no-untyped-def]
    theta, hyperbolic, lapse, row, start, action, sooner, soon, later, late
):
    """Log-likelihood and gradient for theta [N, 4]: present bias b, rate k, tau, eta.

    `soon` and `late` are the delays of the sums `sooner` and `later`. The logs are taken of
    products, now and then.
    """
    total = np.zeros(len(theta))
    gradient = np.zeros((len(theta), 4 if lapse is None else 5))
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            b, k, tau, eta = theta[q]
            share = 0.0 if lapse is None else lapse[q]
            linear, product = 0.0, 1.0
            score_b = score_k = score_x = score_eta = score_lapse = 0.0
            for t in range(start[block], start[block + 1]):
                if action[t, i] < 0.0:
                    continue
                scale = 1.0 / max(abs(sooner[t, i]), abs(later[t, i]))
                near, near_b, near_k = abs(sooner[t, i]) * scale, 0.0, 0.0
                if soon[t, i] > 0.0:
                    if hyperbolic:
                        d = 1.0 / (1.0 + k * soon[t, i])
                        near_k = -near * b * soon[t, i] * d * d
                    else:
                        d = exp(-k * soon[t, i])
                        near_k = -near * b * soon[t, i] * d
                    near_b = near * d
                    near = near_b * b
                far, far_b, far_k = abs(later[t, i]) * scale, 0.0, 0.0
                if late[t, i] > 0.0:
                    if hyperbolic:
                        d = 1.0 / (1.0 + k * late[t, i])
                        far_k = -far * b * late[t, i] * d * d
                    else:
                        d = exp(-k * late[t, i])
                        far_k = -far * b * late[t, i] * d
                    far_b = far * d
                    far = far_b * b
                loss = later[t, i] < 0.0
                sign = -eta if loss else 1.0
                side = 1.0 if action[t, i] > 0.5 else -1.0
                lead = side * (far - near) / tau
                x = sign * lead
                e = exp(-abs(x))
                missed = (e if x > 0.0 else 1.0) / (1.0 + e)  # probability of the other option
                push = missed  # derivative of the log probability in x
                if lapse is None:
                    linear += min(x, 0.0)
                    product *= 1.0 + e
                    if product > LARGE:
                        linear -= log(product)
                        product = 1.0
                else:
                    taken = (1.0 if x > 0.0 else e) / (1.0 + e)
                    mixed = max((1.0 - share) * taken + 0.5 * share, TINY)
                    linear += log(mixed)
                    push = (1.0 - share) * taken * missed / mixed
                    score_lapse += (0.5 - taken) / mixed
                slope = push * sign * side / tau
                score_b += slope * (far_b - near_b)
                score_k += slope * (far_k - near_k)
                score_x += push * x
                if loss:
                    score_eta -= push * lead
            total[q] += linear - log(product)
            gradient[q, 0] += score_b
            gradient[q, 1] += score_k
            gradient[q, 2] -= score_x / tau
            gradient[q, 3] += score_eta
            if lapse is not None:
                gradient[q, 4] += score_lapse
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def simulate_of_four(  # type: ignore[no-untyped-def]
    theta, hyperbolic, lapse, row, start, uniforms, sooner, soon, late, sums, ladder
):
    """Choose for theta [N, 4]; sums[t, f, i] is the later sum at factor f of trial t."""
    action = np.full((start[-1], LANES), -1.0)
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            b, k, tau, eta = theta[q]
            share = 0.0 if lapse is None else lapse[q]
            factor, waits_at, baseline = -1, -1, 0
            for t in range(start[block], start[block + 1]):
                step = ladder[t, i]
                if step == 0.0:
                    factor = START
                    baseline += 1
                elif step == LADDER:
                    # What builds on the first baseline, or on nothing.
                    factor = waits_at if baseline > 0 else 0
                if factor < 0:
                    continue
                later = sums[t, factor, i]
                scale = 1.0 / max(abs(sooner[t, i]), abs(later))
                near, far = abs(sooner[t, i]) * scale, abs(later) * scale
                if hyperbolic:
                    near = near * b / (1.0 + k * soon[t, i]) if soon[t, i] > 0.0 else near
                    far = far * b / (1.0 + k * late[t, i]) if late[t, i] > 0.0 else far
                else:
                    near = near * b * exp(-k * soon[t, i]) if soon[t, i] > 0.0 else near
                    far = far * b * exp(-k * late[t, i]) if late[t, i] > 0.0 else far
                x = (-eta if later < 0.0 else 1.0) * (far - near) / tau
                e = exp(-abs(x))
                p_sooner = (e if x > 0.0 else 1.0) / (1.0 + e)
                p_sooner = (1.0 - share) * p_sooner + 0.5 * share
                waits = uniforms[t, i] >= p_sooner
                action[t, i] = 1.0 if waits else 0.0
                if step < LADDER:
                    settled = WAITS_IF_LATER[factor] if waits else WAITS_IF_SOONER[factor]
                    if baseline == 1:
                        waits_at = settled
                    factor = NEXT_IF_LATER[factor] if waits else NEXT_IF_SOONER[factor]
    return action


@njit(cache=True, nogil=True, error_model="numpy")
def _four(theta):  # type: ignore[no-untyped-def]
    """Return k, tau, eta with no present bias before them."""
    wide = np.ones((len(theta), 4))
    wide[:, 1:] = theta
    return wide


@njit(cache=True, nogil=True, error_model="numpy")
def _four_of_quasi(theta):  # type: ignore[no-untyped-def]
    """Return beta, tau and eta with the rate k = -log(delta)."""
    wide = theta.copy()
    for q in range(len(theta)):
        wide[q, 1] = -log(max(theta[q, 1], TINY))
    return wide


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood_exponential(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, action, sooner, soon, later, late
):
    """Discount by exp(-k D)."""
    total, gradient = log_likelihood_of_four(
        _four(theta), False, lapse, row, start, action, sooner, soon, later, late
    )
    return total, gradient[:, 1:].copy()


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood_hyperbolic(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, action, sooner, soon, later, late
):
    """Discount by 1 / (1 + k D)."""
    total, gradient = log_likelihood_of_four(
        _four(theta), True, lapse, row, start, action, sooner, soon, later, late
    )
    return total, gradient[:, 1:].copy()


@njit(cache=True, nogil=True, error_model="numpy")
def log_likelihood_quasi(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, action, sooner, soon, later, late
):
    """Discount by beta delta**D."""
    total, gradient = log_likelihood_of_four(
        _four_of_quasi(theta), False, lapse, row, start, action, sooner, soon, later, late
    )
    for q in range(len(theta)):
        gradient[q, 1] /= -max(theta[q, 1], TINY)
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy")
def simulate_exponential(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, sooner, soon, late, sums, ladder
):
    """Choose with exp(-k D)."""
    return simulate_of_four(
        _four(theta), False, lapse, row, start, uniforms, sooner, soon, late, sums, ladder
    )


@njit(cache=True, nogil=True, error_model="numpy")
def simulate_hyperbolic(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, sooner, soon, late, sums, ladder
):
    """Choose with 1 / (1 + k D)."""
    return simulate_of_four(
        _four(theta), True, lapse, row, start, uniforms, sooner, soon, late, sums, ladder
    )


@njit(cache=True, nogil=True, error_model="numpy")
def simulate_quasi(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, sooner, soon, late, sums, ladder
):
    """Choose with beta delta**D."""
    return simulate_of_four(
        _four_of_quasi(theta), False, lapse, row, start, uniforms, sooner, soon, late, sums, ladder
    )


def _rate(source: str) -> Parameter:
    return Parameter(
        "k",
        POSITIVE,
        mean=-3.0,
        sd=1.0,
        description="discount rate per month",
        source=source,
    )


_CHOICE = (
    Parameter(
        "tau",
        POSITIVE,
        mean=-2.5,
        sd=0.5,
        description="temperature: how little choices follow the values, as a share of the sum",
    ),
    Parameter(
        "eta",
        POSITIVE,
        mean=0.0,
        sd=0.5,
        description="weight of losses, where gains have the weight 1",
        source="Tversky and Kahneman 1992",
    ),
)


class ExponentialDiscounter(Agent):
    """Values a sum A after D months at V = A exp(-k D) and chooses by softmax.

    Both sums of a choice are divided by the larger one, and losses are the mirror image of
    gains, with the weight eta: V(-A, D) = -eta V(A, D). P(later) is logistic((V(later) -
    V(sooner)) / tau). So the same impatience makes one take a gain now and put a loss off.
    """

    name = "exponential_discounter"
    summary = "discounts at a constant rate, V = A exp(-k D)"
    source = "Samuelson 1937"
    n_actions = 2
    parameters = Parameters(_rate("Samuelson 1937"), *_CHOICE)
    columns = ("action", "sooner_amount", "sooner_delay", "later_amount", "later_delay")
    design = ("sooner_amount", "sooner_delay", "later_delay", "later_amounts", "ladder")
    separate = ()
    remembers = False
    hyperbolic: ClassVar[bool] = False
    log_likelihood = staticmethod(log_likelihood_exponential)
    simulate = staticmethod(simulate_exponential)

    @classmethod
    def advantage_of_later(
        cls,
        theta: Array,
        sooner_amount: ArrayLike,
        sooner_delay: ArrayLike,
        later_amount: ArrayLike,
        later_delay: ArrayLike,
    ) -> Array:
        """Return the log-odds of the later option, [N, M], for theta[N, P] and M choices."""
        b, k, tau, eta = (column[:, None] for column in cls._by_four(theta).T)
        sooner, later = np.asarray(sooner_amount, float), np.asarray(later_amount, float)
        scale = np.maximum(np.abs(sooner), np.abs(later))

        def worth(amount: Array, delay: ArrayLike) -> Array:
            months = np.asarray(delay, float)
            curve = 1.0 / (1.0 + k * months) if cls.hyperbolic else np.exp(-k * months)
            value: Array = np.abs(amount) / scale * np.where(months > 0, b * curve, 1.0)
            return value

        sign = np.where(later < 0, -eta, 1.0)
        lead: Array = sign * (worth(later, later_delay) - worth(sooner, sooner_delay)) / tau
        return lead

    @classmethod
    def _by_four(cls, theta: Array) -> Array:
        """Return present bias, rate, tau and eta, [N, 4]."""
        wide: Array = _four(theta)
        return wide

    def reset(self) -> None:
        """Nothing to forget."""

    def action_probabilities(self, observation: Observation) -> Array:
        """Softmax over the two values."""
        x = self.advantage_of_later(
            self.theta[None], *(observation[name] for name in self.columns[1:])
        ).item()
        p = 1.0 / (1.0 + exp(-x)) if x > -700.0 else 0.0
        return np.array([1.0 - p, p])

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Nothing to learn."""


class HyperbolicDiscounter(ExponentialDiscounter):
    """Values a sum A after D months at V = A / (1 + k D) and chooses by softmax.

    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    name = "hyperbolic_discounter"
    summary = "discounts steeply at first and less later on, V = A / (1 + k D)"
    source = "Mazur 1987"
    parameters = Parameters(_rate("Mazur 1987"), *_CHOICE)
    hyperbolic = True
    log_likelihood = staticmethod(log_likelihood_hyperbolic)
    simulate = staticmethod(simulate_hyperbolic)


class QuasiHyperbolicDiscounter(ExponentialDiscounter):
    """Values a sum A after D > 0 months at V = A beta delta**D, and at A if it comes now.

    Sums are scaled, losses mirrored and choices made as in `ExponentialDiscounter`.
    """

    name = "quasi_hyperbolic_discounter"
    summary = "sets the present apart and discounts the future at a constant rate, V = A b d^D"
    source = "Laibson 1997"
    parameters = Parameters(
        Parameter(
            "beta",
            UNIT,
            mean=1.5,
            sd=1.0,
            description="share that remains of a sum that does not come now",
            source="Laibson 1997",
        ),
        Parameter(
            "delta",
            UNIT,
            mean=3.0,
            sd=1.0,
            description="share that remains after each month",
            source="Laibson 1997",
        ),
        *_CHOICE,
    )
    log_likelihood = staticmethod(log_likelihood_quasi)
    simulate = staticmethod(simulate_quasi)

    @classmethod
    def _by_four(cls, theta: Array) -> Array:
        wide: Array = _four_of_quasi(theta)
        return wide
