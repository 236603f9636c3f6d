"""R-hat, effective sample sizes and Monte-Carlo errors of many quantities at once.

Those of Vehtari, Gelman, Simpson, Carpenter and Buerkner (2021), as ArviZ computes them one by
one: tests hold the numbers against ArviZ's. A group of a thousand has thousands of quantities, and
ArviZ takes longer to be imported than a group of fifty to be sampled.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

from knownminds.agents.parameters import Array

LEAST_DRAWS = 4  # of each chain, for there to be anything to say
VALUES_AT_ONCE = 1_000_000
TAILS = (0.05, 0.95)


def r_hat(draws: Array) -> Array:
    """Return the rank-normalised split R-hat, the larger of bulk and tail; draws [C, D, ...].

    NaN where there is a single chain, or a draw is not finite.
    """
    if draws.shape[0] < 2:
        return np.full(draws.shape[2:], np.nan)
    return _in_parts(draws, lambda part: _r_hat(_halves(part))[0])


def r_hat_and_bulk(draws: Array) -> tuple[Array, Array]:
    """Return `r_hat` and `ess_bulk` of draws [C, D, ...], which share their ranks."""
    if draws.shape[0] < 2:
        return r_hat(draws), ess_bulk(draws)

    def both(part: Array) -> Array:
        found, scores = _r_hat(_halves(part))
        return np.stack([found, _effective(scores)])

    found = _in_parts(draws, both, 2)
    return found[0], found[1]


def ess_bulk(draws: Array) -> Array:
    """Return the effective sample size of the bulk, of rank-normalised draws [C, D, ...]."""
    return _in_parts(draws, lambda part: _effective(_normal_scores(_halves(part))))


def ess_mean(draws: Array) -> Array:
    """Return the effective sample size for the mean of draws [C, D, ...]."""
    return _in_parts(draws, lambda part: _effective(_halves(part)))


def ess_quantile(draws: Array, share: float) -> Array:
    """Return the effective sample size for a quantile of draws [C, D, ...]."""

    def found(part: Array) -> Array:
        end = np.quantile(part, share, axis=(1, 2), keepdims=True)
        return _effective(_halves((part <= end).astype(float)))

    return _in_parts(draws, found)


def ess_tail(draws: Array) -> Array:
    """Return the smaller effective sample size of those for the 5% and 95% quantiles."""
    low, high = (ess_quantile(draws, share) for share in TAILS)
    return np.minimum(low, high)


def error_of_mean(draws: Array) -> Array:
    """Return the Monte-Carlo standard error of the mean of draws [C, D, ...]."""
    spread = draws.std(axis=(0, 1), ddof=1)
    found: Array = spread / np.sqrt(ess_mean(draws))
    return found


def error_of_quantile(draws: Array, share: float) -> float:
    """Return the Monte-Carlo standard error of a quantile of draws [C, D].

    Half the width of its interval of one standard error, from the order statistics.
    """
    size = float(ess_quantile(draws, share))
    if not np.isfinite(size):
        return float("nan")
    ends = scipy.stats.beta.ppf([0.1586553, 0.8413447], size * share + 1, size * (1 - share) + 1)
    ordered = np.sort(draws, axis=None)
    place = ends * ordered.size - 1
    low = ordered[int(np.floor(max(place[0], 0)))]
    high = ordered[int(np.ceil(min(place[1], ordered.size - 1)))]
    return float(high - low) / 2


def _in_parts(draws: Array, score: Callable[[Array], Array], scores: int = 1) -> Array:
    """Score draws [C, D, ...], so many quantities at a time that memory is bounded.

    `score` takes quantities [V, C, D] and gives [V], or as many rows of these as `scores`.
    """
    chains, count = draws.shape[:2]
    flat = draws.reshape(chains, count, -1)
    found = np.full((scores, flat.shape[2]), np.nan)
    if count >= LEAST_DRAWS:
        known = np.flatnonzero(np.isfinite(flat).all(axis=(0, 1)))
        width = max(VALUES_AT_ONCE // (chains * count), 1)
        for begin in range(0, len(known), width):
            some = known[begin : begin + width]
            part = np.ascontiguousarray(np.moveaxis(flat[:, :, some], 2, 0))
            found[:, some] = score(part)
    shape = draws.shape[2:] if scores == 1 else (scores, *draws.shape[2:])
    return found.reshape(shape)


def _halves(draws: Array) -> Array:
    """Return the first and the last half of each chain as chains, [V, 2 C, D // 2]."""
    half = draws.shape[2] // 2
    return np.concatenate([draws[:, :, :half], draws[:, :, -half:]], axis=1)


def _normal_scores(draws: Array) -> Array:
    """Return normal scores of the ranks of draws [V, C, D] among all chains (Blom 1958)."""
    flat = draws.reshape(len(draws), -1)
    rank = scipy.stats.rankdata(flat, axis=1)
    found: Array = ndtri((rank - 0.375) / (flat.shape[1] + 0.25)).reshape(draws.shape)
    return found


def _r_hat(halves: Array) -> tuple[Array, Array]:
    """Return R-hat of half chains [V, C, D], and their normal scores."""
    scores = _normal_scores(halves)
    folded = np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True))
    return np.maximum(_split(scores), _split(_normal_scores(folded))), scores


def _split(draws: Array) -> Array:
    """Return the square root of the variance of all over that within chains [V, C, D]."""
    count = draws.shape[2]
    within = draws.var(axis=2, ddof=1).mean(axis=1)
    between = count * draws.mean(axis=2).var(axis=1, ddof=1)
    with np.errstate(all="ignore"):
        found: Array = np.sqrt((between / within + count - 1) / count)
    return found


def _effective(draws: Array) -> Array:
    """Return the effective number of draws [V, C, D] by Geyer's initial monotone sequence, [V]."""
    _, chains, count = draws.shape
    away = draws - draws.mean(axis=2, keepdims=True)
    length = next_fast_len(2 * count, real=True)
    power = rfft(away, n=length, axis=2)
    power = (power.real**2 + power.imag**2).mean(axis=1)
    covariance = irfft(power, n=length, axis=1)[:, :count].T / count
    within = covariance[0] * count / (count - 1.0)
    whole = covariance[0].copy()
    if chains > 1:
        whole += draws.mean(axis=2).var(axis=1, ddof=1)
    constant = np.ptp(draws, axis=(1, 2)) < np.finfo(float).resolution
    with np.errstate(all="ignore"):
        rho = 1.0 - (within - covariance) / whole
    rho[0] = 1.0
    # Autocorrelations in pairs, up to the first pair whose sum is not above 0.
    last = max(-(-(count - 2) // 2) - 1, 0)
    even, odd = rho[: 2 * last + 1 : 2], rho[1 : 2 * last + 2 : 2]
    pair = even + odd
    ended = ~(pair > 0)
    end = np.where(ended.any(axis=0), ended.argmax(axis=0), last)
    before = np.arange(last + 1)[:, None] < end
    total = (np.minimum.accumulate(pair, axis=0) * before).sum(axis=0)
    at_end, pair_at_end = (np.take_along_axis(x, end[None], axis=0)[0] for x in (even, pair))
    rest = np.where(pair_at_end >= 0, at_end, np.maximum(at_end, 0.0))
    size = chains * count
    time = np.maximum(-1.0 + 2.0 * total + rest, 1.0 / np.log10(size))
    found: Array = np.where(constant, size, size / time)
    return found
