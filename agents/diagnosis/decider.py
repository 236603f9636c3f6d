"""What deciders share: a belief about a state, words for it, and a choice that follows from it.

A session asks for numbers (what is the probability of the state?) and for decisions (Yes, Defer,
No). All deciders are one kernel, in which each has some of ten parameters.
"""

from __future__ import annotations

from math import exp, floor, log, log1p, pi, sqrt
from typing import Any, ClassVar

import numpy as np
from numba import njit
from numba.extending import register_jitable
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, expit, log_ndtr, logit, ndtri

from knownminds.agents.agent import Agent, Integers, Prepared
from knownminds.agents.exponential import exp_of_negative
from knownminds.agents.parameters import IDENTITY, POSITIVE, Array, Parameter
from knownminds.environments.environment import Choice, Observation

LANES = 32  # as in sequences.py
TINY = 1e-300  # whose logarithm and quantile are finite
EDGE = 1e-9  # probabilities are held this far from 0 and 1 where their log odds are taken
NARROWEST = 1e-9  # least standard deviation on the scale of log odds
STEEPEST = 700.0  # e to the power of it is finite
NARROW = 0.02  # cells of less than so many standard deviations are integrated by a series
FAR = 1e9  # log odds beyond which nothing lies: the ends of the outermost cells
LEAST = 1e-140  # a share of a cell counts at least this
RUN = 16  # so many decisions that differ are one sequence
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

# The parameters that kernels know of, by position. A model's `places` say in which column of theta
# each stands; -1: it has the value in ABSENT.
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
# instructions.
N_ROWS = 81
(
    SUM, PRODUCT, KEPT, SHARE, BY_LAPSE, NOISE, OFF, LEFT, LIVE, TURNS, MEAN, SLOPE, HELD, E_1, E_2,
    E_3, V_1, V_2, V_3, OWN, SHIFT, SHRINK, BY_SHARE, UTILITY_Y1, UTILITY_Y0, UTILITY_D1,
    UTILITY_D0, BEND_BY, W, W_BY_GAMMA, W_BY_DIAL, ACTED, PUSH_Y1, PUSH_Y0, PUSH_D1, PUSH_D0,
    PUSH_GAMMA, PUSH_DIAL, TILT, ADDED, SCALE, TURNED, EXPONENT, AT_KIND, AT_ODDS, AT_MORE,
    AT_MOVED, AT_LOW, AT_HIGH, AT_PLUS, AT_PER,
) = (k * LANES for k in range(51))  # fmt: skip
# Six rows each: the slopes in c, d, s_between, s_report, the dial and the lapse rate.
N_SLOPES = 6
BY_C, BY_D, BY_BETWEEN, BY_REPORT, BY_DIAL, BY_RATE = range(N_SLOPES)
BASE_BY, DIRECT_BY, OFF_BY, LEFT_BY, PUSH_BY = ((51 + k * N_SLOPES) * LANES for k in range(5))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _log_odds(p):  # type: ignore[no-untyped-def]
    p = min(max(p, EDGE), 1.0 - EDGE)
    return log(p / (1.0 - p))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _share(x):  # type: ignore[no-untyped-def]
    """Return the probability with these log odds."""
    e = exp(-min(abs(x), STEEPEST))
    return (1.0 if x > 0.0 else e) / (1.0 + e)


@njit(inline="always", error_model="numpy", fastmath={"contract"})
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


@njit(inline="always", error_model="numpy", fastmath={"contract"})
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _weight(weighting, gamma, p):  # type: ignore[no-untyped-def]
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _moved(violation, question, elicitation):  # type: ignore[no-untyped-def]
    """Return how far the dial moves a stated belief about the state, in log odds."""
    if violation == MISREPORTS:
        return 1.0 if question == BELIEF else 0.0
    if violation == INCOHERENT:
        return 1.0 if question == CONDITIONAL else 0.0
    if violation == FRAMED and question == BELIEF and 0.0 <= elicitation < 4.0:
        return FRAMES[int(elicitation)]
    return 0.0


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _given(posterior, marginal, conditional):  # type: ignore[no-untyped-def]
    """Return the probability of a part given the state, and given its absence; see `_part`."""
    m = min(max(marginal, EDGE), 1.0 - EDGE)
    q = min(max(conditional, EDGE), 1.0 - EDGE)
    if q == m:
        return posterior, posterior
    return posterior * q / m, posterior * (1.0 - q) / (1.0 - m)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _continued(believed, of_present, of_absent, present, absent):  # type: ignore[no-untyped-def]
    """Return the log odds of a part against all parts after it, of a believed state.

    `present` and `absent` are what it and those after it have, given the state and given its
    absence. By what is not yet dealt out the state is believed with other odds; given these it is
    as with any part.
    """
    present, absent = max(present, EDGE), max(absent, EDGE)
    f = _share(believed + log(present / absent))
    of_absent = min(of_absent / absent, 1.0)
    return _log_odds(of_absent + f * (min(of_present / present, 1.0) - of_absent))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _read(theta, places, full):  # type: ignore[no-untyped-def]
    for j in range(N_FULL):
        full[j] = theta[places[j]] if places[j] >= 0 else ABSENT[j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _of_session(  # type: ignore[no-untyped-def]
    theta, lapse, places, weighting, violation, row, start, kind, odds, more, moved, low, high,
    plus, per,
):  # fmt: skip
    """Log-likelihood [N] and gradient of theta [N, P] of what `places_of` makes of trials.

    How a context is misread is unknown: s_between N(0, 1) in log odds. Each statement has its
    probability given those before it, after each of which the misreading is taken as normal, with
    the mean and the variance it has given the cell: off + left l' and left + left**2 l'', where l
    is the log probability of the cell and slopes are those in the mean. As l solves an equation
    of diffusion, slopes in the variance follow from those in the mean, of which four are needed:
    cumulants of the law cut off at the ends of the cell.
    """
    total, n = np.zeros(len(theta)), theta.shape[1]
    gradient = np.zeros((len(theta), n if lapse is None else n + 1))
    full, z = np.empty(N_FULL), np.zeros(N_ROWS * LANES)
    minds = np.empty((len(theta), N_FULL))
    for k in range(len(theta)):
        for j in range(N_FULL):
            minds[k, j] = theta[k, places[j]] if places[j] >= 0 else ABSENT[j]
    states_dial = violation in (MISREPORTS, INCOHERENT, FRAMED)
    for block in range(len(row)):
        if start[block] == start[block + 1]:
            continue
        for i in range(N_ROWS * LANES):
            z[i] = 0.0
        for i in range(LANES):
            k = row[block, i]
            z[PRODUCT + i] = 1.0
            z[SHARE + i] = 0.0 if lapse is None else lapse[k]
            z[KEPT + i] = 1.0 - z[SHARE + i]
            z[NOISE + i] = minds[k, S_REPORT] ** 2
            z[LEFT + i] = minds[k, S_BETWEEN] ** 2
            z[LEFT_BY + BY_BETWEEN * LANES + i] = 2.0 * minds[k, S_BETWEEN]
            z[DIRECT_BY + BY_REPORT * LANES + i] = 2.0 * minds[k, S_REPORT]
            z[BASE_BY + BY_C * LANES + i] = 1.0
            z[ADDED + i] = minds[k, C]
            z[SCALE + i] = minds[k, D]
            z[TURNED + i] = minds[k, DIAL]
            z[EXPONENT + i] = minds[k, GAMMA]
            z[UTILITY_Y1 + i] = minds[k, U_YES_1]
            z[UTILITY_Y0 + i] = minds[k, U_YES_0]
            z[UTILITY_D1 + i] = minds[k, U_DEFER_1]
            z[UTILITY_D0 + i] = minds[k, U_DEFER_0]
            z[BEND_BY + i] = minds[k, DIAL] if violation == NON_MONOTONE else 0.0
            if violation == MISREPORTS:
                z[TILT + i] = exp(min(max(minds[k, DIAL], -STEEPEST), STEEPEST))
        # Where the odds of a context are the same throughout, the slope in d follows from that
        # in c.
        first, steady = start[block], True
        for t in range(first + 1, start[block + 1]):
            for i in range(LANES):
                same = odds[t, i] == odds[first, i]
                steady = steady and (same or kind[t, i] < 0.0 or kind[t, i] == DECISION)

        for t in range(start[block], start[block + 1]):
            n_beliefs, n_decisions, n_parts = 0, 0, 0
            for i in range(LANES):
                n_beliefs += 1 if kind[t, i] == BELIEF else 0
                n_decisions += 1 if kind[t, i] == DECISION else 0
                n_parts += 1 if kind[t, i] == PART else 0
            # One loop, which is too long to be written out lane by lane.
            for i in range(LANES):
                z[AT_KIND + i] = kind[t, i]
                z[AT_ODDS + i] = odds[t, i]
                z[AT_MORE + i] = more[t, i]
                z[AT_MOVED + i] = moved[t, i]
                z[AT_LOW + i] = low[t, i]
                z[AT_HIGH + i] = high[t, i]
                z[AT_PLUS + i] = plus[t, i]
                z[AT_PER + i] = per[t, i]

            if n_beliefs or n_parts:
                for i in range(LANES):
                    what = z[AT_KIND + i]
                    believes = what == BELIEF
                    mean = z[ADDED + i] + z[SCALE + i] * z[AT_ODDS + i]
                    z[BASE_BY + BY_D * LANES + i] = z[AT_ODDS + i]
                    z[BASE_BY + BY_DIAL * LANES + i] = z[AT_MOVED + i] if believes else 0.0
                    z[LIVE + i] = 1.0 if believes or what == PART else 0.0
                    z[TURNS + i] = 1.0 if believes else 0.0
                    z[SLOPE + i] = 1.0
                    own = mean + z[AT_MORE + i] + z[TURNED + i] * z[AT_MOVED + i]
                    z[MEAN + i] = own if believes else mean
                if n_parts:
                    # The believed probability of a part is a straight line in that of the state.
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

            if n_beliefs or n_parts:
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
                    series = 1.0 + x * (
                        1.0 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120))))
                    )
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
                for j in range(N_SLOPES):
                    if (j == BY_DIAL and not states_dial) or (j == BY_RATE and lapse is None):
                        continue
                    if j == BY_D and steady:
                        continue
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
                            spread_by = share_by * (
                                z[SHRINK + i] + (1.0 - 2.0 * own) * shift * shift
                            )
                            spread_by += own * (shrink_by + 2.0 * (1.0 - own) * shift * shift_by)
                            z[of_left + i] += spread_by

            if n_decisions:
                # p, what was chosen, how often, in which state, and log(-log p).
                if weighting == PRELEC:
                    for i in range(LANES):
                        power = min(z[EXPONENT + i] * z[AT_HIGH + i], 6.6)  # e**-735 is 0
                        raised = exp_of_negative(power)
                        w = exp_of_negative(-raised)
                        z[W + i] = w
                        z[W_BY_GAMMA + i] = -w * raised * z[AT_HIGH + i]
                elif weighting == TVERSKY_KAHNEMAN:
                    for i in range(LANES):
                        if z[AT_KIND + i] == DECISION:
                            z[W + i], z[W_BY_GAMMA + i] = _weight(
                                weighting, z[EXPONENT + i], z[AT_ODDS + i]
                            )
                elif violation == PEEKS:
                    for i in range(LANES):
                        z[W_BY_DIAL + i] = z[AT_LOW + i] - 0.5
                        z[W + i] = z[AT_ODDS + i] + z[TURNED + i] * (z[AT_LOW + i] - 0.5)
                elif violation == MISREPORTS:
                    for i in range(LANES):
                        p = z[AT_ODDS + i] if z[AT_KIND + i] == DECISION else 0.5
                        p = p / (p + (1.0 - p) * z[TILT + i])
                        z[W + i] = p
                        z[W_BY_DIAL + i] = -p * (1.0 - p)
                else:
                    for i in range(LANES):
                        z[W + i] = z[AT_ODDS + i]
                for i in range(LANES):
                    acts = z[AT_KIND + i] == DECISION
                    decided = z[AT_MOVED + i] if acts else 0.0
                    w = z[W + i] if acts else 0.0
                    square = (2.0 * w - 1.0) * (2.0 * w - 1.0)
                    yes_by = z[UTILITY_Y1 + i] - z[UTILITY_Y0 + i]
                    defer_by = z[UTILITY_D1 + i] - z[UTILITY_D0 + i]
                    yes = z[UTILITY_Y0 + i] + yes_by * w
                    defer = z[UTILITY_D0 + i] + defer_by * w + z[BEND_BY + i] * square
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
                    z[PUSH_Y1 + i] += g_yes * w
                    z[PUSH_Y0 + i] += g_yes * (1.0 - w)
                    z[PUSH_D1 + i] += g_defer * w
                    z[PUSH_D0 + i] += g_defer * (1.0 - w)
                    by_w = g_yes * yes_by + g_defer * defer_by
                    z[PUSH_GAMMA + i] += by_w * z[W_BY_GAMMA + i] if acts else 0.0
                    z[PUSH_DIAL + i] += by_w * z[W_BY_DIAL + i] if acts else 0.0
                    if violation == NON_MONOTONE:
                        z[PUSH_DIAL + i] += g_defer * square

        for i in range(LANES):
            k = row[block, i]
            total[k] += z[SUM + i] + log(z[PRODUCT + i])
            full[U_YES_1] = z[PUSH_Y1 + i]
            full[U_YES_0] = z[PUSH_Y0 + i]
            full[U_DEFER_1] = z[PUSH_D1 + i]
            full[U_DEFER_0] = z[PUSH_D0 + i]
            full[GAMMA] = z[PUSH_GAMMA + i]
            full[C] = z[PUSH_BY + BY_C * LANES + i]
            full[D] = z[PUSH_BY + (BY_C if steady else BY_D) * LANES + i]
            if steady:
                full[D] *= odds[first, i]
            full[S_BETWEEN] = z[PUSH_BY + BY_BETWEEN * LANES + i]
            full[S_REPORT] = z[PUSH_BY + BY_REPORT * LANES + i]
            full[DIAL] = z[PUSH_DIAL + i] + z[PUSH_BY + BY_DIAL * LANES + i]
            for j in range(N_FULL):
                if places[j] >= 0:
                    gradient[k, places[j]] += full[j]
            if lapse is not None:
                gradient[k, n] += z[BY_LAPSE + i] + z[PUSH_BY + BY_RATE * LANES + i]
    return total, gradient


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _session(  # type: ignore[no-untyped-def]
    theta, lapse, places, weighting, violation, row, start, uniforms, noise,
    question, elicitation, part, posterior, marginal, conditional, idiosyncrasy, state,
):  # fmt: skip
    """Act and answer; the first uniform is that of an action or decides on a lapse of an answer.

    Of a distribution each state gets a share of the hundredths that are left, the last all.
    """
    action = np.full((start[-1], LANES), -1.0)
    response = np.full((start[-1], LANES), np.nan)
    full = np.empty(N_FULL)
    for block in range(len(row)):
        for i in range(LANES):
            k = row[block, i]
            _read(theta[k], places, full)
            share = 0.0 if lapse is None else lapse[k]
            hundredths, present, absent = 100.0, 1.0, 1.0
            for t in range(start[block], start[block + 1]):
                asked = question[t, i]
                if asked < 0.0:
                    continue
                odds = _log_odds(marginal[t, i])
                believed = full[C] + full[D] * odds + full[S_BETWEEN] * idiosyncrasy[t, i]
                if asked == DECISION:
                    p = _share(believed)
                    if violation == PEEKS:
                        p += full[DIAL] * (state[t, i] - 0.5)
                    w, _ = _weight(weighting, full[GAMMA], p)
                    yes, defer, _ = _choices(full, violation, w, p)
                    yes = (1.0 - share) * yes + share / 3.0
                    defer = (1.0 - share) * defer + share / 3.0
                    u = uniforms[t, 0, i]
                    action[t, i] = YES if u < yes else (DEFER if u < yes + defer else NO)
                    continue
                if asked == DEALT:
                    if part[t, i] == 0.0:
                        hundredths, present, absent = 100.0, 1.0, 1.0
                    of_present, of_absent = _given(
                        posterior[t, i], marginal[t, i], conditional[t, i]
                    )
                    told = hundredths
                    if max(present - of_present, absent - of_absent) > NOTHING_LEFT:
                        answer = _share(
                            _continued(believed, of_present, of_absent, present, absent)
                            + full[S_REPORT] * noise[t, i]
                        )
                        if uniforms[t, 0, i] < share:
                            answer = uniforms[t, 1, i]
                        told = floor(hundredths * answer + 0.5)
                    response[t, i] = told / 100.0
                    hundredths -= told
                    present, absent = present - of_present, absent - of_absent
                    continue
                if asked == PART:
                    p, _ = _part(
                        _share(believed), posterior[t, i], marginal[t, i], conditional[t, i]
                    )
                    told = _log_odds(p)
                else:
                    told = believed + full[DIAL] * _moved(violation, asked, elicitation[t, i])
                    if asked == CONDITIONAL:
                        told += _log_odds(posterior[t, i]) - odds
                answer = _share(told + full[S_REPORT] * noise[t, i])
                if uniforms[t, 0, i] < share:
                    answer = uniforms[t, 1, i]
                response[t, i] = floor(100.0 * answer + 0.5) / 100.0
    return action, response


def places_of(
    subject: Integers, sequence: Integers, columns: tuple[Array, ...], violation: int
) -> Prepared:
    """Bring trials into the form that the kernel reads: statements in order, decisions counted.

    Decisions of a subject that were alike (the number stated plainly, the action and, for who
    peeks, the state) are one place with a count, wherever they stood. Returns subject and sequence
    of each place, and eight columns:

    - of what is stated: the kind (BELIEF or PART), the log odds of the state, the log odds that a
      part adds and how far the dial moves them (of a part: P(part) if the state were certain, and
      if it were excluded), the ends of the cell in log odds, what is added to the log odds of the
      state before a part, and over how many units an answer that is a lapse spreads, inverted;
    - of decisions: the kind, the number stated, the action, the count, the state, log(-log p).

    A state of a distribution is a part of those not yet dealt out, in hundredths that are left.
    """
    action, response, repetition, asked, elicitation, part, *exact = columns
    posterior, marginal, conditional, state = exact
    stated = (response >= 0.0) & (asked >= 0.0) & (asked != DECISION)
    dealt = _dealt(sequence, repetition, asked, part, response, posterior, marginal, conditional)
    hundredths, of_all, of_none = dealt
    told = np.flatnonzero(stated & (hundredths > 0))
    whole = hundredths[told]
    cell = np.clip(np.floor(100.0 * response[told] + 0.5), 0, whole).astype(np.int64)
    m, q = (np.clip(column[told], EDGE, 1.0 - EDGE) for column in (marginal, conditional))
    joint, odds, question = posterior[told], logit(m), asked[told]
    shared = question == DEALT
    parted = shared | (question == PART)
    more = np.where(question == CONDITIONAL, logit(np.clip(joint, EDGE, 1.0 - EDGE)) - odds, 0.0)
    form = np.where(question == BELIEF, elicitation[told], 0.0)
    moved = np.zeros(len(told))
    if violation == MISREPORTS:
        moved = np.where(question == BELIEF, 1.0, 0.0)
    elif violation == INCOHERENT:
        moved = np.where(question == CONDITIONAL, 1.0, 0.0)
    elif violation == FRAMED:
        known = (question == BELIEF) & (form >= 0.0) & (form < len(FRAMES))
        moved = np.where(known, FRAMES[np.where(known, form, 0.0).astype(np.int64)], 0.0)
    present = np.where(q == m, joint, joint * q / m)
    absent = np.where(q == m, joint, joint * (1.0 - q) / (1.0 - m))
    left_present, left_absent = (np.maximum(side[told], EDGE) for side in (of_all, of_none))
    present = np.where(shared, np.minimum(present / left_present, 1.0), present)
    absent = np.where(shared, np.minimum(absent / left_absent, 1.0), absent)
    beliefs = (
        np.where(parted, float(PART), float(BELIEF)),
        odds,
        np.where(parted, present, more),
        np.where(parted, absent, moved),
        np.where(shared, _end(cell - 0.5, whole), LOW[cell]),
        np.where(shared, _end(cell + 0.5, whole), HIGH[cell]),
        np.where(shared, np.log(left_present / left_absent), 0.0),
        100.0 / whole,
    )

    # The number that goes with a decision: the last one stated plainly in its repetition.
    round_ = np.where(repetition >= 0.0, repetition, -1.0).astype(np.int64)
    place = sequence * (int(round_.max(initial=0)) + 2) + round_ + 1
    plain = np.flatnonzero(
        stated & (asked == BELIEF) & (elicitation == PLAIN) & (repetition >= 0.0)
    )
    plain = plain[np.argsort(place[plain], kind="stable")]
    decided = np.flatnonzero((asked == DECISION) & (action >= 0.0) & (repetition >= 0.0))
    last = np.searchsorted(place[plain], place[decided], side="right") - 1
    if len(plain):
        goes = (last >= 0) & (place[plain[last]] == place[decided])
        decided, last = decided[goes], last[goes]
    else:
        decided, last = decided[:0], last[:0]
    p = response[plain[last]]
    values, of_p = np.unique(p, return_inverse=True)
    at = state[decided] if violation == PEEKS else np.zeros(len(decided))
    states, of_state = np.unique(at, return_inverse=True)
    chosen = action[decided].astype(np.int64)
    code = (subject[decided] * len(values) + of_p) * 3 + np.minimum(chosen, NO)
    code = code * len(states) + of_state
    alike, count = np.unique(code, return_counts=True)
    rest, of_state = np.divmod(alike, max(len(states), 1))
    rest, chosen = np.divmod(rest, 3)
    whose, of_p = np.divmod(rest, max(len(values), 1))
    p = values[of_p]
    with np.errstate(divide="ignore"):
        rarity = np.clip(np.log(-np.log(np.minimum(p, 1.0))), -FAR, FAR)
    decisions = (
        np.full(len(p), float(DECISION)), p, chosen, count, states[of_state], rarity,
        np.zeros(len(p)), np.ones(len(p)),
    )  # fmt: skip
    # Short sequences, so that those of one subject stand side by side in lanes.
    within = np.arange(len(whose)) - np.searchsorted(whose, whose)
    run = int(sequence.max(initial=-1)) + 1 + within // RUN
    return (
        np.concatenate([subject[told], whose]),
        np.concatenate([sequence[told], run]),
        tuple(
            np.concatenate([b, d]).astype(float) for b, d in zip(beliefs, decisions, strict=True)
        ),
    )


def _dealt(
    sequence: NDArray[np.int64],
    repetition: Array,
    asked: Array,
    part: Array,
    response: Array,
    posterior: Array,
    marginal: Array,
    conditional: Array,
) -> tuple[NDArray[np.int64], Array, Array]:
    """Return what of a distribution is left before each trial, [trials] each.

    In hundredths, and as the probability that the states left have given the state, and given its
    absence; 100, 1 and 1 for what is of no distribution. No hundredths are left for a state of
    which nothing can be learnt: the last, and one before which a number is missing.
    """
    hundredths = np.full(len(asked), 100, dtype=np.int64)
    present, absent = np.ones((2, len(asked)))
    rows = np.flatnonzero(asked == DEALT)
    if not len(rows):
        return hundredths, present, absent
    order = rows[np.lexsort((part[rows], repetition[rows], sequence[rows]))]
    same = (np.diff(sequence[order]) == 0) & (np.diff(repetition[order]) == 0)
    begins = np.concatenate([[True], ~same])
    first = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    rank = np.arange(len(order)) - first
    told = np.floor(100.0 * response[order] + 0.5)
    told = np.where(told >= 0, told, np.nan)
    m, q = (np.clip(column[order], EDGE, 1.0 - EDGE) for column in (marginal, conditional))
    own = np.where(q == m, 1.0, q / m), np.where(q == m, 1.0, (1.0 - q) / (1.0 - m))
    of_present, of_absent = (posterior[order] * factor for factor in own)

    def before(values: Array) -> Array:
        """Return the sum over the states before, in the same distribution."""
        found = np.zeros(len(values))
        for k in range(1, int(rank.max()) + 1):
            later = np.flatnonzero(rank == k)
            found[later] = found[later - 1] + values[later - 1]
        return found

    present[order], absent[order] = 1.0 - before(of_present), 1.0 - before(of_absent)
    left = 100.0 - before(told)
    # Which states come before is known by their numbers alone.
    known = np.isfinite(left) & (part[order] == rank)
    rest = np.maximum(present[order] - of_present, absent[order] - of_absent)
    held = known & (rest > NOTHING_LEFT)
    hundredths[order] = np.where(held, np.maximum(np.nan_to_num(left), 0.0), 0.0).astype(np.int64)
    return hundredths, present, absent


def _end(hundredths: NDArray[np.floating[Any]], whole: NDArray[np.int64]) -> Array:
    """Return the end of a cell of so many hundredths, of what was left, in log odds."""
    return np.asarray(np.clip(logit(np.clip(hundredths / whole, 0.0, 1.0)), -FAR, FAR))


def likelihood(places: tuple[int, ...], weighting: int = LINEAR, violation: int = RATIONAL) -> Any:
    """Make the kernel of a model whose parameters stand in theta at `places`.

    All models call one compiled kernel; only where it becomes part of another compiled function
    is it compiled anew.
    """

    def log_likelihood(  # type: ignore[no-untyped-def]
        theta, lapse, n_actions, row, start, kind, odds, more, moved, low, high, plus, per
    ):
        return _of_session(
            theta, lapse, places, weighting, violation, row, start, kind, odds, more, moved, low,
            high, plus, per,
        )  # fmt: skip

    kernel: Any = register_jitable(log_likelihood)
    kernel.py_func = log_likelihood  # as compiled functions have it
    return kernel


def simulation(places: tuple[int, ...], weighting: int = LINEAR, violation: int = RATIONAL) -> Any:
    """Make the simulating function of a model; see `likelihood`."""

    def simulate(  # type: ignore[no-untyped-def]
        theta, lapse, n_actions, row, start, uniforms, *design
    ):
        noise = ndtri(np.maximum(uniforms[:, 1], TINY))
        return _session(
            theta, lapse, places, weighting, violation, row, start, uniforms, noise, *design
        )

    return simulate


UTILITIES = tuple(
    Parameter(
        f"u_{name}_{state}",
        IDENTITY,
        mean=0.0,
        sd=3.0,
        description=f"utility of {name.capitalize()} where the state is {told}, over that of No, "
        "in units of choice noise",
        source="McFadden 1974",
    )
    for name in ("yes", "defer")
    for state, told in ((1, "present"), (0, "absent"))
)

BELIEFS = (
    Parameter(
        "c", IDENTITY, mean=0.0, sd=0.5, description="log odds that are added to every belief"
    ),
    Parameter(
        "d",
        POSITIVE,
        mean=0.0,
        sd=0.3,
        description="slope of believed on true log odds; below 1: beliefs are too moderate",
    ),
    Parameter(
        "s_between",
        POSITIVE,
        mean=-1.5,
        sd=0.7,
        description="standard deviation over contexts of how their log odds are misread",
    ),
    Parameter(
        "s_report",
        POSITIVE,
        mean=-2.0,
        sd=0.7,
        description="standard deviation of stated around believed log odds",
    ),
)


class Decider(Agent):
    """A mind with a belief about a state, which states it and decides by it.

    Its belief is p_S with log odds c + d logit p* + s_between z, where p* is the exact probability
    and z a standard normal number of the context, the same wherever the context comes up. What it
    states is p_S + s_report N(0, 1) in log odds, rounded to .01. It decides by p_S itself, not by
    what it stated.

    Its beliefs agree with each other: p_S(state | part) follows from p_S and the true
    P(part | state) by Bayes' rule, as does p_S(part): from the columns "marginal", P(state), and
    "conditional", P(state | part).

    The likelihood knows nothing of z. A stated belief has the probability of its cell of width .01
    (half of that at 0 and 1), given those stated before in the same context, divided by the
    width: a density per unit that integrates to one. Earlier statements tell z: after each it is
    taken as normal, with the mean and the variance that it has given the cell (moment matching,
    Opper 1998), which is exact but for shape. With lapses these are of a mixture, in which the
    statement counts by the probability that it was none (Minka 2001). A question about a part is
    answered with z at its mean.

    A distribution over the parts is dealt out in hundredths, one state after the other: each gets
    its believed share of what is left, with noise s_report in log odds (or, in a lapse, any), and
    the last gets all that is left. So it sums to 1 however noisy it is, and where a single number
    is rounded by .005 at most, that of a later state is by a little more.

    A decision has its probability given the belief stated to the plain question of the same
    context and repetition, which stands for p_S. Without one it adds nothing. It follows that
    s_report > 0 makes utilities come out too small: the error of a regressor.

    Attributes
    ----------
    weighting, violation
        How probabilities are weighted, and which rule of a rational decider is broken.
    places
        In which column of theta each of the ten parameters of the kernel stands; -1 if in none.
    """

    columns = (
        "action", "response", "repetition", "question", "elicitation", "part", "posterior",
        "marginal", "conditional", "state",
    )  # fmt: skip
    design = (
        "question", "elicitation", "part", "posterior", "marginal", "conditional", "idiosyncrasy",
        "state",
    )  # fmt: skip
    separate = ("context",)
    given = "either"
    n_uniforms = 2
    n_actions = 3
    remembers = False
    infers = True
    weighting: ClassVar[int] = LINEAR
    violation: ClassVar[int] = RATIONAL
    places: ClassVar[tuple[int, ...]]

    @classmethod
    def prepare(  # type: ignore[override]
        cls, subject: Integers, sequence: Integers, columns: tuple[Array, ...], lapse: bool
    ) -> Prepared:
        """Count decisions that are alike, and work out what hangs on the trials alone."""
        return places_of(subject, sequence, columns, cls.violation)

    @classmethod
    def full(cls, theta: ArrayLike) -> Array:
        """Return all ten parameters of the kernel, [N, 10], for theta[N, P]."""
        values = np.atleast_2d(np.asarray(theta, dtype=float))
        wide = np.tile(ABSENT, (len(values), 1))
        for j, place in enumerate(cls.places):
            if place >= 0:
                wide[:, j] = values[:, place]
        return wide

    @classmethod
    def choice_probabilities(cls, theta: ArrayLike, p: ArrayLike) -> Array:
        """Return the probabilities of Yes, Defer and No, [N, M, 3], at M probabilities acted on."""
        wide, at = cls.full(theta), np.asarray(p, dtype=float)
        gamma = wide[:, GAMMA, None]
        w = weigh(cls.weighting, gamma, at[None])
        value = np.zeros((len(wide), len(at), 3))
        value[..., YES] = wide[:, U_YES_0, None] * (1.0 - w) + wide[:, U_YES_1, None] * w
        value[..., DEFER] = wide[:, U_DEFER_0, None] * (1.0 - w) + wide[:, U_DEFER_1, None] * w
        if cls.violation == NON_MONOTONE:
            value[..., DEFER] += wide[:, DIAL, None] * (2.0 * at - 1.0) ** 2
        value -= value.max(axis=-1, keepdims=True)
        shares = np.exp(value)
        return np.asarray(shares / shares.sum(axis=-1, keepdims=True))

    def reset(self) -> None:
        """Forget what was stated."""
        self._full = self.full(self.theta)[0].tolist()
        self._stated: dict[tuple[float, float], float] = {}
        self._told: dict[float, tuple[float, float]] = {}  # mean and variance of s_between z
        # By context, repetition and part: what was dealt out, in hundredths, and what it could be.
        self._dealt: dict[tuple[float, float, int], tuple[int, float, float]] = {}

    def believed(self, observation: Observation) -> float:
        """Return the log odds of the state as believed before any part is told."""
        odds = self._of_state(observation)
        z = self._full[S_BETWEEN] * observation["idiosyncrasy"]
        return float(self._full[C] + self._full[D] * odds + z)

    def action_probabilities(self, observation: Observation) -> Array:
        """Return the probabilities of Yes, Defer and No, given the belief."""
        p = float(expit(self.believed(observation)))
        return self._choices(p, observation)

    def choose(self, observation: Observation, rng: np.random.Generator) -> Choice:
        """Decide, or state a probability, with two uniform numbers."""
        first, second = rng.random(2).tolist()
        if observation["question"] == DECISION:
            shares = self.probabilities(observation)
            return int(np.searchsorted(np.cumsum(shares[:2]), first, side="right"))
        left, certain = 100, False
        if observation["question"] == DEALT:
            left, certain = self._left(observation)
        log_odds = self._meant(observation, self.believed(observation))
        noise = float(ndtri(max(second, TINY)))
        answer = float(expit(log_odds + self._full[S_REPORT] * noise))
        if first < self.lapse:
            answer = second
        cell = left if certain else floor(left * answer + 0.5)
        if observation["question"] == DEALT:
            self._deal(observation, cell)
        return cell / 100.0

    def learn(self, observation: Observation, action: int, reward: float) -> None:
        """Note what was stated, which changes nothing of what is done."""
        response, asked = observation.get("response"), observation["question"]
        if response is not None and response >= 0.0 and asked == DEALT:
            self._deal(observation, floor(100.0 * response + 0.5))
        if response is None or not response >= 0.0 or asked not in (BELIEF, CONDITIONAL):
            return
        context = float(observation["context"])
        if asked == BELIEF and observation["elicitation"] == PLAIN:
            self._stated[context, float(observation["repetition"])] = float(response)
        off, left = self._misread(context)
        mean, sd = self._meant(observation, self._unread(observation)) + off, self._sd(left)
        cell = _cell(response)
        a, b = (LOW[cell] - mean) / sd, (HIGH[cell] - mean) / sd
        density = self.log_density(observation, float(response))
        # With the probability that the number was no lapse it tells of the context.
        own = 1.0
        if self.lapse:
            held = (1.0 - self.lapse) * exp(density)
            own = held / (held + self.lapse)
        share = density + LOG_WIDTH[cell]
        at_a, at_b = (exp(-0.5 * x * x - HALF_LOG_2_PI - share) for x in (a, b))
        g = at_a - at_b
        shift, shrink = left / sd * g, (left / sd) ** 2 * (a * at_a - b * at_b - g * g)
        spread = own * (shrink + (1.0 - own) * shift * shift)
        self._told[context] = off + own * shift, max(left + spread, 0.0)

    def log_density(
        self, observation: Observation, response: float, action: int | None = None
    ) -> float:
        """Return the log density of a stated probability, given those stated before."""
        cell, (off, left) = _cell(response), self._misread(float(observation["context"]))
        low, high = LOW[cell], HIGH[cell]
        if observation["question"] == DEALT:
            whole, certain = self._left(observation)
            if certain:
                return 0.0
            ends = np.array([min(cell, whole) - 0.5, min(cell, whole) + 0.5])
            low, high = _end(ends, np.array(whole))
            cell = 0 if cell == 0 or cell >= whole else 1
        mean = self._meant(observation, self._unread(observation) + off)
        if observation["question"] in (PART, DEALT):
            left = 0.0
        sd = self._sd(left)
        a, b = (low - mean) / sd, (high - mean) / sd
        if a + b > 0.0:
            a, b = -b, -a
        lower, upper = float(log_ndtr(a)), float(log_ndtr(b))
        return float(upper + log1p(-exp(lower - upper)) - LOG_WIDTH[cell])

    def log_probability(
        self,
        observation: Observation,
        action: int | None,
        response: float | None,
        response_range: tuple[float, float] = (0.0, 1.0),
    ) -> float:
        """Return the log probability of an answer given what was stated before, lapses included."""
        if observation["question"] != DECISION:
            if response is None or not response >= 0.0:
                return 0.0
            if observation["question"] == DEALT:
                whole, certain = self._left(observation)
                if certain:
                    return 0.0
                response_range = (0.0, whole / 100.0)
            return super().log_probability(observation, None, response, response_range)
        place = (float(observation["context"]), float(observation["repetition"]))
        if action is None or action < 0 or place not in self._stated:
            return 0.0
        p = self._stated[place]
        if self.violation == MISREPORTS and 0.0 < p < 1.0:
            p = float(expit(logit(p) - self._full[DIAL]))
        share = self._choices(p, observation)[action]
        return log(max((1.0 - self.lapse) * float(share) + self.lapse / 3.0, TINY))

    def _misread(self, context: float) -> tuple[float, float]:
        """Return mean and variance of how a context is misread, as statements tell."""
        return self._told.get(context, (0.0, self._full[S_BETWEEN] ** 2))

    def _before(self, observation: Observation) -> tuple[float, float, float]:
        """Return the hundredths left before a state of a distribution, and what they can be.

        The hundredths are NaN where it is not known which states came before.
        """
        place = float(observation["context"]), float(observation["repetition"])
        numbers = range(int(observation["part"]))
        unknown = (float("nan"),) * 3
        before = [self._dealt.get((*place, part), unknown) for part in numbers]
        told, present, absent = (sum(each[k] for each in before) for k in range(3))
        return 100.0 - told, 1.0 - present, 1.0 - absent

    def _left(self, observation: Observation) -> tuple[int, bool]:
        """Return the hundredths left, and whether nothing is to be learnt of the next number."""
        told, present, absent = self._before(observation)
        own = _of_part(observation)
        certain = max(present - own[0], absent - own[1]) <= NOTHING_LEFT
        known = told == told and told > 0.0
        return (int(told) if known else 0), bool(certain or not known)

    def _deal(self, observation: Observation, hundredths: int) -> None:
        """Note what a state of a distribution got."""
        place = float(observation["context"]), float(observation["repetition"])
        self._dealt[(*place, int(observation["part"]))] = hundredths, *_of_part(observation)

    def _sd(self, left: float) -> float:
        return max(sqrt(left + float(self._full[S_REPORT]) ** 2), NARROWEST)

    def _of_state(self, observation: Observation) -> float:
        return _odds(observation["marginal"])

    def _unread(self, observation: Observation) -> float:
        """Return the believed log odds of the state where the context is not misread."""
        return float(self._full[C] + self._full[D] * self._of_state(observation))

    def _meant(self, observation: Observation, believed: float) -> float:
        """Return the log odds that are stated without noise, given those of the state."""
        asked, posterior = int(observation["question"]), float(observation["posterior"])
        if asked == DEALT:
            # What is not yet dealt out moves the odds of the state, as evidence would.
            _, present, absent = self._before(observation)
            present, absent = max(present, EDGE), max(absent, EDGE)
            f = float(expit(believed + log(present / absent)))
            own = _of_part(observation)
            of_present, of_absent = min(own[0] / present, 1.0), min(own[1] / absent, 1.0)
            return _odds(f * of_present + (1.0 - f) * of_absent)
        if asked == PART:
            m, q = (
                float(np.clip(observation[name], EDGE, 1.0 - EDGE))
                for name in ("marginal", "conditional")
            )
            f = float(expit(believed))
            return _odds(posterior * (f * q / m + (1.0 - f) * (1.0 - q) / (1.0 - m)))
        if asked == CONDITIONAL:
            believed += _odds(posterior) - self._of_state(observation)
        elicitation = int(observation["elicitation"])
        moves = {
            MISREPORTS: 1.0 if asked == BELIEF else 0.0,
            INCOHERENT: 1.0 if asked == CONDITIONAL else 0.0,
            FRAMED: float(FRAMES[elicitation]) if asked == BELIEF else 0.0,
        }
        return float(believed + self._full[DIAL] * moves.get(self.violation, 0.0))

    def _choices(self, p: float, observation: Observation) -> Array:
        if self.violation == PEEKS:
            p += self._full[DIAL] * (float(observation["state"]) - 0.5)
        shares: Array = self.choice_probabilities(self.theta[None], [p])[0, 0]
        return shares


def weigh(weighting: int, gamma: ArrayLike, p: ArrayLike) -> Array:
    """Return the weights w(p) of probabilities.

    Prelec: exp(-(-ln p)**gamma). Tversky and Kahneman: p**gamma / (p**gamma + (1 - p)**gamma) **
    (1 / gamma). Both are p where gamma is 1, and too flat in the middle where it is below 1.
    """
    g, at = np.broadcast_arrays(np.asarray(gamma, float), np.asarray(p, float))
    if weighting == LINEAR:
        return np.array(at)
    inside = np.clip(at, TINY, 1.0 - 1e-16)
    with np.errstate(over="ignore", under="ignore"):
        if weighting == PRELEC:
            w = np.exp(-((-np.log(inside)) ** g))
        else:
            log_sum = np.logaddexp(g * np.log(inside), g * np.log1p(-inside))
            w = np.exp(g * np.log(inside) - log_sum / g)
    return np.asarray(np.where((at <= 0.0) | (at >= 1.0), np.clip(at, 0.0, 1.0), w), dtype=float)


def _of_part(observation: Observation) -> tuple[float, float]:
    """Return the probability of a part if the state is present, and if it is absent."""
    names = ("posterior", "marginal", "conditional")
    present, absent = _given(*(float(observation[name]) for name in names))
    return float(present), float(absent)


def _cell(response: float) -> int:
    return min(max(floor(100.0 * response + 0.5), 0), N_CELLS - 1)


def _odds(p: float) -> float:
    return float(logit(min(max(float(p), EDGE), 1.0 - EDGE)))
