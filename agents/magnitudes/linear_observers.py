"""Observers whose answers lie along a straight line: linear, static Bayesian, noisy Bayesian.

Their kernels are written by hand, because they are no recursion over trials: all answers in a
window are merged into their moments, so that time does not grow with the number of answers.
"""

from __future__ import annotations

from functools import partial
from math import exp, log, pi, sqrt

import numpy as np
from scipy.special import ndtri

from knownminds.agents.agent import Integers, merging
from knownminds.agents.compiled import compiled
from knownminds.agents.exponential import log_share_below, mixed_with_lapse
from knownminds.agents.parameters import IDENTITY, POSITIVE, Array, Parameter, Parameters
from knownminds.environments.environment import Observation

from .magnitude_observer import MagnitudeObserver, centres, outputs, spread, weight_of_prior

LANES = 32  # as in sequences.py
EPSILON = 1e-3  # of the unit; added before a logarithm is taken
TINY = 1e-300  # whose logarithm and quantile are finite
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)


@compiled(fastmath={"contract"})
def log_likelihood_of_lines(lines, lapse, row, start, columns):  # type: ignore[no-untyped-def]
    """Log-likelihood and gradient for lines [N, 5]: slope, intercept of each window, sigma.

    A place holds `count` answers of a window by their means and centred moments, or a single one
    at an end (-1 lowest, 1 highest). `constant` is the logarithm of the scale's slope; `anywhere`
    the density of a lapse, with which only single answers can be mixed.
    """
    window, count, x, y, xx, xy, yy, constant, end, anywhere = columns
    total = np.zeros(len(lines))
    gradient = np.zeros((len(lines), 5 if lapse is None else 6))
    for block in range(len(row)):
        for i in range(LANES):
            q = row[block, i]
            slope, sigma = lines[q, 0], lines[q, 4]
            each = -HALF_LOG_2_PI - log(sigma)
            for t in range(start[block], start[block + 1]):
                n = count[t, i]
                if n < 0.5:
                    continue
                k = 1 + int(window[t, i])
                off = (y[t, i] - lines[q, k] - slope * x[t, i]) / sigma
                if end[t, i] == 0.0:
                    covered = (xy[t, i] - slope * xx[t, i]) / sigma
                    rest = yy[t, i] / sigma - slope * (xy[t, i] / sigma + covered)
                    squares = max(rest / sigma, 0.0) + n * off * off
                    own = n * each - 0.5 * squares + constant[t, i]
                    push = n * off / sigma
                    push_slope = push * x[t, i] + covered / sigma
                    push_sigma = (squares - n) / sigma
                else:
                    z = -end[t, i] * off
                    own, push = log_share_below(z)
                    push_sigma = -push * z / sigma
                    push *= end[t, i] / sigma
                    push_slope = push * x[t, i]
                if lapse is not None:
                    own, weight, by = mixed_with_lapse(own, anywhere[t, i], lapse[q])
                    gradient[q, 5] += by
                    push *= weight
                    push_slope *= weight
                    push_sigma *= weight
                total[q] += own
                gradient[q, 0] += push_slope
                gradient[q, k] += push
                gradient[q, 4] += push_sigma
    return total, gradient


@compiled(fastmath={"contract"})
def log_likelihood_linear(theta, lapse, n_actions, row, start, *columns):  # type: ignore[no-untyped-def]
    """Log-likelihood and gradient for w, b, sigma."""
    lines = np.empty((len(theta), 5))
    for q in range(len(theta)):
        lines[q, 0], lines[q, 4] = theta[q, 0], theta[q, 2]
        lines[q, 1] = lines[q, 2] = lines[q, 3] = theta[q, 1]
    total, slope = log_likelihood_of_lines(lines, lapse, row, start, columns)
    gradient = np.empty((len(theta), 3 if lapse is None else 4))
    for q in range(len(theta)):
        gradient[q, 0], gradient[q, 2] = slope[q, 0], slope[q, 4]
        gradient[q, 1] = slope[q, 1] + slope[q, 2] + slope[q, 3]
        if lapse is not None:
            gradient[q, 3] = slope[q, 5]
    return total, gradient


@compiled(fastmath={"contract"})
def log_likelihood_static(theta, priors, lapse, row, start, columns):  # type: ignore[no-untyped-def]
    """Log-likelihood and gradient for w_prior, the prior means, gain, offset (if any), sigma."""
    n = theta.shape[1]
    last, more = n - 1, n - priors - 2
    lines = np.empty((len(theta), 5))
    for q in range(len(theta)):
        w = theta[q, 0]
        gain = theta[q, 1 + priors] if more > 0 else 1.0
        offset = theta[q, 2 + priors] if more > 1 else 0.0
        lines[q, 0], lines[q, 4] = gain * (1.0 - w), theta[q, last]
        for k in range(3):
            lines[q, 1 + k] = gain * w * theta[q, 1 + min(k, priors - 1)] + offset
    total, slope = log_likelihood_of_lines(lines, lapse, row, start, columns)
    gradient = np.zeros((len(theta), n if lapse is None else n + 1))
    for q in range(len(theta)):
        w = theta[q, 0]
        gain = theta[q, 1 + priors] if more > 0 else 1.0
        gradient[q, 0] = -gain * slope[q, 0]
        gradient[q, last] = slope[q, 4]
        if more > 0:
            gradient[q, 1 + priors] = (1.0 - w) * slope[q, 0]
        for k in range(3):
            column = 1 + min(k, priors - 1)
            gradient[q, 0] += gain * theta[q, column] * slope[q, 1 + k]
            gradient[q, column] += gain * w * slope[q, 1 + k]
            if more > 0:
                gradient[q, 1 + priors] += w * theta[q, column] * slope[q, 1 + k]
            if more > 1:
                gradient[q, 2 + priors] += slope[q, 1 + k]
        if lapse is not None:
            gradient[q, n] = slope[q, 5]
    return total, gradient


@compiled(fastmath={"contract"})
def log_likelihood_by_window(theta, lapse, n_actions, row, start, *columns):  # type: ignore[no-untyped-def]
    """Static Bayes with a prior mean for each window; gain and offset where theta has them."""
    return log_likelihood_static(theta, 3, lapse, row, start, columns)


@compiled(fastmath={"contract"})
def log_likelihood_shared(theta, lapse, n_actions, row, start, *columns):  # type: ignore[no-untyped-def]
    """Static Bayes with one prior mean; gain and offset where theta has them."""
    return log_likelihood_static(theta, 1, lapse, row, start, columns)


@compiled(fastmath={"contract"})
def log_likelihood_noisy(theta, lapse, n_actions, row, start, *columns):  # type: ignore[no-untyped-def]
    """Log-likelihood and gradient for sigma_measure, sigma_prior, three means, sigma."""
    lines = np.empty((len(theta), 5))
    for q in range(len(theta)):
        measured, believed = theta[q, 0] ** 2, theta[q, 1] ** 2
        w = measured / (measured + believed)
        lines[q, 0] = 1.0 - w
        lines[q, 4] = sqrt(theta[q, 5] ** 2 + (1.0 - w) ** 2 * measured)
        for k in range(3):
            lines[q, 1 + k] = w * theta[q, 2 + k]
    total, slope = log_likelihood_of_lines(lines, lapse, row, start, columns)
    gradient = np.empty((len(theta), 6 if lapse is None else 7))
    for q in range(len(theta)):
        measured, believed = theta[q, 0] ** 2, theta[q, 1] ** 2
        both = measured + believed
        w = measured / both
        push = slope[q, 4] / lines[q, 4]
        push_w = -slope[q, 0] - push * (1.0 - w) * measured
        for k in range(3):
            gradient[q, 2 + k] = w * slope[q, 1 + k]
            push_w += theta[q, 2 + k] * slope[q, 1 + k]
        gradient[q, 0] = 2.0 * theta[q, 0] * believed / both / both * push_w
        gradient[q, 0] += push * (1.0 - w) ** 2 * theta[q, 0]
        gradient[q, 1] = -2.0 * theta[q, 1] * measured / both / both * push_w
        gradient[q, 5] = push * theta[q, 5]
        if lapse is not None:
            gradient[q, 6] = slope[q, 5]
    return total, gradient


@compiled(fastmath={"contract"})
def answers(lines, lapse, log_scale, row, start, uniforms, noise, window, value, unit, ceiling):  # type: ignore[no-untyped-def]
    """Answer along lines [N, 6]: slope, three intercepts, sigma, and the second noise's sigma.

    uniforms [places, n, LANES]: the first decides on a lapse, which gives the second as a share of
    the ceiling; noise [places, n - 1, LANES] are the quantiles of the others.
    """
    response = np.empty((start[-1], LANES))
    two = noise.shape[1] > 1
    for block in range(len(row)):
        for t in range(start[block], start[block + 1]):
            for i in range(LANES):
                q = row[block, i]
                k = 1 + min(max(int(window[t, i]), 0), 2)
                x = value[t, i] / unit[t, i]
                if log_scale:
                    x = log(max(x, 0.0) + EPSILON)
                y = lines[q, 0] * x + lines[q, k] + lines[q, 4] * noise[t, 0, i]
                if two:
                    y += lines[q, 5] * noise[t, 1, i]
                if log_scale:
                    y = exp(min(y, 700.0)) - EPSILON
                y = min(max(y * unit[t, i], 0.0), ceiling[t, i])
                if lapse is not None and uniforms[t, 0, i] < lapse[q]:
                    y = uniforms[t, 1, i] * ceiling[t, i]
                response[t, i] = y
    return response


def simulate_linear(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, window, value, unit, ceiling, log_scale
):
    """Answer with w x + b."""
    w, b, sigma = theta.T
    lines = np.column_stack([w, b, b, b, sigma, np.zeros(len(theta))])
    noise = ndtri(np.maximum(uniforms[:, 1:], TINY))
    return answers(
        lines, lapse, log_scale, row, start, uniforms, noise, window, value, unit, ceiling
    )


def simulate_static(  # type: ignore[no-untyped-def]
    theta,
    lapse,
    n_actions,
    row,
    start,
    uniforms,
    window,
    value,
    unit,
    ceiling,
    *,
    priors,
    log_scale,
):
    """Answer with the mean of prior and measurement, after gain and offset if there are any."""
    n, more = len(theta), theta.shape[1] - priors - 2
    w, sigma = theta[:, 0], theta[:, -1]
    mu = theta[:, 1 : 1 + priors] if priors == 3 else np.repeat(theta[:, 1:2], 3, axis=1)
    gain = theta[:, 1 + priors] if more > 0 else np.ones(n)
    offset = theta[:, 2 + priors] if more > 1 else np.zeros(n)
    lines = np.column_stack(
        [gain * (1.0 - w), (gain * w)[:, None] * mu + offset[:, None], sigma, np.zeros(n)]
    )
    noise = ndtri(np.maximum(uniforms[:, 1:], TINY))
    return answers(
        lines, lapse, log_scale, row, start, uniforms, noise, window, value, unit, ceiling
    )


def simulate_noisy(  # type: ignore[no-untyped-def]
    theta, lapse, n_actions, row, start, uniforms, window, value, unit, ceiling
):
    """Answer with the mean of prior and a noisy measurement."""
    measured, believed = theta[:, 0] ** 2, theta[:, 1] ** 2
    w = measured / (measured + believed)
    lines = np.column_stack(
        [1.0 - w, w[:, None] * theta[:, 2:5], theta[:, 5], (1.0 - w) * theta[:, 0]]
    )
    noise = ndtri(np.maximum(uniforms[:, 1:], TINY))
    return answers(lines, lapse, False, row, start, uniforms, noise, window, value, unit, ceiling)


def merge(
    subject: Integers, columns: tuple[Array, ...], *, log_scale: bool
) -> tuple[Integers, tuple[Array, ...]]:
    """Merge the answers of a subject in a window to means and centred moments.

    Answers at an end stay by themselves: their likelihood has no such statistics. Returns the
    subject of each place and the columns of `log_likelihood_of_lines`.
    """
    response, window, value, unit, ceiling = columns
    given = response >= 0.0
    outside = given & ~np.isin(window, (0.0, 1.0, 2.0))
    if outside.any():
        raise ValueError(
            "Windows are 0 (short), 1 (medium) and 2 (long); got "
            f"{window[outside][0]:g}. Recode the column 'window'."
        )
    unit, ceiling = np.where(given, unit, 1.0), np.where(given, ceiling, 1.0)
    x, y = value / unit, np.where(given, response, 0.0) / unit
    constant = -np.log(unit)
    if log_scale:
        x, y = np.log(np.maximum(x, 0.0) + EPSILON), np.log(y + EPSILON)
        constant = constant - y
    end = np.where(response <= 0.0, -1.0, np.where(response >= ceiling, 1.0, 0.0))
    single, inner = np.flatnonzero(given & (end != 0.0)), np.flatnonzero(given & (end == 0.0))

    group = subject[inner] * 3 + window[inner].astype(np.int64)
    count = np.bincount(group)
    held = np.flatnonzero(count)
    place = (np.cumsum(count > 0) - 1)[group]
    n = count[held].astype(float)

    def summed(values: Array) -> Array:
        return np.bincount(place, values, minlength=len(held)).astype(float)

    mean_x, mean_y = summed(x[inner]) / n, summed(y[inner]) / n
    off_x, off_y = x[inner] - mean_x[place], y[inner] - mean_y[place]
    zero, ones = np.zeros(len(single)), np.ones(len(single))
    merged = (
        np.concatenate([(held % 3).astype(float), window[single]]),
        np.concatenate([n, ones]),
        np.concatenate([mean_x, x[single]]),
        np.concatenate([mean_y, y[single]]),
        np.concatenate([summed(off_x * off_x), zero]),
        np.concatenate([summed(off_x * off_y), zero]),
        np.concatenate([summed(off_y * off_y), zero]),
        np.concatenate([summed(constant[inner]), zero]),
        np.concatenate([np.zeros(len(held)), end[single]]),
        np.concatenate([summed(1.0 / ceiling[inner]) / n, zero]),
    )
    return np.concatenate([held // 3, subject[single]]), merged


class LinearObserver(MagnitudeObserver):
    """Answers along a straight line: y ~ N(w x + b, sigma), in fractions of the unit.

    Any pull towards a fixed value is a straight line too, so that a static Bayesian observer with
    one prior mean has the same likelihood while w lies between 0 and 1: b = (1 - w) mu_prior.
    """

    name = "linear_observer"
    summary = "answers along a straight line, w x + b"
    source = "the null model of magnitude estimation"
    parameters = Parameters(
        Parameter(
            "w",
            IDENTITY,
            mean=1.0,
            sd=0.5,
            description="slope of answers on values; 1 for a perfect observer",
            group_sd=0.25,
        ),
        Parameter(
            "b",
            IDENTITY,
            mean=0.0,
            sd=0.24,
            description="intercept, as a fraction of the unit",
            group_sd=0.12,
        ),
        spread(log_scale=False),
    )
    log_likelihood = staticmethod(log_likelihood_linear)
    simulate = staticmethod(partial(simulate_linear, log_scale=False))
    prepare = staticmethod(merging(partial(merge, log_scale=False)))

    def expected(self, observation: Observation) -> tuple[float, float]:
        """Return mean and standard deviation."""
        w, b, sigma = self.theta.tolist()
        x = self.scaled(float(observation["value"]), float(observation["unit"]))
        return w * x + b, sigma


class LinearObserverLog(LinearObserver):
    """Answers along a straight line of logarithms: log y ~ N(w log x + b, sigma): a power law.

    Logarithms are those of the fraction of the unit + 0.001 (Stevens 1957 for w; Fechner's
    logarithmic scale for both sides).
    """

    name = "linear_observer_log"
    summary = "answers along a power law, w log x + b"
    source = "Stevens 1957"
    log_scale = True
    parameters = Parameters(
        Parameter(
            "w",
            IDENTITY,
            mean=1.0,
            sd=0.5,
            description="exponent; 1 for a perfect observer",
            group_sd=0.25,
        ),
        Parameter(
            "b",
            IDENTITY,
            mean=0.0,
            sd=0.48,
            description="intercept, on the log scale",
            group_sd=0.24,
        ),
        spread(log_scale=True),
    )
    simulate = staticmethod(partial(simulate_linear, log_scale=True))
    prepare = staticmethod(merging(partial(merge, log_scale=True)))


def _static(log_scale: bool = False, shared: bool = False, output: str = "none") -> Parameters:
    return Parameters(
        weight_of_prior(),
        *centres(log_scale, shared, "mean of the prior"),
        *outputs(log_scale, output),
        spread(log_scale),
    )


class StaticBayesObserver(MagnitudeObserver):
    """Answers with the mean of measurement and prior, weighted by their precisions.

    y ~ N((1 - w_prior) x + w_prior mu, sigma), in fractions of the unit, where w_prior = tau_prior
    / (tau_prior + tau_measurement) is the same in all windows and mu is the mean of the prior in
    the window. Only the ratio of the precisions exists in the answers; noise of the measurement is
    part of sigma. With a gain g and an offset d the mean is g (...) + d; neither can be told from
    w_prior and the means.
    """

    name = "static_bayes_observer"
    summary = "draws its answers towards the mean of a fixed prior in each window"
    source = "Petzschner, Glasauer and Stephan 2015"
    parameters = _static()
    log_likelihood = staticmethod(log_likelihood_by_window)
    simulate = staticmethod(partial(simulate_static, priors=3, log_scale=False))
    prepare = staticmethod(merging(partial(merge, log_scale=False)))

    def expected(self, observation: Observation) -> tuple[float, float]:
        """Return mean and standard deviation."""
        own = dict(zip(self.parameters.names, self.theta.tolist(), strict=True))
        name = ("mu_short", "mu_medium", "mu_long")[int(observation["window"])]
        w, mu = own["w_prior"], own[name if name in own else "mu_prior"]
        x = self.scaled(float(observation["value"]), float(observation["unit"]))
        belief = (1.0 - w) * x + w * mu
        return own.get("gain", 1.0) * belief + own.get("offset", 0.0), own["sigma"]


class StaticBayesObserverLog(StaticBayesObserver):
    """Is a static Bayesian observer of logarithms: see `StaticBayesObserver`."""

    name = "static_bayes_observer_log"
    summary = "draws its answers towards a fixed prior, on a log scale"
    source = "Petzschner and Glasauer 2011"
    log_scale = True
    parameters = _static(log_scale=True)
    simulate = staticmethod(partial(simulate_static, priors=3, log_scale=True))
    prepare = staticmethod(merging(partial(merge, log_scale=True)))


class StaticBayesObserverGain(StaticBayesObserver):
    """Is a static Bayesian observer whose answers are its beliefs times a gain; not identified."""

    name = "static_bayes_observer_gain"
    summary = "draws its answers towards a fixed prior and scales them; not identified"
    parameters = _static(output="gain")


class StaticBayesObserverGainLog(StaticBayesObserverLog):
    """Is a static Bayesian observer of logarithms with a gain; not identified."""

    name = "static_bayes_observer_gain_log"
    summary = "the same on a log scale; not identified"
    parameters = _static(log_scale=True, output="gain")


class StaticBayesObserverAffine(StaticBayesObserver):
    """Is a static Bayesian observer with a gain and an offset; not identified."""

    name = "static_bayes_observer_affine"
    summary = "draws its answers towards a fixed prior, scales and shifts them; not identified"
    parameters = _static(output="affine")


class StaticBayesObserverAffineLog(StaticBayesObserverLog):
    """Is a static Bayesian observer of logarithms with a gain and an offset; not identified."""

    name = "static_bayes_observer_affine_log"
    summary = "the same on a log scale; not identified"
    parameters = _static(log_scale=True, output="affine")


class StaticBayesObserverShared(StaticBayesObserver):
    """Is a static Bayesian observer with one prior for all windows.

    It has the likelihood of `LinearObserver` with w = 1 - w_prior and b = w_prior mu_prior.
    """

    name = "static_bayes_observer_shared"
    summary = "draws its answers towards the mean of one prior in all windows"
    parameters = _static(shared=True)
    log_likelihood = staticmethod(log_likelihood_shared)
    simulate = staticmethod(partial(simulate_static, priors=1, log_scale=False))


class StaticBayesObserverSharedLog(StaticBayesObserverLog):
    """Is a static Bayesian observer of logarithms with one prior for all windows."""

    name = "static_bayes_observer_shared_log"
    summary = "draws its answers towards one prior in all windows, on a log scale"
    parameters = _static(log_scale=True, shared=True)
    log_likelihood = staticmethod(log_likelihood_shared)
    simulate = staticmethod(partial(simulate_static, priors=1, log_scale=True))


class NoisyBayesObserver(MagnitudeObserver):
    """Measures with noise and answers with the posterior mean of its prior, plus noise.

    m ~ N(x, sigma_measure); y ~ N((1 - w) m + w mu, sigma), where w = sigma_measure**2 /
    (sigma_measure**2 + sigma_prior**2) follows from the two. The static observer is this one with
    the measurement's noise counted into its sigma: y ~ N((1 - w) x + w mu, sqrt(sigma**2 +
    (1 - w)**2 sigma_measure**2)). So the three spreads are known only through two numbers.
    """

    name = "noisy_bayes_observer"
    summary = "measures with noise and weights its prior by that noise"
    source = "Jazayeri and Shadlen 2010; Petzschner, Glasauer and Stephan 2015"
    parameters = Parameters(
        Parameter(
            "sigma_measure",
            POSITIVE,
            mean=-2.7,
            sd=0.7,
            description="standard deviation of measurements, as a fraction of the unit",
        ),
        Parameter(
            "sigma_prior",
            POSITIVE,
            mean=-2.2,
            sd=0.5,
            description="standard deviation of the prior, as a fraction of the unit",
        ),
        *centres(False, False, "mean of the prior"),
        Parameter(
            "sigma",
            POSITIVE,
            mean=-3.2,
            sd=0.7,
            description="standard deviation of the answer around the belief",
        ),
    )
    n_uniforms = 3
    log_likelihood = staticmethod(log_likelihood_noisy)
    simulate = staticmethod(simulate_noisy)
    prepare = staticmethod(merging(partial(merge, log_scale=False)))

    def expected(self, observation: Observation) -> tuple[float, float]:
        """Return mean and standard deviation, the measurement's noise included."""
        measure, prior, *mu, sigma = self.theta.tolist()
        w = measure**2 / (measure**2 + prior**2)
        x = self.scaled(float(observation["value"]), float(observation["unit"]))
        mean = (1.0 - w) * x + w * mu[int(observation["window"])]
        return mean, sqrt(sigma**2 + (1.0 - w) ** 2 * measure**2)

    def choose(self, observation: Observation, rng: np.random.Generator) -> float:
        """Draw an answer with three uniform numbers: lapse, noise of the answer, measurement."""
        lapses, u, v = rng.random(3).tolist()
        ceiling, unit = float(observation["ceiling"]), float(observation["unit"])
        if lapses < self.lapse:
            return float(u * ceiling)
        measure, prior, *mu, sigma = self.theta.tolist()
        w = measure**2 / (measure**2 + prior**2)
        measured = float(observation["value"]) / unit + measure * float(ndtri(max(v, TINY)))
        belief = (1.0 - w) * measured + w * mu[int(observation["window"])]
        answer: float = (belief + sigma * float(ndtri(max(u, TINY)))) * unit
        return min(max(answer, 0.0), ceiling)
