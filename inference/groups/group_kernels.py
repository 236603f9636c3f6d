"""The density of a group and its NUTS, compiled once for all models and kept by numba's cache.

A model enters as the address of its own compiled likelihood and its trials as theirs, so that
neither is compiled for the other.
"""

from __future__ import annotations

from math import cos, cosh, exp, log, sin, sqrt, tanh
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from knownminds.agents.compiled import compiled
from knownminds.agents.parameters import Array

LANES = 32  # subjects side by side, as sequences are in the kernels of models
MOST_ENERGY = 1000.0  # lost in a trajectory: it has diverged
MOST_DOUBLINGS = 10
COLUMNS = 7  # of what is told of a draw, see `run_chain`

Integers = NDArray[np.int64]


class Group(NamedTuple):
    """What the density of a group is made of, but for the trials.

    K parameters, Q deviations that a subject has (one of each parameter first), N subjects, M rows
    of parameters (one of each subject, or one of each of its cells).

    Parameters
    ----------
    mean, sd : prior of the group's means, [K]
    spread : scale of the prior of the deviations' spreads, [Q]
    kind, lower, upper : support of each parameter (0 identity, 1 log, 2 logit), [K]
    full, places : values of the model's own parameters where held, and where the free ones stand
    moved : parameter that a deviation moves, [Q]
    subject : of each row, [M]
    weight : by which a deviation enters a row, [M, Q]
    onto : W' L of each row: how its expected parameters pull at the deviations, [M, Q, K]
    information, score : of each subject in its deviations, [blocks, Q, Q, LANES] and less one Q
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
    count: Integers  # type: ignore[assignment]  # a field, not the tuple's own method
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
    """Write what the group expects of each row [M, K] and the contrasts [C, K]."""
    n_rows, k = mu.shape
    levels = np.zeros((len(g.contrasts), k))
    for c in range(len(g.factor)):
        for j in range(k):
            own = level_sd[g.factor[c], j]
            whole = own * own + g.error[c, j]
            deviation[c, j] = (
                g.estimate[c, j] * own / whole + sqrt(g.error[c, j] / whole) * level_eta[c, j]
            )
            for m in range(len(levels)):
                levels[m, j] += g.contrasts[m, c] * own * deviation[c, j]
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
            own, error = level_sd[g.factor[c], j], g.error[c, j]
            whole = own * own + error
            by_product = 0.0
            for m in range(len(by_level)):
                by_product += g.contrasts[m, c] * by_level[m, j]
            d = deviation[c, j]
            by_d = by_product * own - d
            value += -0.5 * d * d + 0.5 * log(error / whole)
            share = sqrt(error / whole)
            by_eta[c, j] = by_d * share
            by_sd[g.factor[c], j] += (
                by_product * d
                - own / whole
                + by_d
                * (
                    g.estimate[c, j] * (error - own * own) / (whole * whole)
                    - level_eta[c, j] * share * own / whole
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
def _forward(g, a, u, pull, work):  # type: ignore[no-untyped-def]
    """Write the deviations of all subjects for their coordinates u, [blocks, Q, LANES].

    With S = I + A' L A = G G' they are b = A w, w = G^-T (t + u), t = G^-1 A' pull. Returns the
    sum of -w'w / 2 - log |G|.
    """
    product, root, t, w, b = work
    blocks, q, _ = u.shape
    left, total = np.empty(LANES), np.zeros(LANES)
    for n in range(blocks):
        for j in range(q):  # L A, then A' L A on and below the diagonal
            for i in range(q):
                for lane in range(LANES):
                    left[lane] = 0.0
                for c in range(j, q):
                    weight = a[c, j]
                    for lane in range(LANES):
                        left[lane] += g.information[n, i, c, lane] * weight
                for lane in range(LANES):
                    product[n, i, j, lane] = left[lane]
            for i in range(j, q):
                for lane in range(LANES):
                    left[lane] = 1.0 if i == j else 0.0
                for c in range(i, q):
                    weight = a[c, i]
                    for lane in range(LANES):
                        left[lane] += product[n, c, j, lane] * weight
                for lane in range(LANES):
                    root[n, i, j, lane] = left[lane]
        for i in range(q):
            for j in range(i + 1):
                for lane in range(LANES):
                    left[lane] = root[n, i, j, lane]
                for c in range(j):
                    for lane in range(LANES):
                        left[lane] -= root[n, i, c, lane] * root[n, j, c, lane]
                for lane in range(LANES):
                    root[n, i, j, lane] = (
                        sqrt(left[lane]) if i == j else left[lane] / root[n, j, j, lane]
                    )
        for i in range(q):
            for lane in range(LANES):
                left[lane] = 0.0
            for c in range(i, q):
                weight = a[c, i]
                for lane in range(LANES):
                    left[lane] += weight * pull[n, c, lane]
            for c in range(i):
                for lane in range(LANES):
                    left[lane] -= root[n, i, c, lane] * t[n, c, lane]
            for lane in range(LANES):
                t[n, i, lane] = left[lane] / root[n, i, i, lane]
        for i in range(q - 1, -1, -1):
            for lane in range(LANES):
                left[lane] = t[n, i, lane] + u[n, i, lane]
            for c in range(i + 1, q):
                for lane in range(LANES):
                    left[lane] -= root[n, c, i, lane] * w[n, c, lane]
            for lane in range(LANES):
                w[n, i, lane] = left[lane] / root[n, i, i, lane]
        for lane in range(LANES):
            left[lane] = 1.0
        for i in range(q):
            for lane in range(LANES):
                left[lane] *= root[n, i, i, lane]
                total[lane] -= 0.5 * w[n, i, lane] * w[n, i, lane]
                b[n, i, lane] = 0.0
            for c in range(i + 1):
                weight = a[i, c]
                for lane in range(LANES):
                    b[n, i, lane] += weight * w[n, c, lane]
        for lane in range(LANES):
            total[lane] -= log(left[lane])
    return total.sum()


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _backward(a, pull, work, by_b, by_u, by_pull, by_a):  # type: ignore[no-untyped-def]
    """Write the slopes of coordinates and pulls, [blocks, Q, LANES], and of A, [Q, Q]."""
    product, root, t, w, _ = work
    blocks, q, _ = pull.shape
    left = np.empty(LANES)
    by_s, by_root, half = np.empty((q, LANES)), np.empty((q, q, LANES)), np.empty((q, q, LANES))
    each = np.zeros((q, q, LANES))
    for n in range(blocks):
        for i in range(q):  # through b = A w and w = G^-T (t + u)
            for lane in range(LANES):
                left[lane] = -w[n, i, lane]
            for c in range(i, q):
                weight = a[c, i]
                for lane in range(LANES):
                    left[lane] += weight * by_b[n, c, lane]
                    each[c, i, lane] += by_b[n, c, lane] * w[n, i, lane]
            for c in range(i):
                for lane in range(LANES):
                    left[lane] -= root[n, i, c, lane] * by_u[n, c, lane]
            for lane in range(LANES):
                by_u[n, i, lane] = left[lane] / root[n, i, i, lane]
        for i in range(q - 1, -1, -1):  # through t = G^-1 s, s = A' pull
            for lane in range(LANES):
                left[lane] = by_u[n, i, lane]
            for c in range(i + 1, q):
                for lane in range(LANES):
                    left[lane] -= root[n, c, i, lane] * by_s[c, lane]
            for lane in range(LANES):
                by_s[i, lane] = left[lane] / root[n, i, i, lane]
        for c in range(q):
            for lane in range(LANES):
                left[lane] = 0.0
            for i in range(c + 1):
                weight = a[c, i]
                for lane in range(LANES):
                    left[lane] += weight * by_s[i, lane]
                    each[c, i, lane] += pull[n, c, lane] * by_s[i, lane]
            for lane in range(LANES):
                by_pull[n, c, lane] = left[lane]
        for i in range(q):
            for j in range(i + 1):
                for lane in range(LANES):
                    by_root[i, j, lane] = (
                        -w[n, i, lane] * by_u[n, j, lane] - by_s[i, lane] * t[n, j, lane]
                    )
            for lane in range(LANES):
                by_root[i, i, lane] -= 1.0 / root[n, i, i, lane]
        # Through Cholesky's decomposition: G^-T phi(G' by_root) G^-1, made symmetric.
        for i in range(q):
            for j in range(q):
                for lane in range(LANES):
                    left[lane] = 0.0
                if j <= i:
                    for c in range(i, q):
                        for lane in range(LANES):
                            left[lane] += root[n, c, i, lane] * by_root[c, j, lane]
                share = 0.5 if i == j else 1.0
                for lane in range(LANES):
                    half[i, j, lane] = share * left[lane]
        for j in range(q):  # columns: G^-T from the left
            for i in range(q - 1, -1, -1):
                for lane in range(LANES):
                    left[lane] = half[i, j, lane]
                for c in range(i + 1, q):
                    for lane in range(LANES):
                        left[lane] -= root[n, c, i, lane] * half[c, j, lane]
                for lane in range(LANES):
                    half[i, j, lane] = left[lane] / root[n, i, i, lane]
        for i in range(q):  # rows: G^-1 from the right
            for j in range(q - 1, -1, -1):
                for lane in range(LANES):
                    left[lane] = half[i, j, lane]
                for c in range(j + 1, q):
                    for lane in range(LANES):
                        left[lane] -= half[i, c, lane] * root[n, c, j, lane]
                for lane in range(LANES):
                    half[i, j, lane] = left[lane] / root[n, j, j, lane]
        for i in range(q):
            for j in range(q):
                for lane in range(LANES):
                    left[lane] = half[i, j, lane] + half[j, i, lane]
                for c in range(j, q):
                    for lane in range(LANES):
                        each[c, j, lane] += product[n, c, i, lane] * left[lane]
    for i in range(q):
        for j in range(q):
            by_a[i, j] = each[i, j].sum()


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


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _placed(g, shape, x, deviation, work, z):  # type: ignore[no-untyped-def]
    """Write the parameters z [M, K] of all rows at a point, and what leads to them.

    Returns the log density of the coordinates given all else, what pulls at the deviations, the
    root A = D C of their covariance, and C.
    """
    q, n = shape[1], shape[6]
    mean, level_sd, level_eta, spread, effect, turn, u = _cut(x, shape)
    _expected(g, mean, effect, level_sd, level_eta, z, deviation)
    correlation = _root(spread, turn, g.pair)
    a = np.empty((q, q))
    for i in range(q):
        for j in range(q):
            a[i, j] = spread[i] * correlation[i, j]
    pull, own = g.score.copy(), np.zeros(g.score.shape)
    for i in range(n):
        for j in range(q):
            own[i // LANES, j, i % LANES] = u[i, j]
    for r in range(len(z)):
        block, lane = g.subject[r] // LANES, g.subject[r] % LANES
        for i in range(q):
            for j in range(z.shape[1]):
                pull[block, i, lane] -= g.onto[r, i, j] * z[r, j]
    value = _forward(g, a, own, pull, work)
    b = work[4]
    for r in range(len(z)):
        block, lane = g.subject[r] // LANES, g.subject[r] % LANES
        for i in range(q):
            z[r, g.moved[i]] += g.weight[r, i] * b[block, i, lane]
    return value, pull, a, correlation


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _lapse_of(theta, lapses):  # type: ignore[no-untyped-def]
    """Return what the kernel is told of lapses: the last parameter, or nothing."""
    if lapses:
        return theta[:, theta.shape[1] - 1].copy()
    return np.empty(0)


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _trials(g, kernel, lapses, n_actions, places, z, by_z):  # type: ignore[no-untyped-def]
    """Write the slopes of z [M, K]; return the log-likelihood of all trials."""
    n_rows, k = z.shape
    theta = np.empty((n_rows, k))
    own = np.empty((n_rows, len(g.full)))
    for r in range(n_rows):
        for j in range(len(g.full)):
            own[r, j] = g.full[j]
        for j in range(k):
            if g.kind[j] == 0:
                theta[r, j], by_z[r, j] = z[r, j], 1.0
            elif g.kind[j] == 1:
                theta[r, j] = by_z[r, j] = exp(min(z[r, j], 700.0))
            else:
                share = 1.0 / (1.0 + exp(-z[r, j]))
                width = g.upper[j] - g.lower[j]
                theta[r, j] = g.lower[j] + width * share
                by_z[r, j] = width * share * (1.0 - share)
            if g.places[j] < len(g.full):
                own[r, g.places[j]] = theta[r, j]
    total, gradient = kernel(own, _lapse_of(theta, lapses), n_actions, places)
    for r in range(n_rows):
        for j in range(k):
            by_z[r, j] *= gradient[r, g.places[j]]
    return total.sum()


@compiled(fastmath={"contract"})
def density(x, slope, z, g, shape, kernel, lapses, n_actions, places):  # type: ignore[no-untyped-def]
    """Return the log density of a point x [D], up to a constant; write its slope [D] and rows z.

    x holds, part after part: group means [K] (with crossed factors: means of the units), spreads
    over levels [F, K], contrasts of levels [C, K], spreads [Q], weights of regressors [E],
    unbounded partial correlations [P], and coordinates of subjects [N, Q]. Spreads have a sign.
    z [M, K] are the parameters of all rows there, on the unconstrained scale.
    """
    k, q, _, n_contrasts, _, _, n = shape
    mean, level_sd, level_eta, spread, effect, turn, _ = _cut(x, shape)
    by_mean, by_level_sd, by_level_eta, by_spread, by_effect, by_turn, by_u = _cut(slope, shape)
    n_rows, blocks = len(g.subject), len(g.information)
    by_z = np.empty((n_rows, k))
    deviation = np.empty((n_contrasts, k))
    square, line = (blocks, q, q, LANES), (blocks, q, LANES)
    work = np.empty(square), np.empty(square), np.empty(line), np.empty(line), np.empty(line)
    value, pull, a, correlation = _placed(g, shape, x, deviation, work, z)
    value += _trials(g, kernel, lapses, n_actions, places, z, by_z)

    by_b, by_own, by_pull = np.zeros(line), np.empty(line), np.empty(line)
    by_a, by_correlation = np.empty((q, q)), np.empty((q, q))
    for r in range(n_rows):
        block, lane = g.subject[r] // LANES, g.subject[r] % LANES
        for i in range(q):
            by_b[block, i, lane] += g.weight[r, i] * by_z[r, g.moved[i]]
    _backward(a, pull, work, by_b, by_own, by_pull, by_a)
    for i in range(n):
        for j in range(q):
            by_u[i, j] = by_own[i // LANES, j, i % LANES]
    for r in range(n_rows):
        block, lane = g.subject[r] // LANES, g.subject[r] % LANES
        for i in range(q):
            for j in range(k):
                by_z[r, j] -= g.onto[r, i, j] * by_pull[block, i, lane]
    for i in range(q):
        by_spread[i] = -spread[i] / (g.spread[i] * g.spread[i])
        value -= 0.5 * (spread[i] / g.spread[i]) ** 2
        for j in range(q):
            by_spread[i] += by_a[i, j] * correlation[i, j]
            by_correlation[i, j] = by_a[i, j] * spread[i]
    value += _root_back(by_correlation, correlation, turn, g.pair, g.shape, by_turn)
    for j in range(k):
        by_mean[j] = by_z[:, j].sum()
    for e in range(len(effect)):
        by_effect[e] = -effect[e] / (g.effect_sd[e] * g.effect_sd[e])
        value -= 0.5 * (effect[e] / g.effect_sd[e]) ** 2
        for r in range(n_rows):
            by_effect[e] += g.design[r, e] * by_z[r, g.effect[e]]
    slopes = by_mean, by_level_sd, by_level_eta
    return value + _levels_back(g, by_z, mean, level_sd, level_eta, deviation, slopes)


@njit(nogil=True, error_model="numpy")
def _copy(source, target):  # type: ignore[no-untyped-def]
    for d in range(len(source)):
        target[d] = source[d]


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def _turned(inverse_mass, first, last, total):  # type: ignore[no-untyped-def]
    """Say whether a stretch of a trajectory that sums to `total` has turned back on itself."""
    begin = end = 0.0
    for d in range(len(first)):
        middle = inverse_mass[d] * (total[d] - 0.5 * (first[d] + last[d]))
        begin += middle * first[d]
        end += middle * last[d]
    return begin <= 0.0 or end <= 0.0


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def _kinetic(inverse_mass, momentum):  # type: ignore[no-untyped-def]
    total = 0.0
    for d in range(len(momentum)):
        total += inverse_mass[d] * momentum[d] * momentum[d]
    return 0.5 * total


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _subtree(law, problem, z, ends, proposal, kept, total, settings):  # type: ignore[no-untyped-def]
    """Go 2**depth steps on from the end `ends` of a trajectory.

    The end moves on, `proposal` (point and slope) is one of the new points, drawn by weight, and
    `total` is the sum of the momenta. Returns log weight of all, that point's density, whether
    to stop (1 turned, 2 diverged), sum of acceptance probabilities, and steps taken.
    """
    inverse_mass, middle_of, turns, step, depth, energy = settings
    x, slope, p = ends
    along, across = cos(step), sin(step)
    points, sums = kept
    for d in range(len(x)):
        total[d] = 0.0
    log_weight, density_of, accepted = -np.inf, 0.0, 0.0
    for leaf in range(2**depth):
        for d in range(len(x)):
            scale = inverse_mass[d]
            if turns[d]:
                away = x[d] - middle_of[d]
                pushed = p[d] + 0.5 * step * (slope[d] + away / scale)
                x[d] = middle_of[d] + along * away + across * scale * pushed
                p[d] = along * pushed - across * away / scale
            else:
                p[d] += 0.5 * step * slope[d]
                x[d] += step * scale * p[d]
        value = law(x, slope, z, *problem)
        for d in range(len(x)):
            rest = (x[d] - middle_of[d]) / inverse_mass[d] if turns[d] else 0.0
            p[d] += 0.5 * step * (slope[d] + rest)
            total[d] += p[d]
        lost = energy - (value - _kinetic(inverse_mass, p))
        if not lost < MOST_ENERGY:
            return log_weight, density_of, 2, accepted, leaf + 1
        accepted += min(1.0, exp(-lost))
        larger = max(log_weight, -lost)
        log_weight = larger + log(exp(log_weight - larger) + exp(-lost - larger))
        if log(np.random.random()) < -lost - log_weight:  # noqa: NPY002
            density_of = value
            _copy(x, proposal[0])
            _copy(slope, proposal[1])
        # Of the leaves so far, those that begin a stretch yet to be closed are kept (Phan, Pradhan
        # and Jankowiak 2019): one for each bit of the leaf's number.
        high, rest = 0, leaf >> 1
        while rest:
            high += rest & 1
            rest >>= 1
        if leaf % 2 == 0:
            _copy(p, points[high])
            _copy(total, sums[high])
        else:
            closed, rest = 0, leaf
            while rest & 1:
                closed += 1
                rest >>= 1
            for k in range(high, high - closed, -1):
                begin = end = 0.0
                for d in range(len(p)):
                    first = points[k, d]
                    middle = inverse_mass[d] * (total[d] - sums[k, d] + 0.5 * (first - p[d]))
                    begin += middle * first
                    end += middle * p[d]
                if begin <= 0.0 or end <= 0.0:
                    return log_weight, density_of, 1, accepted, leaf + 1
    return log_weight, density_of, 0, accepted, 2**depth


@njit(nogil=True, error_model="numpy", fastmath={"contract"}, inline="always")
def _transition(law, problem, here, metric, step, deepest, room):  # type: ignore[no-untyped-def]
    """Move to another point by the No-U-Turn sampler with multinomial draws.

    `here` is the point, its slope, and in an array its log density. Returns mean acceptance,
    steps, doublings, divergence, and the energy at the start.
    """
    point, slope, value = here
    inverse_mass, middle_of, turns = metric
    left, right, proposal, kept, sums, p, z = room
    n = len(point)
    for d in range(n):
        p[d] = np.random.standard_normal() / sqrt(inverse_mass[d])  # noqa: NPY002
    energy = value[0] - _kinetic(inverse_mass, p)
    for side in range(2):
        end = left if side == 0 else right
        _copy(point, end[0])
        _copy(slope, end[1])
        _copy(p, end[2])
    whole, added, inner = sums
    _copy(p, whole)
    log_weight, accepted, steps, stop, doublings = 0.0, 0.0, 0, 0, 0
    while doublings < deepest and stop == 0:
        forward = np.random.random() < 0.5  # noqa: NPY002
        end, other = (right, left) if forward else (left, right)
        direction = step if forward else -step
        _copy(end[2], inner)  # where old and new stretch meet
        settings = inverse_mass, middle_of, turns, direction, doublings, energy
        found = _subtree(law, problem, z, end, proposal, kept, added, settings)
        more, density_of, stop, some, taken = found
        accepted += some
        steps += taken
        doublings += 1
        if stop:
            break
        if log(np.random.random()) < more - log_weight:  # noqa: NPY002
            value[0] = density_of
            _copy(proposal[0], point)
            _copy(proposal[1], slope)
        larger = max(log_weight, more)
        log_weight = larger + log(exp(log_weight - larger) + exp(more - larger))
        if doublings > 1:
            # Each half with the next step of the other, as Stan asks as well.
            for d in range(n):
                whole[d] += kept[0][0, d]
                added[d] += inner[d]
            stop = _turned(inverse_mass, other[2], kept[0][0], whole) or _turned(
                inverse_mass, inner, end[2], added
            )
            for d in range(n):
                whole[d] -= kept[0][0, d]
                added[d] -= inner[d]
        for d in range(n):
            whole[d] += added[d]
        if stop or _turned(inverse_mass, other[2], end[2], whole):
            stop = 1
    return accepted / max(steps, 1), steps, doublings, stop == 2, -energy


@compiled(fastmath={"contract"})
def run_chain(law, problem, start, scale, signed, settings, seed, kept, told, progress):  # type: ignore[no-untyped-def]
    """Sample a chain: tune it, then keep `kept` [draws, D] and what is `told` of each.

    Where `signed` the density is the same for both signs, and a coordinate's scale is that of its
    absolute value; where the scale is 1 it is taken for standard normal until draws say otherwise.
    settings are tuning draws and target acceptance; told has the columns log density, energy,
    acceptance, steps, doublings, step size, divergence. progress counts draws done, divergences
    after tuning and steps; a chain whose progress[3] is set from outside ends. Returns the draws
    that are kept.
    """
    tune, target = settings
    np.random.seed(seed)  # noqa: NPY002 (numba's own, one for each thread)
    n = len(start)
    draws = len(kept)
    point, slope, value = start.copy(), np.empty(n), np.empty(1)
    z = np.empty((len(problem[0].subject), len(problem[0].mean)))
    value[0] = law(point, slope, z, *problem)
    here = point, slope, value
    inverse_mass, middle = scale * scale, start.copy()
    for d in range(n):
        if scale[d] == 1.0:
            middle[d] = 0.0
    turns = ~signed
    metric = inverse_mass, middle, turns
    left = np.empty(n), np.empty(n), np.empty(n)
    right = np.empty(n), np.empty(n), np.empty(n)
    proposal = np.empty(n), np.empty(n)
    ladder = np.empty((MOST_DOUBLINGS + 1, n)), np.empty((MOST_DOUBLINGS + 1, n))
    sums = np.empty(n), np.empty(n), np.empty(n)
    room = left, right, proposal, ladder, sums, np.empty(n), z

    # Dual averaging of the log step (Hoffman and Gelman 2014), and two windows of points and
    # slopes, whose ratio of spreads is the scale of a normal law (Seyboldt, Carlson and Carpenter).
    step = n**-0.25
    centre, bar, average, count = log(2.0 * step), 0.0, log(step), 0
    seen = np.zeros(2)
    moments = np.zeros((2, 4, n))
    last = tune - max(tune // 6, min(tune, 30))  # from here on the masses stay
    since = 0
    for draw in range(tune + draws):
        if progress[3]:
            return max(draw - tune, 0)
        deepest = MOST_DOUBLINGS
        found = _transition(law, problem, here, metric, step, deepest, room)
        acceptance, steps, doublings, diverged, energy = found
        progress[0] = draw + 1
        progress[2] += steps
        if draw >= tune:
            progress[1] += diverged
            _copy(point, kept[draw - tune])
            row = told[draw - tune]
            row[0], row[1], row[2], row[3] = value[0], energy, acceptance, steps
            row[4], row[5], row[6] = doublings, step, diverged
            continue
        count += 1
        weight = 1.0 / (count + 10.0)
        bar = (1.0 - weight) * bar + weight * (target - acceptance)
        log_step = centre - sqrt(count) / 0.05 * bar
        power = count**-0.75
        average = power * log_step + (1.0 - power) * average
        step = exp(log_step)
        if draw < last:
            for window in range(2):
                seen[window] += 1.0
                for d in range(n):
                    sign = -1.0 if signed[d] and point[d] < 0.0 else 1.0
                    for part, x in ((0, sign * point[d]), (2, sign * slope[d])):
                        away = x - moments[window, part, d]
                        moments[window, part, d] += away / seen[window]
                        moments[window, part + 1, d] += away * (x - moments[window, part, d])
            since += 1
            if seen[0] >= 10.0:
                for d in range(n):
                    spread, steep = moments[0, 1, d], moments[0, 3, d]
                    if turns[d]:
                        sure = seen[0] / (seen[0] + 20.0)
                        inverse_mass[d] = (
                            sure * spread / seen[0] + (1.0 - sure) * scale[d] * scale[d]
                        )
                        middle[d] = sure * moments[0, 0, d] if scale[d] == 1.0 else moments[0, 0, d]
                    elif spread > 0.0 and steep > 0.0:
                        inverse_mass[d] = sqrt(spread / steep)
            if since >= (10 if draw < 0.2 * tune else 80):
                seen[0], seen[1], since = seen[1], 0.0, 0
                for part in range(4):
                    _copy(moments[1, part], moments[0, part])
                    for d in range(n):
                        moments[1, part, d] = 0.0
        if draw == last:
            centre, bar, count = average, 0.0, 0
        if draw == tune - 1:
            step = exp(average)
    return draws


@compiled()
def rows_of(law, problem, points):  # type: ignore[no-untyped-def]
    """Return the parameters of all rows at points [S, D], on the unconstrained scale, [S, M, K]."""
    z = np.empty((len(points), len(problem[0].subject), len(problem[0].mean)))
    slope = np.empty(points.shape[1])
    for s in range(len(points)):
        law(points[s], slope, z[s], *problem)
    return z
