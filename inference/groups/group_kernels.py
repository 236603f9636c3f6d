"""The density of a group, compiled once for all models and kept by numba's cache.

A model comes in as the address of its compiled likelihood, and its trials as the addresses of their
arrays. So neither the density nor the model is compiled anew for the other.
"""

from __future__ import annotations

from math import cosh, exp, log, sqrt, tanh
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import Array

Integers = NDArray[np.int64]
KINDS = {"identity": 0, "log": 1, "logit": 2}  # of supports


class Group(NamedTuple):
    """The data of a group's density, except the trials.

    There are K parameters, Q deviations per subject (one of each parameter first), N subjects, and
    M rows of parameters (one per subject, or one per cell of a subject).

    Parameters
    ----------
    mean, sd : prior of the group's means, [K]
    spread : scale of the prior of the deviations' spreads, [Q]
    kind, lower, upper : support of each parameter (0 identity, 1 log, 2 logit), [K]
    full, places : values of the model's fixed parameters, and positions of the free ones
    moved : parameter that each deviation moves, [Q]
    subject : subject of each row, [M]
    weight : weight of a deviation in a row, [M, Q]
    information, score, onto : what trials say about deviations, see `Deviations.gathered`
    effect, design, effect_sd : parameter that a regressor moves [E], its values [M, E], prior [E]
    level, count, factor, contrasts, estimate, error : see `Levels` and `SubjectCoordinates`; of
        rows [M, F], [F], [C], [L, C], [C, K] and [C, K]
    pair, shape : deviations that are correlated [P, 2], in order of the first, each with all its
        partners in order; exponent of 1 - r**2 in the density of their partial correlation [P]
    """

    mean: Array
    sd: Array
    spread: Array
    kind: Integers
    lower: Array
    upper: Array
    full: Array
    places: Integers
    moved: Integers
    subject: Integers
    weight: Array
    onto: Array
    information: Array
    score: Array
    effect: Integers
    design: Array
    effect_sd: Array
    level: Integers
    count: Integers  # type: ignore[assignment]  # a field, not the tuple's method
    factor: Integers
    contrasts: Array
    estimate: Array
    error: Array
    pair: Integers
    shape: Array


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _root(spread, turn, pair):  # type: ignore[no-untyped-def]
    """Return D C, where C C' are the correlations and `turn` the unbounded partial ones."""
    q = len(spread)
    correlation = np.zeros((q, q))
    rest = np.ones(q)
    for p in range(len(turn)):
        i, j = pair[p]
        correlation[i, j] = tanh(turn[p]) * rest[i]
        rest[i] /= cosh(turn[p])
    for i in range(q):
        correlation[i, i] = rest[i]
    return correlation


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _root_back(by_correlation, correlation, turn, pair, shape, slope):  # type: ignore[no-untyped-def]
    """Write the slopes of the partial correlations; return the log density of these."""
    value = 0.0
    rest = np.empty(len(correlation))
    by_rest = np.empty(len(correlation))
    for i in range(len(correlation)):
        rest[i], by_rest[i] = correlation[i, i], by_correlation[i, i]
    for p in range(len(turn) - 1, -1, -1):
        i, j = pair[p]
        r, left = tanh(turn[p]), 1.0 / cosh(turn[p])
        rest[i] /= left
        by_r = by_correlation[i, j] * rest[i] * left * left - by_rest[i] * rest[i] * left * r
        by_rest[i] = by_correlation[i, j] * r + by_rest[i] * left
        value += 2.0 * shape[p] * log(left)
        slope[p] = by_r - 2.0 * shape[p] * r
    return value


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _expected(g, mean, effect, level_sd, level_eta, mu, deviation):  # type: ignore[no-untyped-def]
    """Write the group's expectation of each row [M, K], and the contrasts [C, K]."""
    n_rows, k = mu.shape
    levels = np.zeros((len(g.contrasts), k))
    for c in range(len(g.factor)):
        for j in range(k):
            spread = level_sd[g.factor[c], j]
            whole = spread * spread + g.error[c, j]
            deviation[c, j] = (
                g.estimate[c, j] * spread / whole + sqrt(g.error[c, j] / whole) * level_eta[c, j]
            )
            for m in range(len(levels)):
                levels[m, j] += g.contrasts[m, c] * spread * deviation[c, j]
    for r in range(n_rows):
        for j in range(k):
            mu[r, j] = mean[j]
        for e in range(len(effect)):
            mu[r, g.effect[e]] += g.design[r, e] * effect[e]
        for f in range(g.level.shape[1]):
            for j in range(k):
                mu[r, j] += levels[g.level[r, f], j]


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _levels_back(g, by_mu, centre, level_sd, level_eta, deviation, slopes):  # type: ignore[no-untyped-def]
    """Write the slopes of centre, spreads and contrasts of levels; return their log density."""
    by_centre, by_sd, by_eta = slopes
    k = len(centre)
    by_level = np.zeros((len(g.contrasts), k))
    for r in range(len(by_mu)):
        for f in range(g.level.shape[1]):
            for j in range(k):
                by_level[g.level[r, f], j] += by_mu[r, j]
    value = 0.0
    by_sd[:] = 0.0
    for c in range(len(g.factor)):
        for j in range(k):
            spread, error = level_sd[g.factor[c], j], g.error[c, j]
            whole = spread * spread + error
            by_product = 0.0
            for m in range(len(by_level)):
                by_product += g.contrasts[m, c] * by_level[m, j]
            d = deviation[c, j]
            by_d = by_product * spread - d
            value += -0.5 * d * d + 0.5 * log(error / whole)
            share = sqrt(error / whole)
            by_eta[c, j] = by_d * share
            by_sd[g.factor[c], j] += (
                by_product * d
                - spread / whole
                + by_d
                * (
                    g.estimate[c, j] * (error - spread * spread) / (whole * whole)
                    - level_eta[c, j] * share * spread / whole
                )
            )
    for j in range(k):
        variance = g.sd[j] * g.sd[j]
        for f in range(len(g.count)):
            variance += level_sd[f, j] * level_sd[f, j] / g.count[f]
        away = (centre[j] - g.mean[j]) / variance
        value += -0.5 * away * (centre[j] - g.mean[j]) - 0.5 * log(variance)
        by_centre[j] -= away
        for f in range(len(g.count)):
            by_sd[f, j] += (away * away - 1.0 / variance) * level_sd[f, j] / g.count[f]
            scale = g.spread[j]
            value -= 0.5 * (level_sd[f, j] / scale) ** 2
            by_sd[f, j] -= level_sd[f, j] / (scale * scale)
    return value


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _forward(g, correlation, spread, u, pull, v, b):  # type: ignore[no-untyped-def]
    """Write standard deviations v and deviations b of all subjects for their coordinates, [N, Q].

    Given those before it, deviation q has the mean m = s_q sum_j<q C_qj v_j and the spread t = s_q
    C_qq. It is b = m + t v, with v = (t (pull - L m) / G + u / g) and G = g^2 = 1 + L t^2; see
    `SubjectCoordinates`. Returns the log density of the coordinates.
    """
    value = 0.0
    n, size = u.shape
    for i in range(n):
        for q in range(size):
            before = 0.0
            for j in range(q):
                before += correlation[q, j] * v[i, j]
            m, t, known = spread[q] * before, spread[q] * correlation[q, q], g.information[i, q]
            square = 1.0 + known * t * t
            v[i, q] = t * (pull[i, q] - known * m) / square + u[i, q] / sqrt(square)
            b[i, q] = m + t * v[i, q]
            value -= 0.5 * (v[i, q] * v[i, q] + log(square))
    return value


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _backward(g, correlation, spread, pull, v, by_b, slopes):  # type: ignore[no-untyped-def]
    """Write the slopes of coordinates and pulls [N, Q]; add those of spreads and correlations."""
    by_u, by_pull, by_spread, by_correlation = slopes
    n, size = v.shape
    by_v = np.empty(size)
    for i in range(n):
        for q in range(size):
            by_v[q] = -v[i, q]
        for q in range(size - 1, -1, -1):
            before = 0.0
            for j in range(q):
                before += correlation[q, j] * v[i, j]
            m, t, known = spread[q] * before, spread[q] * correlation[q, q], g.information[i, q]
            square = 1.0 + known * t * t
            left = (pull[i, q] - known * m) / square
            whole = by_v[q] + by_b[i, q] * t
            by_u[i, q] = whole / sqrt(square)
            by_pull[i, q] = whole * t / square
            by_m = by_b[i, q] - whole * t * known / square
            by_t = by_b[i, q] * v[i, q] - known * t / square
            by_t += whole * (left - known * t / square * (v[i, q] + t * left))
            by_spread[q] += by_m * before + by_t * correlation[q, q]
            by_correlation[q, q] += by_t * spread[q]
            for j in range(q):
                by_correlation[q, j] += by_m * spread[q] * v[i, j]
                by_v[j] += by_m * spread[q] * correlation[q, j]


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def _cut(x, shape):  # type: ignore[no-untyped-def]
    """Return the parts of a point: see `parts_of`."""
    k, q, f, c, e, p, n = shape
    ends = np.cumsum(np.array([0, k, f * k, c * k, q, e, p, n * q]))
    return (
        x[ends[0] : ends[1]],
        x[ends[1] : ends[2]].reshape(f, k),
        x[ends[2] : ends[3]].reshape(c, k),
        x[ends[3] : ends[4]],
        x[ends[4] : ends[5]],
        x[ends[5] : ends[6]],
        x[ends[6] : ends[7]].reshape(n, q),
    )


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def natural(z, kind, lower, upper):  # type: ignore[no-untyped-def]
    """Map z [N, K] to the natural scale, and return the slope of the map: a compiled `Support`."""
    theta, slope = np.empty(z.shape), np.empty(z.shape)
    for n in range(z.shape[0]):
        for k in range(z.shape[1]):
            if kind[k] == 0:
                theta[n, k], slope[n, k] = z[n, k], 1.0
            elif kind[k] == 1:
                theta[n, k] = slope[n, k] = exp(min(z[n, k], 700.0))
            else:
                share = 1.0 / (1.0 + exp(-z[n, k]))
                width = upper[k] - lower[k]
                theta[n, k] = lower[k] + width * share
                slope[n, k] = width * share * (1.0 - share)
    return theta, slope


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def placed_in(theta, full, places):  # type: ignore[no-untyped-def]
    """Return all parameters of a model, [N, P], given the free ones, [N, K].

    They are copied number by number, since an assignment to slices takes seconds to compile.
    """
    whole = np.empty((len(theta), len(full)))
    for n in range(len(theta)):
        for k in range(len(full)):
            whole[n, k] = full[k]
        for k in range(len(places)):
            if places[k] < len(full):
                whole[n, places[k]] = theta[n, k]
    return whole


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _lapse_of(theta, lapses):  # type: ignore[no-untyped-def]
    """Return the lapse rates for the kernel: the last parameter, or nothing."""
    if lapses:
        return theta[:, theta.shape[1] - 1].copy()
    return np.empty(0)


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _trials(g, kernel, lapses, n_actions, trials, z, by_z):  # type: ignore[no-untyped-def]
    """Write the slopes of z [M, K]; return the log-likelihood of all trials."""
    theta, slope = natural(z, g.kind, g.lower, g.upper)
    lapse = _lapse_of(theta, lapses)
    total, gradient = kernel(placed_in(theta, g.full, g.places), lapse, n_actions, trials)
    for r in range(len(z)):
        for j in range(z.shape[1]):
            by_z[r, j] = slope[r, j] * gradient[r, g.places[j]]
    return total.sum()


@compiled(fastmath={"contract"})
def density(x, slope, z, b, g, shape, kernel, lapses, n_actions, trials):  # type: ignore[no-untyped-def]
    """Return the log density of a point x [D], up to a constant; write its slope, rows, deviations.

    x holds the following parts: group means [K] (with crossed factors: means of the units), spreads
    over levels [F, K], contrasts of levels [C, K], spreads [Q], weights of regressors [E],
    unbounded partial correlations [P], and coordinates of subjects [N, Q]. Spreads have a sign. z
    [M, K] are the parameters of all rows at this point, on the unconstrained scale, and b [N, Q]
    the subjects' deviations.
    """
    k, q, _, n_contrasts, _, _, n = shape
    mean, level_sd, level_eta, spread, effect, turn, u = _cut(x, shape)
    by_mean, by_level_sd, by_level_eta, by_spread, by_effect, by_turn, by_u = _cut(slope, shape)
    n_rows = len(g.subject)
    by_z, v = np.empty((n_rows, k)), np.empty((n, q))
    deviation = np.empty((n_contrasts, k))
    _expected(g, mean, effect, level_sd, level_eta, z, deviation)
    correlation = _root(spread, turn, g.pair)
    pull = g.score.copy()
    for r in range(n_rows):
        for i in range(q):
            for j in range(k):
                pull[g.subject[r], i] -= g.onto[r, i, j] * z[r, j]
    value = _forward(g, correlation, spread, u, pull, v, b)
    for r in range(n_rows):
        for i in range(q):
            z[r, g.moved[i]] += g.weight[r, i] * b[g.subject[r], i]
    value += _trials(g, kernel, lapses, n_actions, trials, z, by_z)

    by_b, by_pull, by_correlation = np.zeros((n, q)), np.empty((n, q)), np.zeros((q, q))
    for r in range(n_rows):
        for i in range(q):
            by_b[g.subject[r], i] += g.weight[r, i] * by_z[r, g.moved[i]]
    for i in range(q):
        by_spread[i] = -spread[i] / (g.spread[i] * g.spread[i])
        value -= 0.5 * (spread[i] / g.spread[i]) ** 2
    slopes = by_u, by_pull, by_spread, by_correlation
    _backward(g, correlation, spread, pull, v, by_b, slopes)
    for r in range(n_rows):
        for i in range(q):
            for j in range(k):
                by_z[r, j] -= g.onto[r, i, j] * by_pull[g.subject[r], i]
    value += _root_back(by_correlation, correlation, turn, g.pair, g.shape, by_turn)
    for j in range(k):
        by_mean[j] = by_z[:, j].sum()
    for e in range(len(effect)):
        by_effect[e] = -effect[e] / (g.effect_sd[e] * g.effect_sd[e])
        value -= 0.5 * (effect[e] / g.effect_sd[e]) ** 2
        for r in range(n_rows):
            by_effect[e] += g.design[r, e] * by_z[r, g.effect[e]]
    level_slopes = by_mean, by_level_sd, by_level_eta
    return value + _levels_back(g, by_z, mean, level_sd, level_eta, deviation, level_slopes)


@compiled()
def rows_at(points, g, shape, kernel, lapses, n_actions, trials):  # type: ignore[no-untyped-def]
    """Return parameters [S, M, K] and deviations [S, N, Q] at points [S, D]."""
    z = np.empty((len(points), len(g.subject), shape[0]))
    b = np.empty((len(points), shape[6], shape[1]))
    slope = np.empty(points.shape[1])
    for s in range(len(points)):
        density(points[s], slope, z[s], b[s], g, shape, kernel, lapses, n_actions, trials)
    return z, b
