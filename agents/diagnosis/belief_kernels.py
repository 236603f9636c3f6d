"""The one kernel of all deciders: what is stated of a belief, and what is decided by it.

It is written by hand: how a context is misread is integrated out over the cells of all that was
stated in it, and decisions that are alike are counted, so that it is no recursion over trials.
"""

from __future__ import annotations

from math import exp, floor, log, log1p, pi, sqrt
from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.polynomial import chebyshev
from scipy.special import erfcx, logit, ndtri

from knownminds.agents.compiled import compiled
from knownminds.agents.exponential import exp_of_negative

LANES = 32  # as in sequences.py
TINY = 1e-300  # whose logarithm and quantile are finite
EDGE = 1e-9  # probabilities are held this far from 0 and 1 where their log odds are taken
NARROWEST = 1e-9  # least standard deviation on the scale of log odds
STEEPEST = 700.0  # e to the power of it is finite
NARROW = 0.02  # cells of less than so many standard deviations are integrated by a series
FAR = 1e9  # log odds beyond which nothing lies: the ends of the outermost cells
LEAST = 1e-140  # a share of a cell counts at least this
SMALL = 1e-150  # a product of shares is rescaled below this
LARGE, LOG_SMALL = 1.0 / SMALL, log(SMALL)
HALF_LOG_2_PI = 0.5 * log(2.0 * pi)
HEIGHT = exp(-HALF_LOG_2_PI)  # of the standard normal density at 0

# The share of a standard normal law above x >= 0, over e**(-x**2 / 2), is a polynomial in
# t = (x - 4) / (x + 4), over x + 4: to 1e-14, by interpolation at Chebyshev points.
BEND = 4.0


def _of_tail(t: Any) -> Any:
    x = BEND * (1.0 + t) / (1.0 - t)
    return (x + BEND) * erfcx(x / sqrt(2.0)) / 2.0


TAIL = tuple(chebyshev.cheb2poly(chebyshev.chebinterpolate(_of_tail, 20)).tolist())

YES, DEFER, NO = 0, 1, 2
BELIEF, DECISION, PART, CONDITIONAL, DEALT = 0, 1, 2, 3, 4  # what a trial asks for
PLAIN = 0  # the elicitation whose answer goes with the decision

# The parameters that kernels know of, by position. The `columns` of a model say in which column of
# theta each stands; -1: it has the value in ABSENT.
N_FULL = 10
U_YES_1, U_YES_0, U_DEFER_1, U_DEFER_0, GAMMA, C, D, S_BETWEEN, S_REPORT, DIAL = range(N_FULL)
ABSENT = np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])

# How a probability is weighted, and which rule of a rational decider is broken.
LINEAR, PRELEC, TVERSKY_KAHNEMAN = 0, 1, 2
RATIONAL, PEEKS, MISREPORTS, INCOHERENT, FRAMED, NON_MONOTONE = range(6)

# How far an elicitation moves a belief that hangs on the frame, in units of the dial: plain,
# squared error, absolute error, Bayesian.
FRAMES = np.array([0.0, 1.0, -1.0, 0.5])

# Stated probabilities are multiples of .01. Those told as k / 100 lie in cell k: its ends in log
# odds, and the logarithm of its width as a probability.
N_CELLS = 101
_ENDS = np.concatenate([[0.0], (np.arange(100) + 0.5) / 100.0, [1.0]])
LOW, HIGH = (np.clip(logit(ends), -FAR, FAR) for ends in (_ENDS[:-1], _ENDS[1:]))
WIDTH = np.diff(_ENDS)
NOTHING_LEFT = 1e-6  # what further states of a distribution can have, at most, where none is left
LOG_WIDTH = np.log(WIDTH)

# What the kernel carries along the trials, one row of LANES numbers each, all in one flat buffer:
# only then can the compiler prove that rows do not overlap, and turn loops over lanes into vector
# instructions. The first ten rows are the parameters, in the order above.
(
    SUM, PRODUCT, KEPT, SHARE, BY_LAPSE, NOISE, OFF, LEFT, LIVE, TURNS, MEAN, SLOPE, HELD, E_1, E_2,
    E_3, V_1, V_2, V_3, OWN, SHIFT, SHRINK, BY_SHARE, W, W_BY_GAMMA, W_BY_DIAL, TILT,
) = (k * LANES for k in range(N_FULL, 37))  # fmt: skip
# The present trial: a row for each column of `places_of`.
N_COLUMNS = 8
AT_KIND, AT_ODDS, AT_MORE, AT_MOVED, AT_LOW, AT_HIGH, AT_PLUS, AT_PER = (
    k * LANES for k in range(37, 37 + N_COLUMNS)
)
# What decisions tell of each parameter: ten rows.
PUSH = 45 * LANES
# Six rows each: the slopes in c, d, s_between, s_report, the dial and the lapse rate.
N_SLOPES = 6
BY_C, BY_D, BY_BETWEEN, BY_REPORT, BY_DIAL, BY_RATE = range(N_SLOPES)
BASE_BY, DIRECT_BY, OFF_BY, LEFT_BY, PUSH_BY = ((55 + k * N_SLOPES) * LANES for k in range(5))
N_ROWS = 55 + 5 * N_SLOPES


@compiled(fastmath={"contract"})
def log_odds(p):  # type: ignore[no-untyped-def]
    """Return the log odds of a probability, held away from 0 and 1."""
    p = min(max(p, EDGE), 1.0 - EDGE)
    return log(p / (1.0 - p))


@compiled(fastmath={"contract"})
def share_of(x):  # type: ignore[no-untyped-def]
    """Return the probability with these log odds."""
    e = exp(-min(abs(x), STEEPEST))
    return (1.0 if x > 0.0 else e) / (1.0 + e)


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _tail(x):  # type: ignore[no-untyped-def]
    """Return the share of a standard normal law above x >= 0, over e**(-x**2 / 2)."""
    r = 1.0 / (x + BEND)
    t = (x - BEND) * r
    t2 = t * t
    t4 = t2 * t2
    low = (TAIL[0] + t * TAIL[1]) + t2 * (TAIL[2] + t * TAIL[3])
    low += t4 * ((TAIL[4] + t * TAIL[5]) + t2 * (TAIL[6] + t * TAIL[7]))
    middle = (TAIL[8] + t * TAIL[9]) + t2 * (TAIL[10] + t * TAIL[11])
    middle += t4 * ((TAIL[12] + t * TAIL[13]) + t2 * (TAIL[14] + t * TAIL[15]))
    high = (TAIL[16] + t * TAIL[17]) + t2 * (TAIL[18] + t * TAIL[19]) + t4 * TAIL[20]
    t8 = t4 * t4
    return r * (low + t8 * (middle + t8 * high))


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _log(x):  # type: ignore[no-untyped-def]
    """Return log x for normal x > 0 to 1e-15, in operations that exist for vectors.

    x = 2**n y with y from sqrt(1/2) to sqrt(2), n read off the exponent (put below 2**52, whose
    lowest bits count ones); log y = 2 artanh((y - 1) / (y + 1)) by its series.
    """
    bits = np.float64(x).view(np.int64) - 4604544271217802189  # those of sqrt(1/2)
    n = np.int64(((bits >> 52) + 2048) | 4841369599423283200).view(np.float64)
    n -= 4503599627370496.0 + 2048.0
    y = np.int64((bits & 4503599627370495) + 4604544271217802189).view(np.float64)
    s = (y - 1.0) / (y + 1.0)
    s2 = s * s
    s4 = s2 * s2
    low = (2.0 + s2 * (2 / 3)) + s4 * (2 / 5 + s2 * (2 / 7))
    high = (2 / 9 + s2 * (2 / 11)) + s4 * (2 / 13 + s2 * (2 / 15))
    end = (2 / 17 + s2 * (2 / 19)) + s4 * (2 / 21)
    s8 = s4 * s4
    return n * 0.6931471805599453 + s * (low + s8 * (high + s8 * end))


@compiled(fastmath={"contract"})
def weight_of(weighting, gamma, p):  # type: ignore[no-untyped-def]
    """Return the weight w(p) and its slope in gamma."""
    if weighting == LINEAR:
        return p, 0.0
    if p <= 0.0:
        return 0.0, 0.0
    if p >= 1.0:
        return 1.0, 0.0
    if weighting == PRELEC:
        rarity = -log(p)
        if rarity <= 0.0:
            return 1.0, 0.0
        power = gamma * log(rarity)
        if power > 6.6:  # e**-735 is 0
            return 0.0, 0.0
        raised = exp(max(power, -STEEPEST))
        w = exp(-raised)
        return w, -w * raised * log(rarity)
    of_p, of_q = gamma * log(p), gamma * log1p(-p)
    most = max(of_p, of_q)
    from_p, from_q = exp(of_p - most), exp(of_q - most)
    log_sum = most + log(from_p + from_q)
    w = exp(max(of_p - log_sum / gamma, -STEEPEST))
    mean_log = (from_p * log(p) + from_q * log1p(-p)) / (from_p + from_q)
    return w, w * (log(p) + log_sum / gamma**2 - mean_log / gamma)


@compiled(fastmath={"contract"})
def _choices(full, violation, w, p):  # type: ignore[no-untyped-def]
    """Return the probabilities of Yes and Defer, given the weight w of a probability p."""
    yes = full[U_YES_0] + (full[U_YES_1] - full[U_YES_0]) * w
    defer = full[U_DEFER_0] + (full[U_DEFER_1] - full[U_DEFER_0]) * w
    if violation == NON_MONOTONE:
        defer += full[DIAL] * (2.0 * p - 1.0) ** 2
    most = max(yes, defer, 0.0)
    e_yes, e_defer, e_no = exp(yes - most), exp(defer - most), exp(-most)
    total = e_yes + e_defer + e_no
    return e_yes / total, e_defer / total, e_no / total


@compiled(fastmath={"contract"})
def _moved(violation, question, elicitation):  # type: ignore[no-untyped-def]
    """Return how far the dial moves a stated belief about the state, in log odds."""
    if violation == MISREPORTS:
        return 1.0 if question == BELIEF else 0.0
    if violation == INCOHERENT:
        return 1.0 if question == CONDITIONAL else 0.0
    if violation == FRAMED and question == BELIEF and 0.0 <= elicitation < 4.0:
        return FRAMES[int(elicitation)]
    return 0.0


@compiled(fastmath={"contract"})
def _part(believed, posterior, marginal, conditional):  # type: ignore[no-untyped-def]
    """Return the believed probability of a part, and its slope in the belief about the state.

    Who knows P(part | state) and believes the state with some probability expects the part with
    P(part) (believed q / m + (1 - believed) (1 - q) / (1 - m)): m is the true probability of the
    state, q that given the part.
    """
    m = min(max(marginal, EDGE), 1.0 - EDGE)
    q = min(max(conditional, EDGE), 1.0 - EDGE)
    if q == m:
        return posterior, 0.0
    present, absent = q / m, (1.0 - q) / (1.0 - m)
    return posterior * (believed * present + (1.0 - believed) * absent), posterior * (
        present - absent
    )


@compiled(fastmath={"contract"})
def given(posterior, marginal, conditional):  # type: ignore[no-untyped-def]
    """Return the probability of a part given the state, and given its absence; see `_part`."""
    m = min(max(marginal, EDGE), 1.0 - EDGE)
    q = min(max(conditional, EDGE), 1.0 - EDGE)
    if q == m:
        return posterior, posterior
    return posterior * q / m, posterior * (1.0 - q) / (1.0 - m)


@compiled(fastmath={"contract"})
def _continued(believed, of_present, of_absent, present, absent):  # type: ignore[no-untyped-def]
    """Return the log odds of a part against all parts after it, of a believed state.

    `present` and `absent` are what it and those after it have, given the state and given its
    absence. By what is not yet dealt out the state is believed with other odds; given these it is
    as with any part.
    """
    present, absent = max(present, EDGE), max(absent, EDGE)
    f = share_of(believed + log(present / absent))
    of_absent = min(of_absent / absent, 1.0)
    return log_odds(of_absent + f * (min(of_present / present, 1.0) - of_absent))


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _begin(z, theta, lapse, columns, violation, row):  # type: ignore[no-untyped-def]
    """Set the lanes of a block to what is known before any trial."""
    for k in range(N_ROWS * LANES):
        z[k] = 0.0
    for i in range(LANES):
        k = row[i]
        for j in range(N_FULL):
            z[j * LANES + i] = theta[k, columns[j]] if columns[j] >= 0 else ABSENT[j]
        between, report = z[S_BETWEEN * LANES + i], z[S_REPORT * LANES + i]
        z[PRODUCT + i] = 1.0
        z[SHARE + i] = 0.0 if lapse is None else lapse[k]
        z[KEPT + i] = 1.0 - z[SHARE + i]
        z[NOISE + i] = report**2
        z[LEFT + i] = between**2
        z[LEFT_BY + BY_BETWEEN * LANES + i] = 2.0 * between
        z[DIRECT_BY + BY_REPORT * LANES + i] = 2.0 * report
        z[BASE_BY + BY_C * LANES + i] = 1.0
        if violation == MISREPORTS:
            z[TILT + i] = exp(min(max(z[DIAL * LANES + i], -STEEPEST), STEEPEST))


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _is_steady(first, last, kind, odds):  # type: ignore[no-untyped-def]
    """Say whether all that is stated in a block is about the same odds, lane by lane."""
    steady = True
    for t in range(first + 1, last):
        for i in range(LANES):
            same = odds[t, i] == odds[first, i]
            steady = steady and (same or kind[t, i] < 0.0 or kind[t, i] == DECISION)
    return steady


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _expect(z):  # type: ignore[no-untyped-def]
    """Work out the log odds that would be stated without noise."""
    for i in range(LANES):
        what = z[AT_KIND + i]
        believes = what == BELIEF
        mean = z[C * LANES + i] + z[D * LANES + i] * z[AT_ODDS + i]
        z[BASE_BY + BY_D * LANES + i] = z[AT_ODDS + i]
        z[BASE_BY + BY_DIAL * LANES + i] = z[AT_MOVED + i] if believes else 0.0
        z[LIVE + i] = 1.0 if believes or what == PART else 0.0
        z[TURNS + i] = 1.0 if believes else 0.0
        z[SLOPE + i] = 1.0
        own = mean + z[AT_MORE + i] + z[DIAL * LANES + i] * z[AT_MOVED + i]
        z[MEAN + i] = own if believes else mean


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _expect_part(z):  # type: ignore[no-untyped-def]
    """Do so for parts, whose believed probability is a straight line in that of the state."""
    for i in range(LANES):
        x = z[MEAN + i] + z[OFF + i] + z[AT_PLUS + i]
        e = exp_of_negative(-abs(x))
        whole = 1.0 / (1.0 + e)
        believed = (1.0 if x > 0.0 else e) * whole
        p = z[AT_MOVED + i] + believed * (z[AT_MORE + i] - z[AT_MOVED + i])
        p = min(max(p, EDGE), 1.0 - EDGE)
        by_p = (z[AT_MORE + i] - z[AT_MOVED + i]) * e * whole * whole
        part = z[AT_KIND + i] == PART
        told = _log(p / (1.0 - p)) - z[OFF + i]
        z[SLOPE + i] = by_p / (p * (1.0 - p)) if part else 1.0
        z[MEAN + i] = told if part else z[MEAN + i]


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _cut_off(near, far):  # type: ignore[no-untyped-def]
    """Return the share of a standard normal law between two ends, and what it is cut off there.

    The share and the height of the law at the near end are over e**(-near**2 / 2) where both ends
    are on one side; k_1 to k_4 are the cumulants, of the first two those less 0 and 1.
    """
    h = far - near
    m = 0.5 * (near + far)
    outside = near >= 0.0
    at_near = exp_of_negative(-0.5 * near * near)
    fallen = exp_of_negative(-h * m if outside else -0.5 * far * far)
    above_near = _tail(abs(near))
    above_far = _tail(far) * fallen
    # The probability of the cell, over e**(-near**2 / 2) where it is outside.
    wide = (above_near if outside else 1.0 - above_near * at_near) - above_far
    h2 = h * h
    m2 = m * m
    narrow = h * max(1.0, m) < NARROW
    h4 = h2 * h2
    # Divisors are turned into factors, which vectors have cheaper.
    x = (m2 - 1.0) * h2 * (1 / 24)
    x -= h4 * (m2 * m2 * (1 / 2880) + m2 * (1 / 720) - 1 / 1440)
    x -= 0.5 * (h * (m - 0.25 * h) if outside else m2)
    x = x if narrow else 0.0
    series = 1.0 + x * (1.0 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120)))))
    share = max(h * HEIGHT * series if narrow else wide, LEAST)
    height = HEIGHT / share
    at_a = height * (1.0 if outside else at_near)
    at_b = height * fallen
    # Moments and cumulants of the law cut off at the ends of the cell.
    near_a = near * at_a
    far_b = far * at_b
    k_1 = at_a - at_b
    moment_2 = 1.0 + near_a - far_b
    moment_3 = 2.0 * k_1 + near * near_a - far * far_b
    moment_4 = 3.0 * moment_2 + near * near * near_a - far * far * far_b
    square = k_1 * k_1
    k_2 = min(max(near_a - far_b - square, -1.0), 0.0)
    k_3 = moment_3 - 3.0 * k_1 * moment_2 + 2.0 * k_1 * square
    k_4 = moment_4 - 4.0 * k_1 * moment_3 - 3.0 * moment_2 * moment_2
    k_4 += square * (12.0 * moment_2 - 6.0 * square)
    by_m = m * (1.0 - h2 * (1 / 12)) + h4 * m * (m2 * (1 / 720) + 1 / 360)
    k_1 = by_m if narrow else k_1
    k_2 = h2 * (1 / 12) - 1.0 - h4 * (m2 * (1 / 240) + 1 / 360) if narrow else k_2
    k_3 = h4 * m * (1 / 120) if narrow else k_3
    k_4 = -h4 * (1 / 120) if narrow else k_4
    return share, at_near, k_1, k_2, k_3, k_4


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _take_cell(z, lapse):  # type: ignore[no-untyped-def]
    """Count the cells that were stated, and what they tell of how the context is misread."""
    for i in range(LANES):
        live = z[LIVE + i]
        left = z[LEFT + i]
        variance = z[TURNS + i] * left + z[NOISE + i]
        variance = max(variance, NARROWEST * NARROWEST)
        inverse = 1.0 / sqrt(variance)
        mean = z[MEAN + i] + z[OFF + i]
        # Lanes that state nothing go by another cell, to no avail.
        from_low = z[AT_LOW + i] if live > 0.0 else -1.0
        to_high = z[AT_HIGH + i] if live > 0.0 else 1.0
        outermost = from_low == -FAR or to_high == FAR
        a = (from_low - mean) * inverse
        b = (to_high - mean) * inverse
        # Intervals are mirrored to the upper side, whose tail is known to all digits.
        upper = a + b > 0.0
        near = a if upper else -b
        far = b if upper else -a
        side = 1.0 if upper else -1.0
        outside = near >= 0.0
        share, at_near, k_1, k_2, k_3, k_4 = _cut_off(near, far)
        inverse_2 = inverse * inverse
        e_1 = side * k_1 * inverse
        e_2 = k_2 * inverse_2
        e_3 = side * k_3 * inverse_2 * inverse
        e_4 = k_4 * inverse_2 * inverse_2
        z[E_1 + i] = e_1
        z[E_2 + i] = e_2
        z[E_3 + i] = e_3
        z[V_1 + i] = 0.5 * (e_2 + e_1 * e_1)
        z[V_2 + i] = 0.5 * e_3 + e_1 * e_2
        z[V_3 + i] = 0.5 * e_4 + e_2 * e_2 + e_1 * e_3
        turns = z[TURNS + i]
        shift = turns * left * e_1
        shrink = turns * left * left * e_2
        z[SHIFT + i] = shift
        z[SHRINK + i] = shrink
        z[SUM + i] -= live * (LOG_WIDTH[0] if outermost else LOG_WIDTH[1])
        if lapse is None:
            z[SUM + i] -= 0.5 * live * near * near if outside else 0.0
            product = z[PRODUCT + i] * (share if live > 0.0 else 1.0)
            z[OFF + i] += shift
            z[LEFT + i] = max(left + shrink, 0.0)
        else:
            # What is stated moves what is believed of the context by the probability
            # that it was no lapse.
            width = abs(z[AT_PER + i]) * (WIDTH[0] if outermost else WIDTH[1])
            held = share * (at_near if outside else 1.0)
            mixed = max(z[KEPT + i] * held + z[SHARE + i] * width, LEAST)
            own = z[KEPT + i] * held / mixed
            z[OWN + i] = own
            z[BY_SHARE + i] = -held * width / (mixed * mixed)
            z[BY_LAPSE + i] += live * (width - held) / mixed
            product = z[PRODUCT + i] * (mixed if live > 0.0 else 1.0)
            z[OFF + i] += own * shift
            spread = own * (shrink + (1.0 - own) * shift * shift)
            z[LEFT + i] = max(left + spread, 0.0)
        small = product < SMALL
        z[PRODUCT + i] = product * LARGE if small else product
        z[SUM + i] += LOG_SMALL if small else 0.0
        z[HELD + i] = turns * left


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _take_slope(z, lapse, j):  # type: ignore[no-untyped-def]
    """Carry the slopes in a parameter of beliefs on."""
    base, direct = BASE_BY + j * LANES, DIRECT_BY + j * LANES
    of_off, of_left, push = (
        OFF_BY + j * LANES, LEFT_BY + j * LANES, PUSH_BY + j * LANES
    )  # fmt: skip
    rate = 1.0 if j == BY_RATE else 0.0
    for i in range(LANES):
        turns = z[TURNS + i]
        left = z[HELD + i]
        left_by = turns * z[of_left + i]
        mean_by = z[SLOPE + i] * (z[base + i] + z[of_off + i])
        variance_by = left_by + z[direct + i]
        own_by = z[E_1 + i] * mean_by + z[V_1 + i] * variance_by
        e_1_by = z[E_2 + i] * mean_by + z[V_2 + i] * variance_by
        e_2_by = z[E_3 + i] * mean_by + z[V_3 + i] * variance_by
        shift_by = left_by * z[E_1 + i] + left * e_1_by
        shrink_by = left * (2.0 * left_by * z[E_2 + i] + left * e_2_by)
        if lapse is None:
            z[push + i] += z[LIVE + i] * own_by
            z[of_off + i] += shift_by
            z[of_left + i] += shrink_by
        else:
            own = z[OWN + i]
            shift = z[SHIFT + i]
            z[push + i] += z[LIVE + i] * own * own_by
            share_by = own * (1.0 - own) * own_by + rate * z[BY_SHARE + i]
            z[of_off + i] += share_by * shift + own * shift_by
            spread_by = share_by * (z[SHRINK + i] + (1.0 - 2.0 * own) * shift * shift)
            spread_by += own * (shrink_by + 2.0 * (1.0 - own) * shift * shift_by)
            z[of_left + i] += spread_by


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _weigh(z, weighting, violation):  # type: ignore[no-untyped-def]
    """Weigh the probabilities that are decided by."""
    # p, what was chosen, how often, in which state, and log(-log p).
    if weighting == PRELEC:
        for i in range(LANES):
            power = min(z[GAMMA * LANES + i] * z[AT_HIGH + i], 6.6)  # e**-735 is 0
            raised = exp_of_negative(power)
            w = exp_of_negative(-raised)
            z[W + i] = w
            z[W_BY_GAMMA + i] = -w * raised * z[AT_HIGH + i]
    elif weighting == TVERSKY_KAHNEMAN:
        for i in range(LANES):
            if z[AT_KIND + i] == DECISION:
                z[W + i], z[W_BY_GAMMA + i] = weight_of(
                    weighting, z[GAMMA * LANES + i], z[AT_ODDS + i]
                )
    elif violation == PEEKS:
        for i in range(LANES):
            z[W_BY_DIAL + i] = z[AT_LOW + i] - 0.5
            z[W + i] = z[AT_ODDS + i] + z[DIAL * LANES + i] * (z[AT_LOW + i] - 0.5)
    elif violation == MISREPORTS:
        for i in range(LANES):
            p = z[AT_ODDS + i] if z[AT_KIND + i] == DECISION else 0.5
            p = p / (p + (1.0 - p) * z[TILT + i])
            z[W + i] = p
            z[W_BY_DIAL + i] = -p * (1.0 - p)
    else:
        for i in range(LANES):
            z[W + i] = z[AT_ODDS + i]


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _take_decision(z, lapse, violation):  # type: ignore[no-untyped-def]
    """Count the decisions, with their slopes."""
    for i in range(LANES):
        acts = z[AT_KIND + i] == DECISION
        decided = z[AT_MOVED + i] if acts else 0.0
        w = z[W + i] if acts else 0.0
        square = (2.0 * w - 1.0) * (2.0 * w - 1.0)
        bend = z[DIAL * LANES + i] if violation == NON_MONOTONE else 0.0
        yes_by = z[U_YES_1 * LANES + i] - z[U_YES_0 * LANES + i]
        defer_by = z[U_DEFER_1 * LANES + i] - z[U_DEFER_0 * LANES + i]
        yes = z[U_YES_0 * LANES + i] + yes_by * w
        defer = z[U_DEFER_0 * LANES + i] + defer_by * w + bend * square
        top = max(max(yes, defer), 0.0)
        e_yes = exp_of_negative(yes - top)
        e_defer = exp_of_negative(defer - top)
        e_no = exp_of_negative(-top)
        sum_of = e_yes + e_defer + e_no
        whole = 1.0 / sum_of
        is_yes = 1.0 if z[AT_MORE + i] == YES else 0.0
        is_defer = 1.0 if z[AT_MORE + i] == DEFER else 0.0
        if lapse is None:
            own = is_yes * yes + is_defer * defer - top - _log(sum_of)
            z[SUM + i] += decided * own
            scale = decided
        else:
            is_no = 1.0 - is_yes - is_defer
            chosen = (is_yes * e_yes + is_defer * e_defer + is_no * e_no) * whole
            mixed = max(z[KEPT + i] * chosen + z[SHARE + i] * (1 / 3), LEAST)
            z[SUM + i] += decided * _log(mixed)
            scale = decided * z[KEPT + i] * chosen / mixed
            z[BY_LAPSE + i] += decided * (1.0 / 3.0 - chosen) / mixed
        g_yes = scale * (is_yes - e_yes * whole)
        g_defer = scale * (is_defer - e_defer * whole)
        z[PUSH + U_YES_1 * LANES + i] += g_yes * w
        z[PUSH + U_YES_0 * LANES + i] += g_yes * (1.0 - w)
        z[PUSH + U_DEFER_1 * LANES + i] += g_defer * w
        z[PUSH + U_DEFER_0 * LANES + i] += g_defer * (1.0 - w)
        by_w = g_yes * yes_by + g_defer * defer_by
        z[PUSH + GAMMA * LANES + i] += by_w * z[W_BY_GAMMA + i] if acts else 0.0
        z[PUSH + DIAL * LANES + i] += by_w * z[W_BY_DIAL + i] if acts else 0.0
        if violation == NON_MONOTONE:
            z[PUSH + DIAL * LANES + i] += g_defer * square


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def _gather(z, steady, columns, row, odds, n, total, gradient):  # type: ignore[no-untyped-def]
    """Add what the lanes of a block have come to."""
    for i in range(LANES):
        k = row[i]
        total[k] += z[SUM + i] + log(z[PRODUCT + i])
        if steady:
            z[PUSH_BY + BY_D * LANES + i] = z[PUSH_BY + BY_C * LANES + i] * odds[i]
        for j in range(N_FULL):
            if columns[j] >= 0:
                push = z[PUSH + j * LANES + i]
                if j >= C:  # of these, statements tell too
                    push += z[PUSH_BY + (j - C) * LANES + i]
                gradient[k, columns[j]] += push
        if gradient.shape[1] > n:  # the last is that of the lapse rate
            gradient[k, n] += z[BY_LAPSE + i] + z[PUSH_BY + BY_RATE * LANES + i]


@compiled(fastmath={"contract"})
def _of_session(theta, lapse, model, row, start, trials):  # type: ignore[no-untyped-def]
    """Log-likelihood [N] and gradient of theta [N, P] of what `places_of` makes of trials.

    How a context is misread is unknown: s_between N(0, 1) in log odds. Each statement has its
    probability given those before it, after each of which the misreading is taken as normal, with
    the mean and the variance it has given the cell: off + left l' and left + left**2 l'', where l
    is the log probability of the cell and slopes are those in the mean. As l solves an equation
    of diffusion, slopes in the variance follow from those in the mean, of which four are needed:
    cumulants of the law cut off at the ends of the cell.
    """
    columns, weighting, violation = model
    kind, odds, more, moved, low, high, plus, per = trials
    total, n = np.zeros(len(theta)), theta.shape[1]
    gradient = np.zeros((len(theta), n if lapse is None else n + 1))
    z = np.zeros(N_ROWS * LANES)
    states_dial = violation in (MISREPORTS, INCOHERENT, FRAMED)
    for block in range(len(row)):
        first, last = start[block], start[block + 1]
        if first == last:
            continue
        _begin(z, theta, lapse, columns, violation, row[block])
        # Where the odds of a context are the same throughout, the slope in d follows from that
        # in c.
        steady = _is_steady(first, last, kind, odds)
        for t in range(first, last):
            n_beliefs, n_decisions, n_parts = 0, 0, 0
            for i in range(LANES):
                n_beliefs += 1 if kind[t, i] == BELIEF else 0
                n_decisions += 1 if kind[t, i] == DECISION else 0
                n_parts += 1 if kind[t, i] == PART else 0
            # One loop, which is too long to be written out lane by lane.
            for i in range(LANES):
                z[AT_KIND + i], z[AT_ODDS + i] = kind[t, i], odds[t, i]
                z[AT_MORE + i], z[AT_MOVED + i] = more[t, i], moved[t, i]
                z[AT_LOW + i], z[AT_HIGH + i] = low[t, i], high[t, i]
                z[AT_PLUS + i], z[AT_PER + i] = plus[t, i], per[t, i]
            if n_beliefs or n_parts:
                _expect(z)
                if n_parts:
                    _expect_part(z)
                _take_cell(z, lapse)
                for j in range(N_SLOPES):
                    unused = (j == BY_DIAL and not states_dial) or (j == BY_RATE and lapse is None)
                    if not (unused or (j == BY_D and steady)):
                        _take_slope(z, lapse, j)
            if n_decisions:
                _weigh(z, weighting, violation)
                _take_decision(z, lapse, violation)
        _gather(z, steady, columns, row[block], odds[first], n, total, gradient)
    return total, gradient


@compiled(fastmath={"contract"})
def meant(full, violation, question, elicitation, believed, exact, left):  # type: ignore[no-untyped-def]
    """Return the log odds that are stated without noise, given those of the state as believed.

    `exact` are the probabilities posterior, marginal and conditional; `left` what the states of a
    distribution that are not yet dealt out have, given the state and given its absence.
    """
    posterior, marginal, conditional = exact
    if question == DEALT:
        of_present, of_absent = given(posterior, marginal, conditional)
        return _continued(believed, of_present, of_absent, left[0], left[1])
    if question == PART:
        p, _ = _part(share_of(believed), posterior, marginal, conditional)
        return log_odds(p)
    told = believed + full[DIAL] * _moved(violation, question, elicitation)
    if question == CONDITIONAL:
        told += log_odds(posterior) - log_odds(marginal)
    return told


@compiled(fastmath={"contract"})
def decided(full, weighting, violation, p, state):  # type: ignore[no-untyped-def]
    """Return the probabilities of Yes, Defer and No at a believed probability of the state."""
    if violation == PEEKS:
        p += full[DIAL] * (state - 0.5)
    w, _ = weight_of(weighting, full[GAMMA], p)
    return _choices(full, violation, w, p)


@compiled(fastmath={"contract"})
def _session(theta, lapse, model, row, start, draws, design):  # type: ignore[no-untyped-def]
    """Act and answer; the first uniform is that of an action or decides on a lapse of an answer.

    Of a distribution each state gets a share of the hundredths that are left, the last all.
    """
    columns, weighting, violation = model
    uniforms, noise = draws
    question, elicitation, part, posterior, marginal, conditional, idiosyncrasy, state = design
    action = np.full((start[-1], LANES), -1.0)
    response = np.full((start[-1], LANES), np.nan)
    full = np.empty(N_FULL)
    for block in range(len(row)):
        for i in range(LANES):
            k = row[block, i]
            for j in range(N_FULL):
                full[j] = theta[k, columns[j]] if columns[j] >= 0 else ABSENT[j]
            share = 0.0 if lapse is None else lapse[k]
            hundredths, present, absent = 100.0, 1.0, 1.0
            for t in range(start[block], start[block + 1]):
                asked = question[t, i]
                if asked < 0.0:
                    continue
                exact = (posterior[t, i], marginal[t, i], conditional[t, i])
                believed = full[C] + full[D] * log_odds(exact[1])
                believed += full[S_BETWEEN] * idiosyncrasy[t, i]
                if asked == DECISION:
                    p = share_of(believed)
                    yes, defer, _ = decided(full, weighting, violation, p, state[t, i])
                    yes = (1.0 - share) * yes + share / 3.0
                    defer = (1.0 - share) * defer + share / 3.0
                    u = uniforms[t, 0, i]
                    action[t, i] = YES if u < yes else (DEFER if u < yes + defer else NO)
                    continue
                if asked == DEALT and part[t, i] == 0.0:
                    hundredths, present, absent = 100.0, 1.0, 1.0
                told = meant(
                    full, violation, asked, elicitation[t, i], believed, exact, (present, absent)
                )
                answer = share_of(told + full[S_REPORT] * noise[t, i])
                if uniforms[t, 0, i] < share:
                    answer = uniforms[t, 1, i]
                if asked != DEALT:
                    response[t, i] = floor(100.0 * answer + 0.5) / 100.0
                    continue
                of_present, of_absent = given(exact[0], exact[1], exact[2])
                dealt = hundredths
                if max(present - of_present, absent - of_absent) > NOTHING_LEFT:
                    dealt = floor(hundredths * answer + 0.5)
                response[t, i] = dealt / 100.0
                hundredths -= dealt
                present, absent = present - of_present, absent - of_absent
    return action, response


def likelihood(columns: tuple[int, ...], weighting: int, violation: int) -> Any:
    """Make the kernel of a model whose parameters stand in these columns of theta.

    All models call one compiled kernel; only where it becomes part of another compiled function
    is it compiled anew.
    """
    model = (columns, weighting, violation)

    def log_likelihood(theta, lapse, n_actions, row, start, *trials):  # type: ignore[no-untyped-def]
        return _of_session(theta, lapse, model, row, start, trials)

    kernel: Any = register_jitable(log_likelihood)
    kernel.py_func = log_likelihood  # as compiled functions have it
    return kernel


def simulation(columns: tuple[int, ...], weighting: int, violation: int) -> Any:
    """Make the simulating function of a model; see `likelihood`."""
    model = (columns, weighting, violation)

    def simulate(theta, lapse, n_actions, row, start, uniforms, *design):  # type: ignore[no-untyped-def]
        draws = uniforms, ndtri(np.maximum(uniforms[:, 1], TINY))
        return _session(theta, lapse, model, row, start, draws, design)

    return simulate
