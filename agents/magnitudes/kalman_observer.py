"""The Kalman observer: an estimate that follows the stimuli from trial to trial.

Its kernel is written by hand: printed from a definition it has the same values, but takes 1.24
times as long without lapses on the linear scale (5.4 against 4.4 ns a trial) and 1.33 with a gain,
.86 on the log scale, and .74 to .91 with lapses; and each of the eight models would have a kernel
of its own to compile (`python benchmarks/magnitude.py --once`).
"""

from __future__ import annotations

from functools import partial
from math import exp, log, pi
from typing import Any, ClassVar

import numpy as np
from numba import njit
from scipy.special import ndtri

from knownminds.agents.compiled import compiled
from knownminds.agents.exponential import log_of, log_share_below, mixed_with_lapse
from knownminds.agents.parameters import POSITIVE, Parameter, Parameters
from knownminds.environments.environment import Observation

from .magnitude_observer import MagnitudeObserver, centres, outputs, spread

LANES = 32  # as in sequences.py
EPSILON = 1e-3  # of the unit; added before a logarithm is taken
TINY = 1e-300  # whose logarithm and quantile are finite
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)

# What the kernel carries along the trials, one row of LANES numbers each, in one flat buffer (see
# rescorla_wagner.py): constants, estimate and variance with their derivatives, what a trial adds,
# and sums.
Q, GAIN, OFFSET, SHARP, EACH, UNIT, LOG_UNIT = (k * LANES for k in range(7))
M, M_Q, M_0, M_MU, P, P_Q, P_0 = (k * LANES for k in range(7, 14))
OFF, OWN, CURVE = (k * LANES for k in range(14, 17))
SUM, BY_Q, BY_0, BY_MU, BY_GAIN, BY_OFFSET, BY_SIGMA, BY_LAPSE = (k * LANES for k in range(17, 25))
N_ROWS = 25


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _begin(z, column, wide, row, response, window, ends):  # type: ignore[no-untyped-def]
    """Set the lanes of a block, between these ends, to what they believe before any trial."""
    z[:] = 0.0
    for i in range(LANES):
        k, n = row[i], 0
        for t in range(ends[0], ends[1]):
            if response[t, i] >= 0.0:  # of a missing trial nothing is known
                n = min(max(int(window[t, i]), 0), 2)
                break
        column[i] = 2 + n
        z[Q + i], z[P + i], z[M + i] = wide[k, 0], wide[k, 1], wide[k, column[i]]
        z[GAIN + i], z[OFFSET + i], z[SHARP + i] = wide[k, 5], wide[k, 6], 1.0 / wide[k, 7]
        z[EACH + i] = -HALF_LOG_2_PI - log(wide[k, 7])
        z[M_MU + i], z[P_0 + i] = 1.0, 1.0
        z[UNIT + i] = 1.0


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _gather(z, column, lapse, row, total, gradient):  # type: ignore[no-untyped-def]
    """Add what the lanes of a block have come to."""
    for i in range(LANES):
        k = row[i]
        steep = z[GAIN + i] * z[SHARP + i]
        total[k] += z[SUM + i]
        gradient[k, 0] += z[BY_Q + i] * steep
        gradient[k, 1] += z[BY_0 + i] * steep
        gradient[k, column[i]] += z[BY_MU + i] * steep
        gradient[k, 5] += z[BY_GAIN + i] * z[SHARP + i]
        gradient[k, 6] += z[BY_OFFSET + i] * z[SHARP + i]
        gradient[k, 7] += z[BY_SIGMA + i] * z[SHARP + i]
        if lapse is not None:
            gradient[k, 8] += z[BY_LAPSE + i]


@compiled(fastmath={"contract"})
def log_likelihood_of_eight(wide, log_scale, lapse, row, start, columns):  # type: ignore[no-untyped-def]
    """Log-likelihood and gradient for wide [N, 8]: q, P0, three means, gain, offset, sigma.

    With r = 1 the variance after a trial is the Kalman gain itself. Derivatives of estimate and
    variance are carried along beside them.
    """
    response, window, value, unit, ceiling = columns
    total = np.zeros(len(wide))
    gradient = np.zeros((len(wide), 8 if lapse is None else 9))
    z, column = np.zeros(N_ROWS * LANES), np.zeros(LANES, dtype=np.int64)
    for block in range(len(row)):
        _begin(z, column, wide, row[block], response, window, start[block : block + 2])
        for t in range(start[block], start[block + 1]):
            ends, moved = 0, 0
            for i in range(LANES):
                answer = response[t, i]
                given, beyond = answer >= 0.0, (answer <= 0.0) | (answer >= ceiling[t, i])
                ends += 1 if given & beyond else 0
                moved += 1 if given & (unit[t, i] != z[UNIT + i]) else 0
            if moved > 0:
                for i in range(LANES):
                    if response[t, i] >= 0.0:
                        z[UNIT + i], z[LOG_UNIT + i] = unit[t, i], log(unit[t, i])
            for i in range(LANES):
                given = response[t, i] >= 0.0
                scale = 1.0 / z[UNIT + i]
                x = value[t, i] * scale if given else 0.5
                y = response[t, i] * scale if given else 0.5
                slope = -z[LOG_UNIT + i]
                if log_scale:
                    x, y = log_of(max(x, 0.0) + EPSILON), log_of(y + EPSILON)
                    slope -= y
                before = z[P + i] + z[Q + i]
                rest = 1.0 / (before + 1.0)
                error = x - z[M + i]
                k = before * rest
                k_q = (z[P_Q + i] + 1.0) * rest * rest
                k_0 = z[P_0 + i] * rest * rest
                m = z[M + i] + k * error
                m_q = rest * z[M_Q + i] + k_q * error
                m_0 = rest * z[M_0 + i] + k_0 * error
                z[P + i] = k if given else z[P + i]
                z[P_Q + i] = k_q if given else z[P_Q + i]
                z[P_0 + i] = k_0 if given else z[P_0 + i]
                z[M + i] = m if given else z[M + i]
                z[M_Q + i] = m_q if given else z[M_Q + i]
                z[M_0 + i] = m_0 if given else z[M_0 + i]
                z[M_MU + i] = z[M_MU + i] * (rest if given else 1.0)
                u = (y - z[GAIN + i] * m - z[OFFSET + i]) * z[SHARP + i]
                z[OFF + i] = u if given else 0.0
                z[OWN + i] = z[EACH + i] - 0.5 * u * u + slope if given else 0.0
                z[CURVE + i] = u * u - 1.0 if given else 0.0
            if ends > 0 or lapse is not None:
                for i in range(LANES):
                    answer, top = response[t, i], ceiling[t, i]
                    if not answer >= 0.0:
                        continue
                    inside = 0.0 < answer < top
                    if not inside:
                        side, off = -1.0 if answer <= 0.0 else 1.0, z[OFF + i]
                        z[OWN + i], rate = log_share_below(-side * off)
                        z[OFF + i], z[CURVE + i] = side * rate, side * rate * off
                    if lapse is not None:
                        anywhere, share = 1.0 / top if inside else 0.0, lapse[row[block, i]]
                        z[OWN + i], weight, by = mixed_with_lapse(z[OWN + i], anywhere, share)
                        z[BY_LAPSE + i] += by
                        z[OFF + i] *= weight
                        z[CURVE + i] *= weight
            for i in range(LANES):
                u = z[OFF + i]
                z[SUM + i] += z[OWN + i]
                z[BY_Q + i] += u * z[M_Q + i]
                z[BY_0 + i] += u * z[M_0 + i]
                z[BY_MU + i] += u * z[M_MU + i]
                z[BY_GAIN + i] += u * z[M + i]
                z[BY_OFFSET + i] += u
                z[BY_SIGMA + i] += z[CURVE + i]
        _gather(z, column, lapse, row[block], total, gradient)
    return total, gradient


@compiled()
def widened(theta, means):  # type: ignore[no-untyped-def]
    """Bring theta to eight columns: `means` is 3 or 1; gain and offset are there or not."""
    columns, more = theta.shape[1], theta.shape[1] - means - 3
    wide = np.empty((len(theta), 8))
    for k in range(len(theta)):
        wide[k, 0], wide[k, 1], wide[k, 7] = theta[k, 0], theta[k, 1], theta[k, columns - 1]
        for n in range(3):
            wide[k, 2 + n] = theta[k, 2 + min(n, means - 1)]
        wide[k, 5] = theta[k, 2 + means] if more > 0 else 1.0
        wide[k, 6] = theta[k, 3 + means] if more > 1 else 0.0
    return wide


@compiled()
def narrowed(slope, columns, means):  # type: ignore[no-untyped-def]
    """Bring a gradient in eight columns (and the lapse rate) to those of theta."""
    more = columns - means - 3
    gradient = np.zeros((len(slope), columns + slope.shape[1] - 8))
    for k in range(len(slope)):
        gradient[k, 0], gradient[k, 1], gradient[k, columns - 1] = (
            slope[k, 0],
            slope[k, 1],
            slope[k, 7],
        )
        for n in range(3):
            gradient[k, 2 + min(n, means - 1)] += slope[k, 2 + n]
        if more > 0:
            gradient[k, 2 + means] = slope[k, 5]
        if more > 1:
            gradient[k, 3 + means] = slope[k, 6]
        if slope.shape[1] > 8:
            gradient[k, columns] = slope[k, 8]
    return gradient


def likelihood(means: int, log_scale: bool) -> Any:
    """Make the kernel of a model with 3 means, one for each window, or 1; on either scale.

    Gain and offset are where theta has them.
    """

    @compiled()
    def log_likelihood(theta, lapse, n_actions, row, start, *columns):  # type: ignore[no-untyped-def]
        wide = widened(theta, means)
        total, slope = log_likelihood_of_eight(wide, log_scale, lapse, row, start, columns)
        return total, narrowed(slope, theta.shape[1], means)

    return log_likelihood


@compiled(fastmath={"contract"})
def answers(wide, lapse, log_scale, row, start, uniforms, noise, window, value, unit, ceiling):  # type: ignore[no-untyped-def]
    """Answer for wide [N, 8]; the first uniform decides on a lapse, which gives the second."""
    response = np.empty((start[-1], LANES))
    q, m, p, gain, offset, sigma, lapses = np.empty((7, LANES))
    for block in range(len(row)):
        for i in range(LANES):
            k, n = row[block, i], 0
            if start[block + 1] > start[block]:
                n = min(max(int(window[start[block], i]), 0), 2)
            q[i], p[i], m[i] = wide[k, 0], wide[k, 1], wide[k, 2 + n]
            gain[i], offset[i], sigma[i] = wide[k, 5], wide[k, 6], wide[k, 7]
            lapses[i] = 0.0 if lapse is None else lapse[k]
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                x = value[t, i] / unit[t, i]
                if log_scale:
                    x = log_of(max(x, 0.0) + EPSILON)
                before = p[i] + q[i]
                p[i] = before / (before + 1.0)
                m[i] += p[i] * (x - m[i])
                response[t, i] = gain[i] * m[i] + offset[i] + sigma[i] * noise[t, i]
            for i in range(LANES):
                y = response[t, i]
                if log_scale:
                    y = exp(min(y, 700.0)) - EPSILON
                y = min(max(y * unit[t, i], 0.0), ceiling[t, i])
                lapsed = uniforms[t, 0, i] < lapses[i]
                response[t, i] = uniforms[t, 1, i] * ceiling[t, i] if lapsed else y
    return response


def simulate(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, window, value, unit, ceiling, means, log_scale
):
    """Answer with the estimate after each trial."""
    noise = ndtri(np.maximum(uniforms[:, 1], TINY))
    wide = widened(theta, means)
    return answers(
        wide, lapse, log_scale, row, start, uniforms, noise, window, value, unit, ceiling
    )


def _kalman(log_scale: bool = False, shared: bool = False, output: str = "none") -> Parameters:
    return Parameters(
        Parameter(
            "q_over_r",
            POSITIVE,
            mean=0.0,
            sd=1.0,
            description="variance by which the magnitude is taken to move between trials, over "
            "that of measurements",
            source="Petzschner and Glasauer 2011",
        ),
        Parameter(
            "p0_over_r",
            POSITIVE,
            mean=0.0,
            sd=1.0,
            description="variance of the belief at the beginning of a window, over that of "
            "measurements",
            source="Petzschner and Glasauer 2011",
        ),
        *centres(log_scale, shared, "belief at the beginning"),
        *outputs(log_scale, output),
        spread(log_scale),
    )


class KalmanObserver(MagnitudeObserver):
    """Follows the stimuli with a Kalman filter, which begins anew in each window.

    P <- P + q; K = P / (P + r); m <- m + K (x - m); P <- (1 - K) P; y ~ N(m, sigma), in fractions
    of the unit, from m = mu of the window and P = P0. Only q / r and P0 / r exist in the answers;
    noise of the measurements is part of sigma. With a gain g and an offset d the mean is g m + d.
    A trial without an answer is one the observer knows nothing of.
    """

    name = "kalman_observer"
    summary = "follows the stimuli with a Kalman filter that begins anew in each window"
    source = "Petzschner and Glasauer 2011"
    separate = ("window", "modality")
    remembers = True
    parameters = _kalman()
    shared: ClassVar[bool] = False
    log_likelihood = staticmethod(likelihood(3, log_scale=False))
    simulate = staticmethod(partial(simulate, means=3, log_scale=False))

    def reset(self) -> None:
        """Have no belief yet."""
        self.beliefs: dict[tuple[float, float], tuple[float, float]] = {}

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Take in the stimulus of a trial that was answered."""
        if observation.get("response", 0.0) is not None:
            self.beliefs[_place(observation)] = self._after(observation)

    def expected(self, observation: Observation) -> tuple[float, float]:
        """Return mean and standard deviation after this trial's stimulus."""
        own = self._own
        belief, _ = self._after(observation)
        return own.get("gain", 1.0) * belief + own.get("offset", 0.0), own["sigma"]

    @property
    def _own(self) -> dict[str, float]:
        return dict(zip(self.parameters.names, self.theta.tolist(), strict=True))

    def _after(self, observation: Observation) -> tuple[float, float]:
        """Return estimate and variance after this trial's stimulus."""
        own = self._own
        name = ("mu_short", "mu_medium", "mu_long")[int(observation["window"])]
        first = own[name if name in own else "mu_prior"], own["p0_over_r"]
        m, p = self.beliefs.get(_place(observation), first)
        p += own["q_over_r"]
        gain = p / (p + 1.0)
        x = self.scaled(float(observation["value"]), float(observation["unit"]))
        return m + gain * (x - m), gain


def _place(observation: Observation) -> tuple[float, float]:
    return observation["window"], observation.get("modality", 0)


class KalmanObserverLog(KalmanObserver):
    """Is a Kalman observer of logarithms: see `KalmanObserver`."""

    name = "kalman_observer_log"
    summary = "follows the stimuli with a Kalman filter on a log scale"
    log_scale = True
    parameters = _kalman(log_scale=True)
    log_likelihood = staticmethod(likelihood(3, log_scale=True))
    simulate = staticmethod(partial(simulate, means=3, log_scale=True))


class KalmanObserverGain(KalmanObserver):
    """Is a Kalman observer whose answers are its beliefs times a gain."""

    name = "kalman_observer_gain"
    summary = "follows the stimuli with a Kalman filter and scales its answers"
    parameters = _kalman(output="gain")


class KalmanObserverGainLog(KalmanObserverLog):
    """Is a Kalman observer of logarithms with a gain."""

    name = "kalman_observer_gain_log"
    summary = "the same on a log scale"
    parameters = _kalman(log_scale=True, output="gain")


class KalmanObserverAffine(KalmanObserver):
    """Is a Kalman observer with a gain and an offset."""

    name = "kalman_observer_affine"
    summary = "follows the stimuli with a Kalman filter, scales and shifts its answers"
    parameters = _kalman(output="affine")


class KalmanObserverAffineLog(KalmanObserverLog):
    """Is a Kalman observer of logarithms with a gain and an offset."""

    name = "kalman_observer_affine_log"
    summary = "the same on a log scale"
    parameters = _kalman(log_scale=True, output="affine")


class KalmanObserverShared(KalmanObserver):
    """Is a Kalman observer that begins all windows with one belief."""

    name = "kalman_observer_shared"
    summary = "follows the stimuli with a Kalman filter, from one belief in all windows"
    parameters = _kalman(shared=True)
    log_likelihood = staticmethod(likelihood(1, log_scale=False))
    simulate = staticmethod(partial(simulate, means=1, log_scale=False))


class KalmanObserverSharedLog(KalmanObserverLog):
    """Is a Kalman observer of logarithms that begins all windows with one belief."""

    name = "kalman_observer_shared_log"
    summary = "the same on a log scale"
    parameters = _kalman(log_scale=True, shared=True)
    log_likelihood = staticmethod(likelihood(1, log_scale=True))
    simulate = staticmethod(partial(simulate, means=1, log_scale=True))
