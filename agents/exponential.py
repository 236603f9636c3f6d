"""Functions of kernels: exponential and logarithm alike in every lane, normal tails, lapses."""

from __future__ import annotations

from math import erfc, exp, log

import numpy as np
from numba import njit

# Kernels that use it are cached without regard to this file: whoever edits it deletes the caches
# (`find . -name "*.nbi" -delete`).


# LLVM inlines them, numba does not: that would type and check each call's whole body anew.


@njit(forceinline=True, error_model="numpy")
def pick(condition, a, b):  # type: ignore[no-untyped-def]
    """Return a where a condition holds, else b: a selection, where a branch is slow to compile."""
    return a if condition else b


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def exp_of_negative(x):  # type: ignore[no-untyped-def]
    """e**x for x <= 0 to 1e-14 relative, in operations that exist for vectors.

    x = n log 2 + r with |r| <= log(2) / 2 (log 2 in two parts, Cody and Waite 1980). Adding 1.5 *
    2**52 rounds to the integer n and leaves it in the lowest bits, whence it is moved to the
    exponent; e**r is a Taylor polynomial of degree 11, paired up (Estrin) for short dependencies.
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
    """e**x for any x, held within e**-700 and e**700."""
    return exp_of_negative(min(x, 700.0))


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def log_of(x):  # type: ignore[no-untyped-def]
    """Logarithm of a normal positive number to 1e-15, in operations that exist for vectors.

    x = 2**n m with sqrt(1/2) <= m < sqrt(2), and log m = 2 artanh(s) with s = (m - 1) / (m + 1).
    The integer n becomes a double by standing in the lowest bits of 2**52 + n.
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


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def ndtr_of(x):  # type: ignore[no-untyped-def]
    """Probability that a standard normal number is below x; one number after the other."""
    return 0.5 * erfc(-0.7071067811865476 * x)


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def log_ndtr_of(x):  # type: ignore[no-untyped-def]
    """Logarithm of that probability, for any x (Abramowitz and Stegun 1964, 26.2.12)."""
    if x > -35.0:
        return log(0.5 * erfc(-0.7071067811865476 * x))
    r = 1.0 / (x * x)
    series = 1.0 - r * (1.0 - r * (3.0 - r * (15.0 - 105.0 * r)))
    return -0.5 * x * x - 0.9189385332046727 - log(-x) + log(series)


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def mills_of(x, log_below):  # type: ignore[no-untyped-def]
    """Slope of that logarithm, `log_below`: the density at x over the probability below it."""
    if x > -35.0:
        return exp(-0.5 * x * x - 0.9189385332046727 - log_below)
    r = 1.0 / (x * x)
    return -x / (1.0 - r * (1.0 - r * (3.0 - r * (15.0 - 105.0 * r))))


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def log_share_below(x):  # type: ignore[no-untyped-def]
    """Logarithm of the probability below x, and its slope, for any x; see `log_ndtr_of`."""
    if x > -35.0:
        share = 0.5 * erfc(-x / 1.4142135623730951)
        return log(share), exp(-0.5 * x * x - 0.9189385332046727) / share
    r = 1.0 / (x * x)
    series = 1.0 - r * (1.0 - r * (3.0 - r * (15.0 - 105.0 * r)))
    return -0.5 * x * x - log(-x) - 0.9189385332046727 + log(series), -x / series


@njit(forceinline=True, error_model="numpy", fastmath={"contract"})
def mixed_with_lapse(own, anywhere, lapse):  # type: ignore[no-untyped-def]
    """Log density of an answer where a lapse gives it with the density `anywhere`, maybe 0.

    `own` is the log density where there are none. Returned with the weight of its slopes in the
    mixture, and the slope in the lapse rate.
    """
    if anywhere > 0.0:
        density = exp(min(own, 700.0))
        mixed = max((1.0 - lapse) * density + lapse * anywhere, 1e-300)
        return log(mixed), (1.0 - lapse) * density / mixed, (anywhere - density) / mixed
    kept = max(1.0 - lapse, 1e-300)
    return own + log(kept), 1.0, -1.0 / kept
