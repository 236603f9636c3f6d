"""Whether the ranks of the truth among posterior draws are uniform, and if not, in which way.

If truths are drawn from the prior and data from the model, the rank of the truth among L
independent draws of the exact posterior is uniform on 0..L (Cook, Gelman and Rubin 2006; Talts et
al. 2018). One test decides, that of the gamma statistic at the level the caller sets; the shape of
the ranks then chooses the words of `verdicts`, from the mean and the spread of
u = (rank + 1/2) / (L + 1) and their standard errors over replicates.

A deviation of mean or spread is named if it exceeds 3 standard errors (CLEAR_ERRORS), both if both
do ("biased high, over-confident"). If none does, the larger one is named if it exceeds 2 errors
(LEAST_ERRORS). The spread is the variance of u over the variance it would have if the posterior
were of the right width and shifted so far that u has the observed mean; without a shift this is
the variance relative to uniform. Where the mean of u is outside 0.1 to 0.9 (FURTHEST_MEAN) nearly
all ranks sit at one end and the width cannot be told: it is not named.

What a number of replicates could have shown is computed, not simulated: if the truth lies at
posterior mean + true sd (a + Z) and the posterior is w times as wide as it should be, each draw is
below it with chance Phi((a + Z) / w), which gives the law of the rank, and `chance_noticed` is the
exact probability that the ECDF of so many such ranks leaves the band. Fewer replicates than
`least_replicates`, which notice w = 0.5 with a chance of 80%, are not judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, exp, floor, inf, isnan, log, nan, sqrt
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, log_ndtr, ndtr, ndtri, owens_t, xlogy

from knownminds.agents.parameters import Array
from knownminds.environments.record.result import Result
from knownminds.validation.engine.verdicts import (
    CLEAR_ERRORS,
    FURTHEST_MEAN,
    HALF_WIDTH,
    LEAST_ERRORS,
    NOTICED,
)

Counts = NDArray[np.int64]

BAND_MASS = 0.95
LEAST_POINTS = 10
MOST_BINS = 20
LEAST_EXPECTED = 5.0  # replicates per bin of the chi-square test
# Widths and shifts among which the noticeable ones are looked for; beyond, nothing is said.
NARROWEST, WIDEST, FURTHEST_SHIFT = 0.01, 100.0, 10.0
MOST_REPLICATES = 4096


def rank_of(truth: ArrayLike, draws: ArrayLike, n_ranks: int, rng: np.random.Generator) -> Counts:
    """Return how many of L posterior draws lie below the truth, ties broken at random.

    The S draws are thinned to L, evenly spaced; choose L no larger than the effective sample size,
    since correlated draws make ranks pile up at both ends. A truth that ties with t draws takes
    one of the t + 1 places among them with equal chance, which keeps the ranks of discrete
    quantities uniform (Modrák et al. 2023). `rng` gives one number per quantity, ties or not.

    Parameters
    ----------
    truth
        Value under the true parameters of each quantity, [Q].
    draws
        Values under the posterior draws, in the order they were drawn, [S, Q].
    n_ranks
        L, from 1 to S; ranks lie in 0..L.

    Raises
    ------
    ValueError
        If the shapes do not match, there are fewer than L draws, or a value is not a number.
    """
    true, drawn = np.asarray(truth, dtype=float), np.asarray(draws, dtype=float)
    if true.ndim != 1 or drawn.ndim != 2 or drawn.shape[1] != len(true):
        raise ValueError(
            f"rank_of takes truth [Q] and draws [S, Q]; got shapes {true.shape} and {drawn.shape}."
        )
    if not 1 <= n_ranks <= len(drawn):
        raise ValueError(
            f"Ranks on 0..L need at least L draws and L of 1 or more; got L = {n_ranks} and "
            f"{len(drawn)} draws. Draw more or choose a smaller L."
        )
    if np.isnan(true).any() or np.isnan(drawn).any():
        raise ValueError(
            "Only numbers have a rank; got NaN among truth or draws. Count the replicate as failed."
        )
    kept = drawn[((np.arange(n_ranks) + 0.5) * len(drawn) / n_ranks).astype(int)]
    below = (kept < true).sum(axis=0)
    places = (kept == true).sum(axis=0) + 1
    return np.asarray(below + (rng.random(len(true)) * places).astype(np.int64), dtype=np.int64)


@dataclass(frozen=True)
class SimultaneousBand:
    """Bounds that hold the whole ECDF of n uniform ranks with at least the given probability.

    Parameters
    ----------
    n : number of ranks
    n_ranks : L; ranks lie in 0..L
    mass : probability that was asked for
    gamma : pointwise level, two-sided, at which the binomial bounds hold jointly
    coverage : exact probability that the whole ECDF is inside; at least `mass`
    points : z, from 0 to 1, [K + 1]
    least, most : smallest and largest count of ranks below z (L + 1) that is inside, [K + 1]
    """

    n: int
    n_ranks: int
    mass: float
    gamma: float
    coverage: float
    points: Array = field(compare=False)
    least: Counts = field(compare=False)
    most: Counts = field(compare=False)

    @property
    def lower(self) -> Array:
        """Lower bound of ECDF minus z, [K + 1]."""
        return np.asarray(self.least / self.n - self.points)

    @property
    def upper(self) -> Array:
        """Upper bound of ECDF minus z, [K + 1]."""
        return np.asarray(self.most / self.n - self.points)

    def holds(self, ranks: ArrayLike) -> bool:
        """Whether the ECDF of these n ranks is inside at every point."""
        observed = _checked(ranks, self.n_ranks)
        if len(observed) != self.n:
            raise ValueError(f"This band is for {self.n} ranks; got {len(observed)}.")
        counts = _counts_below(observed, self.n_ranks, len(self.points) - 1)
        return bool(np.all((self.least <= counts) & (counts <= self.most)))


def simultaneous_band(
    n: int, n_ranks: int, mass: float = BAND_MASS, points: int | None = None
) -> SimultaneousBand:
    """Return the smallest simultaneous band for the ECDF of n uniform ranks.

    The count of ranks below z (L + 1) is binomial with chance z. The band holds at every point the
    counts with 2 min(P(X <= count), P(X >= count)) >= gamma, and gamma is the largest level whose
    band holds the whole ECDF with probability `mass` (Säilynoja, Bürkner and Vehtari 2022). That
    probability is computed exactly, so `coverage` is at least, and seldom equals, `mass`.

    Parameters
    ----------
    n
        Number of ranks, at least 1.
    n_ranks
        L; ranks lie in 0..L.
    mass
        Between 0 and 1.
    points
        K, a divisor of L + 1 from 2 on; the ECDF is looked at in z = 0, 1/K, ..., 1. By default
        the largest divisor that is not above n; if that is below 10, as for prime L + 1, all
        L + 1.

    Raises
    ------
    ValueError
        If n, L or mass is outside its range, or `points` does not divide L + 1.
    """
    if n < 1 or n_ranks < 1 or not 0 < mass < 1:
        raise ValueError(
            "A band needs n and L of 1 or more and a mass between 0 and 1; got "
            f"n = {n}, L = {n_ranks}, mass = {mass}."
        )
    return _band(n, n_ranks, mass, _number_of_points(n, n_ranks, points))


@lru_cache(maxsize=16)
def _band(n: int, n_ranks: int, mass: float, points: int) -> SimultaneousBand:
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
    return SimultaneousBand(n, n_ranks, mass, float(levels[low]), coverage, z, least, most)


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
    log_factorial = gammaln(np.arange(n + 1) + 1.0)
    each = np.full(points, 1 / points) if shares is None else shares
    left_over = np.append(np.cumsum(each[::-1])[::-1], 0.0)  # chance of bin i and all after it

    def poisson(share: float) -> Array:
        return np.asarray(np.exp(xlogy(np.arange(n + 1), n * share) - n * share - log_factorial))

    stayed = np.ones(1)  # weights of the counts least[i - 1]..most[i - 1]
    left = 0.0
    for i in range(1, points):
        first = int(least[i - 1])
        step = np.trim_zeros(poisson(each[i - 1]), "b")
        reached = np.convolve(stayed, step)[: n + 1 - first]  # counts from `first` on
        start, stop = int(least[i]) - first, int(most[i]) - first + 1
        rest = poisson(left_over[i])[n - first - np.arange(len(reached))]
        left += float(reached[:start] @ rest[:start] + reached[stop:] @ rest[stop:])
        stayed = reached[start:stop]
        if len(stayed) == 0:
            break
    return min(1.0, left / float(poisson(1.0)[n]))


def chance_noticed(
    n: int, n_ranks: int, level: float, *, shift: float = 0.0, width: float = 1.0
) -> float:
    """Return the chance that `judge` rejects n ranks of posteriors that are wrong in a known way.

    Parameters
    ----------
    n, n_ranks, level
        Replicates, L, and the level at which uniformity is rejected.
    shift
        By how many of its true standard deviations the posterior lies too low (negative: too high).
    width
        Its standard deviation over the true one, above 0.

    Raises
    ------
    ValueError
        If n, L, level or width is outside its range.
    """
    if not width > 0:
        raise ValueError(f"A posterior's relative width is above 0; got {width}.")
    band = simultaneous_band(n, n_ranks, 1 - level)
    law = _rank_law(n_ranks, shift, width)
    shares = law.reshape(len(band.points) - 1, -1).sum(axis=1)
    return _chance_outside(n, band.least, band.most, shares)


@lru_cache(maxsize=4)
def _rank_law(n_ranks: int, shift: float, width: float) -> Array:
    """Chance of each rank under a posterior that is wrong as in `chance_noticed`, [L + 1]."""
    z = np.linspace(-8.0, 8.0, 801)
    weights = np.exp(-(z**2) / 2)
    place = (shift + z) / width
    rank = np.arange(n_ranks + 1)[:, None]  # binomial, given the place of the truth
    ways = gammaln(n_ranks + 1) - gammaln(rank + 1) - gammaln(n_ranks - rank + 1)
    chances = np.exp(ways + rank * log_ndtr(place) + (n_ranks - rank) * log_ndtr(-place))
    law = chances @ weights
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

    def found(of: Callable[[float], dict[str, float]], right: float, furthest: float) -> float:
        def lacking(size: float) -> float:
            return chance_noticed(n, n_ranks, level, **of(size)) - NOTICED

        if lacking(furthest) < 0:
            return nan
        return float(scipy.optimize.brentq(lacking, right, furthest, xtol=1e-3))

    narrow = found(lambda size: {"width": exp(size)}, 0.0, log(NARROWEST))
    wide = found(lambda size: {"width": exp(size)}, 0.0, log(WIDEST))
    shift = found(lambda size: {"shift": size}, 0.0, FURTHEST_SHIFT)
    margin = 1e-3  # of the search
    return (
        nan if isnan(narrow) else floor(100 * exp(narrow - margin)) / 100,
        nan if isnan(wide) else ceil(100 * exp(wide + margin)) / 100,
        nan if isnan(shift) else ceil(100 * (shift + margin)) / 100,
    )


def gamma_statistic(
    ranks: ArrayLike, n_ranks: int, points: int | None = None
) -> tuple[float, float]:
    """Return the gamma statistic of ranks and its exact p-value under uniformity.

    gamma = 2 min over points of min(P(X <= count), P(X >= count)), at most 1, the smallest
    pointwise tail probability of the ECDF (Säilynoja et al. 2022; Modrák et al. 2023). The p-value
    is the exact probability of a gamma so small or smaller. It is at most `1 - mass` if and only if
    the ECDF leaves the band of that mass.

    Parameters
    ----------
    ranks
        Integers in 0..L, [N].
    n_ranks
        L.
    points
        As in `simultaneous_band`.

    Raises
    ------
    ValueError
        If there are no ranks, they are outside 0..L, or `points` does not divide L + 1.
    """
    observed = _some(ranks, n_ranks)
    n = len(observed)
    k = _number_of_points(n, n_ranks, points)
    tails = _tails(n, k)
    gamma = float(tails[np.arange(k + 1), _counts_below(observed, n_ranks, k)].min())
    if gamma == 1:  # nothing is more central
        return gamma, 1.0
    return gamma, _chance_outside(n, *_bounds(tails > gamma))


def chi_square(ranks: ArrayLike, n_ranks: int, bins: int | None = None) -> tuple[float, float, int]:
    """Return Pearson's chi-square of ranks in equal bins, its p-value, and the number of bins.

    Parameters
    ----------
    ranks
        Integers in 0..L, [N].
    n_ranks
        L.
    bins
        A divisor of L + 1 from 2 on that leaves at least 5 expected ranks in a bin, below which
        the chi-square distribution is no good approximation. By default the largest such divisor
        up to 20; if there is none, statistic and p-value are NaN and the number of bins is 1.

    Raises
    ------
    ValueError
        If there are no ranks, they are outside 0..L, or `bins` breaks its rule.
    """
    observed = _some(ranks, n_ranks)
    most = int(len(observed) / LEAST_EXPECTED)
    if bins is None:
        bins = max([1, *(b for b in _divisors(n_ranks + 1) if b <= min(MOST_BINS, most))])
        if bins == 1:
            return nan, nan, 1
    _check_divides("bins", bins, n_ranks)
    if bins > most:
        raise ValueError(
            f"A chi-square test needs at least {LEAST_EXPECTED:.0f} expected ranks in each bin; "
            f"got {len(observed)} ranks in {bins} bins. Take at most {most} bins."
        )
    counts = np.bincount(observed * bins // (n_ranks + 1), minlength=bins)
    result = scipy.stats.chisquare(counts)
    return float(result.statistic), float(result.pvalue), bins


def _nothing() -> Array:
    return np.empty(0)


@dataclass(frozen=True)
class Uniformity(Result):
    """How uniform the ranks of one quantity are: tests, shape, and the word for it.

    Numbers of a quantity that is not judged are NaN, its arrays empty, and `inside_band` None.

    Parameters
    ----------
    n : number of replicates
    n_ranks : L; ranks lie in 0..L
    least : replicates from which on there is a verdict, see `least_replicates`
    seen_narrow, seen_wide, seen_shift : what n replicates notice with a chance of 80%: posteriors
        so many times as wide as they should be, or shifted by so many standard deviations; NaN
        for what none of any size would be
    level : p-values of gamma up to this one reject
    word : see the table of `verdicts`
    reasons : for the word, sentences
    gamma, p_value : smallest pointwise tail probability of the ECDF, and its exact p-value
    inside_band : whether the ECDF is inside its simultaneous band of mass 1 - level; p > level
    chi_square, chi_square_p, bins : Pearson's test, for information; it does not enter the word
    mean, mean_error : mean of u = (rank + 1/2) / (L + 1) and its standard error; 0.5 if uniform
    spread, spread_error : variance of u, relative to a posterior of the right width (see the
        module), and its standard error; 1 if uniform, above 1 if the posterior is too narrow
    points : z, from 0 to 1, [K + 1]
    difference : share of ranks below z (L + 1), minus z, [K + 1]
    lower, upper : that band, of the difference, [K + 1]
    """

    n: int
    n_ranks: int
    level: float
    word: str
    reasons: tuple[str, ...]
    least: int = 0
    seen_narrow: float = nan
    seen_wide: float = nan
    seen_shift: float = nan
    gamma: float = nan
    p_value: float = nan
    inside_band: bool | None = None
    chi_square: float = nan
    chi_square_p: float = nan
    bins: int = 1
    mean: float = nan
    mean_error: float = nan
    spread: float = nan
    spread_error: float = nan
    points: Array = field(default_factory=_nothing, repr=False, compare=False)
    difference: Array = field(default_factory=_nothing, repr=False, compare=False)
    lower: Array = field(default_factory=_nothing, repr=False, compare=False)
    upper: Array = field(default_factory=_nothing, repr=False, compare=False)

    def to_frame(self) -> pd.DataFrame:
        """One row per point: z, ECDF minus z, and its band."""
        return pd.DataFrame(
            {
                "z": self.points,
                "difference": self.difference,
                "lower": self.lower,
                "upper": self.upper,
            }
        )

    def content(self) -> dict[str, Any]:
        """Word, reasons and numbers, without the arrays."""
        arrays = ("points", "difference", "lower", "upper")
        found = {name: value for name, value in super().content().items() if name not in arrays}
        return {"word": self.word, "reasons": self.reasons} | found

    def __str__(self) -> str:
        """Word, reasons and the numbers behind them."""
        lines = [f"{self.word}: {' '.join(self.reasons)}"]
        if self.inside_band is None:
            return lines[0]
        band, mass = "inside" if self.inside_band else "outside", f"{1 - self.level:.4g}"
        binned = (
            f"{self.chi_square:>8.1f}   p = {_p(self.chi_square_p)}, {self.bins} bins"
            if self.bins > 1
            else f"{'-':>8}   L + 1 has no small divisor to make equal bins"
        )
        lines += [
            f"{'replicates':<12}{self.n:>8}   ranks on 0..{self.n_ranks}",
            f"{'gamma':<12}{self.gamma:>8.2g}   p = {_p(self.p_value)}, ECDF {band} {mass} band",
            f"{'chi-square':<12}{binned}",
            f"{'mean':<12}{self.mean:>8.3f}   (se {self.mean_error:.3f}; 0.5 if uniform)",
            f"{'spread':<12}{self.spread:>8.2f}   (se {self.spread_error:.2f}; 1 if uniform)",
        ]
        return "\n".join(lines)


def judge(ranks: ArrayLike, n_ranks: int, level: float = 0.05) -> Uniformity:
    """Decide whether ranks are uniform on 0..L and, if not, in which way.

    Parameters
    ----------
    ranks
        Integers in 0..L, one per usable replicate, [N].
    n_ranks
        L.
    level
        Chance of rejecting a calibrated quantity, between 0 and 1. For several quantities divide
        the level of the whole by their number.

    Raises
    ------
    ValueError
        If ranks are outside 0..L or the level is outside 0 to 1.
    """
    observed = _checked(ranks, n_ranks)
    if not 0 < level < 1:
        raise ValueError(f"A level lies between 0 and 1; got {level}.")
    n = len(observed)
    least = least_replicates(n_ranks, level)
    seen = noticeable(n, n_ranks, level) if n else (nan, nan, nan)
    if n < least:
        reason = (
            f"Usable replicates: {n}; {least} are needed to notice with a chance of {NOTICED:.0%} "
            f"a posterior that is {HALF_WIDTH} times as wide as it should be."
        )
        return Uniformity(
            n, n_ranks, level, "not judged", (reason, _about_seen(n, seen)), least, *seen
        )
    gamma, p_value = gamma_statistic(observed, n_ranks)
    statistic, chi_square_p, bins = chi_square(observed, n_ranks)
    band = simultaneous_band(n, n_ranks, 1 - level)
    mean, mean_error, spread, spread_error = _shape(observed, n_ranks)
    word, reasons = _judged(p_value, level, mean, mean_error, spread, spread_error)
    if word == "calibrated":
        reasons = (*reasons, _about_seen(n, seen))
    counts = _counts_below(observed, n_ranks, len(band.points) - 1)
    return Uniformity(
        n=n,
        n_ranks=n_ranks,
        level=level,
        word=word,
        reasons=reasons,
        least=least,
        seen_narrow=seen[0],
        seen_wide=seen[1],
        seen_shift=seen[2],
        gamma=gamma,
        p_value=p_value,
        inside_band=band.holds(observed),
        chi_square=statistic,
        chi_square_p=chi_square_p,
        bins=bins,
        mean=mean,
        mean_error=mean_error,
        spread=spread,
        spread_error=spread_error,
        points=band.points,
        difference=counts / n - band.points,
        lower=band.lower,
        upper=band.upper,
    )


def _about_seen(n: int, seen: tuple[float, float, float]) -> str:
    """Say which posteriors so many replicates would have noticed."""
    narrow, wide, shift = seen
    widths = " or ".join(f"{width:.2f}" for width in (narrow, wide) if width > 0)
    each = [f"{widths} times as wide as it should be"] if widths else []
    each += [f"shifted by {shift:.2f} of its standard deviations"] if shift > 0 else []
    if not each:
        return f"With {n} replicates no posterior, however wrong, is noticed with that chance."
    told = ", or one ".join(each)
    return (
        f"With {n} replicates a posterior {told}, is noticed with a chance of at least "
        f"{NOTICED:.0%}, by the ranks of this quantity alone."
    )


def _shape(ranks: Counts, n_ranks: int) -> tuple[float, float, float, float]:
    """Mean of u and its error, spread of u and its error.

    If the truth is at posterior mean + posterior sd (a + b Z), Z standard normal, then u = Phi(a +
    b Z), its mean is m = Phi(h) with h = a / sqrt(1 + b^2), and for b = 1 its variance is
    v = m (1 - m) - 2 T(h, 1 / sqrt(3)), T being Owen's function. For every h the variance is above
    v if and only if b > 1, so that a shift is not taken for a width.
    """
    n = len(ranks)
    u = (ranks + 0.5) / (n_ranks + 1)
    m = float(u.mean())
    square = (u - m) ** 2
    variance = float(square.sum()) / (n - 1)
    h = float(ndtri(m))
    # the second term is the variance within one of the L + 1 steps, which ranks do not have
    v = float(m * (1 - m) - 2 * owens_t(h, 1 / sqrt(3))) - 1 / (12 * (n_ranks + 1) ** 2)
    slope = float(2 * ndtr(h / sqrt(3)) - 2 * m)  # dv / dm
    # by the delta method: what each replicate adds to the ratio variance / v(m)
    influence = (square - variance) / v - variance * slope / v**2 * (u - m)
    return m, sqrt(variance / n), variance / v, float(influence.std(ddof=1)) / sqrt(n)


def _judged(
    p_value: float, level: float, mean: float, mean_error: float, spread: float, spread_error: float
) -> tuple[str, tuple[str, ...]]:
    if p_value > level:
        reason = (
            f"The ranks are as uniform as chance allows (p = {_p(p_value)}, level {level:.3g})."
        )
        return "calibrated", (reason,)
    high, narrow = mean < 0.5, spread > 1
    bias = _errors(mean - 0.5, mean_error)
    width = _errors(spread - 1, spread_error)
    if not 1 - FURTHEST_MEAN <= mean <= FURTHEST_MEAN:
        width = 0.0
    threshold = CLEAR_ERRORS
    if max(bias, width) <= CLEAR_ERRORS:
        threshold = max(LEAST_ERRORS, min(bias, width))  # only the larger of the two is named
    words = []
    reasons = [f"The ranks are not uniform (p = {_p(p_value)}, level {level:.3g})."]
    if bias > threshold:
        words.append("biased high" if high else "biased low")
        reasons.append(
            f"Draws lie too {'high' if high else 'low'}: the mean rank is at {mean:.2f} instead of "
            "0.50 of the range."
        )
    if width > threshold:
        words.append("over-confident" if narrow else "under-confident")
        reasons.append(
            f"Posteriors are too {'narrow' if narrow else 'wide'}: the ranks have {spread:.2f} "
            "times the variance expected."
        )
    if not words:
        words.append("miscalibrated")
        reasons.append("Neither a shift nor a wrong width of the posteriors explains it.")
    return ", ".join(words), tuple(reasons)


def _errors(deviation: float, error: float) -> float:
    """Size of a deviation in standard errors; ranks that do not vary have an error of 0."""
    if error > 0:
        return abs(deviation) / error
    return inf if deviation else 0.0


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"


def _counts_below(ranks: Counts, n_ranks: int, points: int) -> Counts:
    """Count of ranks below z (L + 1) for z = 0, 1/K, ..., 1, [K + 1]."""
    in_bins = np.bincount(ranks * points // (n_ranks + 1), minlength=points)
    return np.concatenate([[0], np.cumsum(in_bins)])


def _number_of_points(n: int, n_ranks: int, points: int | None) -> int:
    if points is not None:
        _check_divides("points", points, n_ranks)
        return points
    largest = max(d for d in _divisors(n_ranks + 1) if d <= n)
    return largest if largest >= LEAST_POINTS else n_ranks + 1


def _divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _check_divides(name: str, value: int, n_ranks: int) -> None:
    if value < 2 or (n_ranks + 1) % value:
        possible = ", ".join(str(d) for d in _divisors(n_ranks + 1)[1:])
        raise ValueError(
            f"{name} must divide the {n_ranks + 1} possible ranks into 2 or more equal parts; "
            f"got {value}. Take one of {possible}."
        )


def _some(ranks: ArrayLike, n_ranks: int) -> Counts:
    observed = _checked(ranks, n_ranks)
    if not len(observed):
        raise ValueError("A test of uniformity needs at least one rank; got none.")
    return observed


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
