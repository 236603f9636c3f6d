"""Whether the ranks of the truth among posterior draws are uniform, and if not, in which way.

If truths are drawn from the prior and data from the model, the rank of the truth among L
independent draws of the exact posterior is uniform on 0..L (Cook, Gelman and Rubin 2006; Talts et
al. 2018). Two tests decide, each at half the level that the caller sets: that of the gamma
statistic, which sees any shape, and that of the normal scores' squares, which sees a wrong width
earlier (200 ranks notice a posterior 15% too narrow in .79 of studies, by gamma alone in .40). The
shape of the ranks then chooses the words of `verdicts.judge_ranks`, from the mean and the spread of
u = (rank + 1/2) / (L + 1) and their standard errors over replicates. The spread is the variance of
u over the variance it would have if the posterior were of the right width and shifted so far that u
has the observed mean; without a shift this is the variance relative to uniform.

What a number of replicates can show is computed, not simulated: if the truth lies at
posterior mean + true sd (a + Z) and the posterior is w times as wide as it should be, each draw is
below it with chance Phi((a + Z) / w), which gives the law of the rank, and `chance_noticed` is the
exact chance that the test which is better for such ranks rejects. Fewer replicates than
`least_replicates`, which notice w = 0.5 with a chance of 80%, are not judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, exp, floor, isnan, log, nan, sqrt

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, log_ndtr, ndtr, ndtri, owens_t

from knownminds.agents.parameters import Array
from knownminds.validation.engine.scores import NOTHING, Score, error_of
from knownminds.validation.engine.scores import mean as mean_of
from knownminds.validation.engine.verdicts import HALF_WIDTH, NOTICED, Verdict, judge_ranks

Counts = NDArray[np.int64]

LEAST_POINTS = 10
# Widths and shifts among which the noticeable ones are searched; beyond, there is none.
NARROWEST, WIDEST, FURTHEST_SHIFT = 0.01, 100.0, 10.0
MOST_REPLICATES = 4096
_STEPS = 64  # of a normal score's square from 0 to 1; counted in steps its sums are integers


def rank_of(truth: ArrayLike, draws: ArrayLike, n_ranks: int, rng: np.random.Generator) -> Counts:
    """Return how many of L posterior draws lie below the truth, ties broken at random.

    The S draws are thinned to L, evenly spaced; choose L no larger than the effective sample size,
    since correlated draws make ranks pile up at both ends. A truth that ties with t draws takes
    one of the t + 1 places among them with equal chance, which keeps the ranks of discrete
    quantities uniform (Modrák et al. 2023). `rng` gives one number per quantity, ties or not.

    Parameters
    ----------
    truth : Value under the true parameters of each quantity, [Q].
    draws : Values under the posterior draws, in the order they were drawn, [S, Q].
    n_ranks : L, from 1 to S; ranks lie in 0..L.

    Raises
    ------
    ValueError : If the shapes do not match, there are fewer than L draws, or a value is not a
        number.
    """
    truths, drawn = np.asarray(truth, dtype=float), np.asarray(draws, dtype=float)
    if truths.ndim != 1 or drawn.ndim != 2 or drawn.shape[1] != len(truths):
        raise ValueError(
            "rank_of takes truth [Q] and draws [S, Q]; got shapes "
            f"{truths.shape} and {drawn.shape}."
        )
    if not 1 <= n_ranks <= len(drawn):
        raise ValueError(
            f"Ranks on 0..L need at least L draws and L of 1 or more; got L = {n_ranks} and "
            f"{len(drawn)} draws. Draw more or choose a smaller L."
        )
    if np.isnan(truths).any() or np.isnan(drawn).any():
        raise ValueError(
            "Only numbers have a rank; got NaN among truth or draws. Count the replicate as failed."
        )
    thinned = drawn[((np.arange(n_ranks) + 0.5) * len(drawn) / n_ranks).astype(int)]
    below = (thinned < truths).sum(axis=0)
    places = (thinned == truths).sum(axis=0) + 1
    return np.asarray(below + (rng.random(len(truths)) * places).astype(np.int64), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SimultaneousBand:
    """Bounds that hold the whole ECDF of n uniform ranks with at least the given probability.

    Parameters
    ----------
    gamma : pointwise level, two-sided, at which the binomial bounds hold jointly
    coverage : exact probability that the whole ECDF is inside
    points : z, from 0 to 1, [K + 1]
    least, most : smallest and largest count of ranks below z (L + 1) that is inside, [K + 1]
    """

    gamma: float
    coverage: float
    points: Array
    least: Counts
    most: Counts


@lru_cache(maxsize=16)
def simultaneous_band(n: int, n_ranks: int, mass: float) -> SimultaneousBand:
    """Return the smallest simultaneous band for the ECDF of n uniform ranks.

    The count of ranks below z (L + 1) is binomial with chance z. The band holds at every point the
    counts with 2 min(P(X <= count), P(X >= count)) >= gamma, and gamma is the largest level whose
    band holds the whole ECDF with probability `mass` (Säilynoja, Bürkner and Vehtari 2022). That
    probability is computed exactly, so `coverage` is at least, and seldom equals, `mass`.

    The ECDF is looked at in z = 0, 1/K, ..., 1, where K is the largest divisor of L + 1 that is not
    above n; if that is below 10, as for prime L + 1, it is L + 1.

    Parameters
    ----------
    n : Number of ranks, at least 1.
    n_ranks : L; ranks lie in 0..L.
    mass : Between 0 and 1.

    Raises
    ------
    ValueError : If n, L or mass is outside its range.
    """
    if n < 1 or n_ranks < 1 or not 0 < mass < 1:
        raise ValueError(
            "A band needs n and L of 1 or more and a mass between 0 and 1; got "
            f"n = {n}, L = {n_ranks}, mass = {mass}."
        )
    points = _number_of_points(n, n_ranks)
    tails = _tails(n, points)
    # With gamma = (1 - mass) / K the band holds by Boole's inequality, so the search starts there.
    levels = np.unique(tails[tails >= (1 - mass) / points])
    low, high = 0, len(levels)  # the band at levels[low] has the mass; from levels[high] on, none
    while high - low > 1:
        middle = (low + high) // 2
        if _chance_outside(n, *_bounds(tails >= levels[middle])) <= 1 - mass:
            low = middle
        else:
            high = middle
    least, most = _bounds(tails >= levels[low])
    z = np.arange(points + 1) / points
    for array in (z, least, most):
        array.setflags(write=False)  # shared by all who ask for this band
    coverage = 1 - _chance_outside(n, least, most)
    return SimultaneousBand(float(levels[low]), coverage, z, least, most)


@lru_cache(maxsize=4)
def _tails(n: int, points: int) -> Array:
    """Two-sided tail probability of each count at each point, at most 1, [K + 1, n + 1]."""
    z = np.arange(points + 1) / points
    lower = np.asarray(scipy.stats.binom.cdf(np.arange(n + 1), n, z[:, None]))
    # P(X >= c | z) = P(X <= n - c | 1 - z); taken from the same table, mirrored counts tie exactly.
    tails = np.minimum(1.0, 2 * np.minimum(lower, lower[::-1, ::-1]))
    # The median has a tail of 1 at every point, which rounding must not take from some of them:
    # a level that a point cannot reach would leave it without bounds.
    tails[tails > 1 - 1e-9] = 1.0
    tails.setflags(write=False)
    return np.asarray(tails)


def _bounds(inside: NDArray[np.bool_]) -> tuple[Counts, Counts]:
    """First and last count inside at each point; the counts inside are contiguous."""
    least = inside.argmax(axis=1)
    return least, inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)


def _chance_outside(n: int, least: Counts, most: Counts, shares: Array | None = None) -> float:
    """Exact probability that the counts of n ranks leave the bounds at some point.

    The counts in K bins are multinomial, hence like independent Poisson counts given that their
    sum is n; `shares` are the chances of the bins, [K], all equal (uniform ranks) if None. The
    weights of the cumulative counts that have stayed inside are carried from point to point, one
    convolution each; what leaves is weighted with the chance that the remaining bins complete the
    sum. No differences are taken, so tiny values keep their digits.
    """
    points = len(least) - 1
    each = np.full(points, 1 / points) if shares is None else shares
    left_over = np.append(np.cumsum(each[::-1])[::-1], 0.0)  # chance of bin i and all after it
    counts = np.arange(n + 1)
    in_bin = scipy.stats.poisson.pmf(counts, n * each[:, None])  # [K, n + 1]
    in_rest = scipy.stats.poisson.pmf(counts, n * left_over[:, None])
    stayed = np.ones(1)  # weights of the counts least[i - 1]..most[i - 1]
    left = 0.0
    for i in range(1, points):
        first = int(least[i - 1])
        step = np.trim_zeros(in_bin[i - 1], "b")
        reached = np.convolve(stayed, step)[: n + 1 - first]  # counts from `first` on
        start, stop = int(least[i]) - first, int(most[i]) - first + 1
        rest = in_rest[i][n - first - np.arange(len(reached))]
        left += float(reached[:start] @ rest[:start] + reached[stop:] @ rest[stop:])
        stayed = reached[start:stop]
        if len(stayed) == 0:
            break
    return min(1.0, left / float(scipy.stats.poisson.pmf(n, n)))


def chance_noticed(
    n: int, n_ranks: int, level: float, *, shift: float = 0.0, width: float = 1.0
) -> float:
    """Return the chance that `judge` rejects n ranks of posteriors that are wrong in a known way.

    It is the larger one of its two tests; both together reject a little more often.

    Parameters
    ----------
    n, n_ranks, level : Replicates, L, and the level at which uniformity is rejected.
    shift : By how many of its true standard deviations the posterior lies too low (negative: too
        high).
    width : Its standard deviation over the true one, above 0.

    Raises
    ------
    ValueError : If n, L, level or width is outside its range.
    """
    if not width > 0:
        raise ValueError(f"A posterior's relative width is above 0; got {width}.")
    band = simultaneous_band(n, n_ranks, 1 - level / 2)
    law = _rank_law(n_ranks, shift, width)
    shares = law.reshape(len(band.points) - 1, -1).sum(axis=1)
    rejects = _two_sided(_law_of_sums(n, n_ranks)) <= level / 2
    by_squares = float(_law_of_sums(n, n_ranks, law)[rejects].sum())
    return max(by_squares, _chance_outside(n, band.least, band.most, shares))


@lru_cache(maxsize=4)
def _rank_law(n_ranks: int, shift: float, width: float) -> Array:
    """Chance of each rank under a posterior that is wrong as in `chance_noticed`, [L + 1]."""
    z = np.linspace(-8.0, 8.0, 801)
    position = (shift + z) / width
    rank = np.arange(n_ranks + 1)[:, None]
    # Binomial, given the position of the truth; in logarithms, since SciPy's overflows far out.
    ways = gammaln(n_ranks + 1) - gammaln(rank + 1) - gammaln(n_ranks - rank + 1)
    chances = np.exp(ways + rank * log_ndtr(position) + (n_ranks - rank) * log_ndtr(-position))
    law = chances @ np.exp(-(z**2) / 2)
    return np.asarray(law / law.sum())


@lru_cache(maxsize=64)
def least_replicates(n_ranks: int, level: float) -> int:
    """Return the number of replicates from which on posteriors half as wide are noticed.

    Each number from there on notices them with a chance of 80%; single smaller ones may as well,
    since counts are discrete. It is 4,096 where so many do not: L is too small then.
    """
    enough = 16
    while chance_noticed(enough, n_ranks, level, width=HALF_WIDTH) < 0.95:
        enough *= 2
        if enough == MOST_REPLICATES:
            return enough
    while enough > 1 and chance_noticed(enough - 1, n_ranks, level, width=HALF_WIDTH) >= NOTICED:
        enough -= 1
    return enough


@lru_cache(maxsize=64)
def noticeable(n: int, n_ranks: int, level: float) -> tuple[float, float, float]:
    """Return what n replicates notice with a chance of 80%: widths below and above 1, and a shift.

    To two digits, rounded to the side on which the chance is larger; NaN for what would not be
    noticed however large.
    """

    def solve(of: Callable[[float], dict[str, float]], right: float, furthest: float) -> float:
        def lacking(size: float) -> float:
            return chance_noticed(n, n_ranks, level, **of(size)) - NOTICED

        if lacking(furthest) < 0:
            return nan
        return float(scipy.optimize.brentq(lacking, right, furthest, xtol=1e-3))

    narrow = solve(lambda size: {"width": exp(size)}, 0.0, log(NARROWEST))
    wide = solve(lambda size: {"width": exp(size)}, 0.0, log(WIDEST))
    shift = solve(lambda size: {"shift": size}, 0.0, FURTHEST_SHIFT)
    margin = 1e-3  # of the search
    return (
        nan if isnan(narrow) else floor(100 * exp(narrow - margin)) / 100,
        nan if isnan(wide) else ceil(100 * exp(wide + margin)) / 100,
        nan if isnan(shift) else ceil(100 * (shift + margin)) / 100,
    )


def looks(first: int, most: int) -> Iterator[tuple[int, float]]:
    """Go through the numbers of ranks at which a growing study is judged, each twice the last one.

    Yields
    ------
    The number, and the share of the study's level that the look has: half of what is left, and all
    of it at the last one. The shares sum to 1, so that by Bonferroni's inequality a calibrated
    quantity is rejected at any look with a chance of the level at most.
    """
    n, left = first, 1.0
    while n < most:
        left /= 2
        yield n, left
        n *= 2
    yield most, left


def is_clear(words: Sequence[str], n: int, n_ranks: int, level: float, width: float) -> bool:
    """Say whether more ranks are not needed: something is wrong, or enough would be noticed.

    Parameters
    ----------
    words : Of the verdicts of all quantities.
    n, n_ranks, level : Ranks of a quantity, their range, and the level of its test.
    width : What is noticed with a chance of `NOTICED` in the end: a posterior that is so many times
        as wide as it should be.
    """
    if any(word not in ("calibrated", "not judged") for word in words):
        return True
    return n > 0 and bool(words) and noticeable(n, n_ranks, level)[0] >= width


def gamma_statistic(ranks: ArrayLike, n_ranks: int) -> tuple[float, float]:
    """Return the gamma statistic of ranks and its exact p-value under uniformity.

    gamma = 2 min over points of min(P(X <= count), P(X >= count)), at most 1, the smallest
    pointwise tail probability of the ECDF (Säilynoja et al. 2022; Modrák et al. 2023). The p-value
    is the exact probability of a gamma so small or smaller. It is at most `1 - mass` if and only if
    the ECDF leaves the band of that mass.

    Parameters
    ----------
    ranks : Integers in 0..L, [N].
    n_ranks : L.

    Raises
    ------
    ValueError : If there are no ranks, or they are outside 0..L.
    """
    observed = _checked(ranks, n_ranks)
    n = len(observed)
    if n == 0:
        raise ValueError("A test of uniformity needs at least one rank; got none.")
    points = _number_of_points(n, n_ranks)
    tails = _tails(n, points)
    counts = _counts_below(observed, n_ranks, points)
    gamma = float(tails[np.arange(points + 1), counts].min())
    if gamma == 1:  # nothing is more central
        return gamma, 1.0
    return gamma, _chance_outside(n, *_bounds(tails > gamma))


def squares_test(ranks: ArrayLike, n_ranks: int) -> float:
    """Return the exact two-sided p-value of the sum of the ranks' squared normal scores.

    A rank's normal score is the standard normal quantile of (rank + 1/2) / (L + 1). The sum of the
    squares is near chi-square with a degree of freedom a rank (Cook, Gelman and Rubin 2006). Here
    squares are rounded to 1/64, and the law of their sum under uniformity is computed from that.

    Parameters
    ----------
    ranks : Integers in 0..L, at least one, [N].
    n_ranks : L.

    Raises
    ------
    ValueError : If there are no ranks, or they are outside 0..L.
    """
    observed = _checked(ranks, n_ranks)
    if len(observed) == 0:
        raise ValueError("A test of uniformity needs at least one rank; got none.")
    total = int(_squares(n_ranks)[observed].sum())
    return float(_two_sided(_law_of_sums(len(observed), n_ranks))[total])


def _squares(n_ranks: int) -> Counts:
    """Square of the normal score of each rank, in steps, [L + 1]."""
    scores = ndtri((np.arange(n_ranks + 1) + 0.5) / (n_ranks + 1))
    return np.asarray(np.rint(_STEPS * scores**2), dtype=np.int64)


@lru_cache(maxsize=16)
def _uniform_law_of_sums(n: int, n_ranks: int) -> Array:
    return _law_of_sums(n, n_ranks, np.full(n_ranks + 1, 1 / (n_ranks + 1)))


def _law_of_sums(n: int, n_ranks: int, law: Array | None = None) -> Array:
    """Chances of the sums 0, 1, ... of n ranks' squares; uniform ranks without a law of these."""
    if law is None:
        return _uniform_law_of_sums(n, n_ranks)
    squares = _squares(n_ranks)
    length = scipy.fft.next_fast_len(n * int(squares.max()) + 1, real=True)
    transform = scipy.fft.rfft(np.bincount(squares, law), length)
    return np.asarray(np.maximum(scipy.fft.irfft(transform**n, length), 0.0))


def _two_sided(law: Array) -> Array:
    """Twice the smaller tail probability of each value of a law, at most 1."""
    tails = np.minimum(np.cumsum(law), np.cumsum(law[::-1])[::-1])
    return np.asarray(np.minimum(1.0, 2 * tails))


@dataclass(frozen=True, eq=False)
class Uniformity:
    """How uniform the ranks of one quantity are: test, shape, and the verdict.

    Numbers of a quantity that is not judged for want of ranks are NaN, and its ECDF is empty.

    Parameters
    ----------
    n : number of ranks
    verdict : see the table of `verdicts`
    mean : of u = (rank + 1/2) / (L + 1); 0.5 if uniform
    spread : variance of u, relative to a posterior of the right width (see the module); 1 if
        uniform, above 1 if the posterior is too narrow
    p : of both tests, twice the smaller one
    gamma : smallest pointwise tail probability of the ECDF
    p_ecdf : its exact p-value; the ECDF is outside its simultaneous band if this is at most half
        the level
    p_squares : exact p-value of the sum of squared normal scores
    ecdf : points `z` from 0 to 1, the `difference` of the share of ranks below z (L + 1) and z, and
        the bounds of that difference, `lower` and `upper`, in the band of mass 1 - level / 2
    """

    n: int
    verdict: Verdict
    mean: Score = NOTHING
    spread: Score = NOTHING
    p: float = nan
    gamma: float = nan
    p_ecdf: float = nan
    p_squares: float = nan
    ecdf: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)


def judge(
    ranks: ArrayLike, n_ranks: int, level: float = 0.05, *, failed: float = 0.0
) -> Uniformity:
    """Decide whether ranks are uniform on 0..L and, if not, in which way.

    Parameters
    ----------
    ranks : Integers in 0..L, one per usable replicate, [N].
    n_ranks : L.
    level : Chance of rejecting a calibrated quantity, between 0 and 1. For several quantities
        divide the level of the whole by their number.
    failed : Share of the posteriors that failed or did not converge.

    Raises
    ------
    ValueError : If ranks are outside 0..L or the level is outside 0 to 1.
    """
    observed = _checked(ranks, n_ranks)
    if not 0 < level < 1:
        raise ValueError(f"A level lies between 0 and 1; got {level}.")
    n, least = len(observed), least_replicates(n_ranks, level)
    if n < least:
        return Uniformity(n, Verdict("not judged", (f"{n} ranks, {least} are needed",)))
    gamma, p_ecdf = gamma_statistic(observed, n_ranks)
    p_squares = squares_test(observed, n_ranks)
    p = min(1.0, 2 * min(p_ecdf, p_squares))
    mean, spread = _shape(observed, n_ranks)
    verdict = judge_ranks(p, level, mean, spread, failed=failed)
    band = simultaneous_band(n, n_ranks, 1 - level / 2)
    z = band.points
    ecdf = {
        "z": z,
        "difference": _counts_below(observed, n_ranks, len(z) - 1) / n - z,
        "lower": band.least / n - z,
        "upper": band.most / n - z,
    }
    ecdf_of = pd.DataFrame(ecdf)
    return Uniformity(n, verdict, mean, spread, p, gamma, p_ecdf, p_squares, ecdf_of)


def _shape(ranks: Counts, n_ranks: int) -> tuple[Score, Score]:
    """Return mean and spread of u.

    If the truth is at posterior mean + posterior sd (a + b Z), Z standard normal, then u = Phi(a +
    b Z), its mean is m = Phi(h) with h = a / sqrt(1 + b^2), and for b = 1 its variance is
    v = m (1 - m) - 2 T(h, 1 / sqrt(3)), T being Owen's function. For every h the variance is above
    v if and only if b > 1, so that a shift is not taken for a width.
    """
    u = (ranks + 0.5) / (n_ranks + 1)
    mean = mean_of(u)
    m, square = mean.value, (u - mean.value) ** 2
    variance = float(square.sum()) / (len(u) - 1)
    h = float(ndtri(m))
    # the second term is the variance within one of the L + 1 steps, which ranks do not have
    v = float(m * (1 - m) - 2 * owens_t(h, 1 / sqrt(3))) - 1 / (12 * (n_ranks + 1) ** 2)
    slope = float(2 * ndtr(h / sqrt(3)) - 2 * m)  # dv / dm
    # by the delta method: what each replicate adds to the ratio variance / v(m)
    influence = (square - variance) / v - variance * slope / v**2 * (u - m)
    return mean, Score(variance / v, error_of(influence - influence.mean()))


def _counts_below(ranks: Counts, n_ranks: int, points: int) -> Counts:
    """Count of ranks below z (L + 1) for z = 0, 1/K, ..., 1, [K + 1]."""
    in_bins = np.bincount(ranks * points // (n_ranks + 1), minlength=points)
    return np.concatenate([[0], np.cumsum(in_bins)])


def _number_of_points(n: int, n_ranks: int) -> int:
    """Return K, see `simultaneous_band`."""
    divisors = (d for d in range(1, min(n, n_ranks + 1) + 1) if (n_ranks + 1) % d == 0)
    largest = max(divisors)
    return largest if largest >= LEAST_POINTS else n_ranks + 1


def _checked(ranks: ArrayLike, n_ranks: int) -> Counts:
    observed = np.asarray(ranks)
    if n_ranks < 1:
        raise ValueError(f"Ranks lie in 0..L with L of 1 or more; got L = {n_ranks}.")
    if observed.ndim != 1 or (len(observed) and observed.dtype.kind not in "iu"):
        raise ValueError(
            "Ranks are a one-dimensional array of integers; got "
            f"{observed.dtype} of shape {observed.shape}."
        )
    if len(observed) and not (observed.min() >= 0 and observed.max() <= n_ranks):
        raise ValueError(
            f"Ranks lie in 0..{n_ranks}; got values from {observed.min()} to {observed.max()}."
        )
    return observed.astype(np.int64)
