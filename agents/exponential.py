"""Functions for kernels: exponential and logarithm, the same in every lane; tails; lapses."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
from numba import njit
from numpy.polynomial import chebyshev
from scipy.special import erfcx

# Kernels that use this file are cached without regard to it: after an edit, delete the caches
# (`find . -name "*.nbi" -delete`).


# LLVM inlines these functions; numba would type and check the whole body anew at each call.


@njit(forceinline=True, error_model="numpy")
def pick(condition, a, b):  # type: ignore[no-untyped-def]
    """Return a where a condition holds, else b, without a branch, which is slow to compile."""
    return a if condition else b


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def exp_of_negative(x):  # type: ignore[no-untyped-def]
    """Return e**x for x <= 0, to 1e-14 relative, by operations that exist for vectors.

    x = n log 2 + r with |r| <= log(2) / 2 (log 2 in two parts, Cody and Waite 1980). Adding 1.5 *
    2**52 rounds to the integer n and leaves it in the lowest bits; from there it is moved to the
    exponent. e**r is a Taylor polynomial of degree 11, paired up (Estrin) for short dependencies.
    """
    x = max(x, -700.0)
    rounded = x * 1.4426950408889634 + 6755399441055744.0
    n = rounded - 6755399441055744.0
    r = x - n * 0.693145751953125 - n * 1.42860682030941723212e-6
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
    middle = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800 + r * (1 / 39916800))
    power = np.int64((np.float64(rounded).view(np.int64) + 1023) << 52).view(np.float64)
    return (low + r4 * (middle + r4 * high)) * power


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def exp_of(x):  # type: ignore[no-untyped-def]
    """Return e**x for any x, held within e**-700 and e**700."""
    return exp_of_negative(min(x, 700.0))


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def log_of(x):  # type: ignore[no-untyped-def]
    """Return the logarithm of a normal positive number, to 1e-15, by operations that exist for
    vectors.

    x = 2**n m with sqrt(1/2) <= m < sqrt(2), and log m = 2 artanh(s) with s = (m - 1) / (m + 1).
    The integer n becomes a double because it stands in the lowest bits of 2**52 + n.
    """
    bits = np.float64(x).view(np.int64) + (0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
    high = np.int64((bits >> 52) | 0x4330000000000000).view(np.float64)
    n = high - (4503599627370496.0 + 1023.0)
    m = np.int64((bits & 0x000FFFFFFFFFFFFF) + 0x3FE6A09E667F3BCD).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    r = s * s
    r2 = r * r
    r4 = r2 * r2
    low = (1 / 3 + r * (1 / 5)) + r2 * (1 / 7 + r * (1 / 9))
    middle = (1 / 11 + r * (1 / 13)) + r2 * (1 / 15 + r * (1 / 17))
    rest = s + s * r * (low + r4 * (middle + r4 * (1 / 19 + r * (1 / 21))))
    return n * 0.693147180369123816490 + (2.0 * rest + n * 1.90821492927058770002e-10)


def _scaled_tail(t):  # type: ignore[no-untyped-def]
    """Return (a + BEND) exp(a**2 / 2) times the normal tail beyond a = BEND (1 + t) / (1 - t)."""
    a = BEND * (1.0 + t) / (1.0 - t)
    return (a + BEND) * erfcx(a / sqrt(2.0)) / 2.0


BEND = 4.0  # half of the polynomial's range ends here
TAIL = tuple(chebyshev.cheb2poly(chebyshev.chebinterpolate(_scaled_tail, 20)).tolist())


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def scaled_tail(a):  # type: ignore[no-untyped-def]
    """Return exp(a**2 / 2) times the normal tail beyond a >= 0, by operations for vectors.

    (a + 4) times this is smooth in t = (a - 4) / (a + 4), from -1 to 1. It is a polynomial of
    degree 20 through Chebyshev points, summed in groups for short dependencies (Estrin).
    """
    r = 1.0 / (a + BEND)
    t = (a - BEND) * r
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
def ndtr_of(x):  # type: ignore[no-untyped-def]
    """Return the probability that a standard normal number is below x."""
    tail = exp_of_negative(-0.5 * x * x) * scaled_tail(abs(x))
    return pick(x > 0.0, 1.0 - tail, tail)


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def log_ndtr_of(x):  # type: ignore[no-untyped-def]
    """Return the logarithm of `ndtr_of`, exact for any x."""
    exponent = -0.5 * x * x
    tail = scaled_tail(abs(x))
    below = log_of(pick(x > 0.0, 1.0 - exp_of_negative(exponent) * tail, tail))
    return pick(x > 0.0, below, exponent + below)


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def hazard_of(x):  # type: ignore[no-untyped-def]
    """Return the slope of `log_ndtr_of`: the normal density at x over the probability below x.

    Below 0 both have the density's exponential as a factor, which drops out.
    """
    density = exp_of_negative(-0.5 * x * x)
    tail = scaled_tail(abs(x))
    return 0.3989422804014327 * pick(x > 0.0, density / (1.0 - density * tail), 1.0 / tail)


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def mixed_with_lapse(log_density, anywhere, lapse):  # type: ignore[no-untyped-def]
    """Return the log density of an answer that may be a lapse, with the density `anywhere` (or 0).

    `log_density` is the log density without lapses. Also returned are the weight of its slopes in
    the mixture, and the slope in the lapse rate.
    """
    if anywhere > 0.0:
        density = exp(min(log_density, 700.0))
        mixed = max((1.0 - lapse) * density + lapse * anywhere, 1e-300)
        return log(mixed), (1.0 - lapse) * density / mixed, (anywhere - density) / mixed
    kept = max(1.0 - lapse, 1e-300)
    return log_density + log(kept), 1.0, -1.0 / kept
