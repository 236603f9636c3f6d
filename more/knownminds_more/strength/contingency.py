"""Three summaries of a two by two table of counts: contrast, causal power, causal support.

The counts are those of cases with cause and effect, with the cause alone, with the effect alone,
and with neither.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaln

Array = NDArray[np.float64]


def delta_p(both: ArrayLike, cause: ArrayLike, effect: ArrayLike, neither: ArrayLike) -> Array:
    """Return P(effect | cause) - P(effect | no cause), -1 to 1.

    Parameters
    ----------
    both, cause, effect, neither : Counts of cases, [...]: with both, with the cause alone, with the
        effect alone, with neither.

    Returns
    -------
    [...], NaN where no case has the cause, or all cases have it.

    Raises
    ------
    ValueError : If a count is negative or not finite.
    """
    with_cause, without = _rates(both, cause, effect, neither)
    return np.asarray(with_cause - without)


def causal_power(both: ArrayLike, cause: ArrayLike, effect: ArrayLike, neither: ArrayLike) -> Array:
    """Return the power of a cause, -1 to 1: how often it alone would produce or prevent its effect.

    Where the contrast dP of `delta_p` is 0 or more, this is the power to produce, dP / (1 -
    P(effect | no cause)). Elsewhere it is minus the power to prevent, dP / P(effect | no cause)
    (Cheng 1997). These are the maximum-likelihood strengths of a `CausalNetwork` in which the base
    rate of the effect is P(effect | no cause) (Griffiths and Tenenbaum 2005).

    Parameters
    ----------
    both, cause, effect, neither : Counts of cases, [...], as in `delta_p`.

    Returns
    -------
    [...], NaN where the contrast is NaN, and where the effect is always present without the cause,
    so that nothing shows whether the cause could produce it.

    Raises
    ------
    ValueError : If a count is negative or not finite.
    """
    with_cause, without = _rates(both, cause, effect, neither)
    contrast = np.asarray(with_cause - without)
    room = np.where(contrast >= 0, 1.0 - without, without)
    return np.divide(contrast, room, out=np.full_like(contrast, np.nan), where=room > 0)


def _rates(
    both: ArrayLike, cause: ArrayLike, effect: ArrayLike, neither: ArrayLike
) -> tuple[Array, Array]:
    """Return how often the effect is present with the cause, and without it."""
    counts = np.stack(np.broadcast_arrays(both, cause, effect, neither)).astype(float)
    if not np.isfinite(counts).all() or (counts < 0).any():
        wrong = counts[~np.isfinite(counts) | (counts < 0)].flat[0]
        raise ValueError(f"Counts are finite and not negative; got {wrong:g}. Correct it.")
    a, b, c, d = counts
    nan = np.full_like(a, np.nan)
    with_cause = np.divide(a, a + b, out=nan.copy(), where=a + b > 0)
    without = np.divide(c, c + d, out=nan.copy(), where=c + d > 0)
    return with_cause, without


def causal_support(
    both: ArrayLike, cause: ArrayLike, effect: ArrayLike, neither: ArrayLike
) -> Array:
    """Return the evidence of a table that a cause produces its effect, a log Bayes factor.

    The value is ln P(counts | G1) - ln P(counts | G0). In G1 background and cause produce the
    effect by a noisy-OR, 1 - (1 - w0)(1 - w1 c); in G0 the background alone does. The priors of w0
    and w1 are even from 0 to 1 (Griffiths and Tenenbaum 2005). The likelihood is a polynomial in
    either strength, so that Gauss-Legendre quadrature gives the integral exactly. For a cause that
    prevents, by a noisy-AND-NOT, take the table with and without the effect exchanged:
    `causal_support(cause, both, neither, effect)`.

    Parameters
    ----------
    both, cause, effect, neither : Counts of cases, [...], as in `delta_p`; whole numbers.

    Returns
    -------
    [...], above 0 where the table speaks for a cause; 0 for an empty table.

    Raises
    ------
    ValueError : If a count is negative or not a whole number.
    """
    counts = np.stack(np.broadcast_arrays(both, cause, effect, neither)).astype(float)
    wrong = ~np.isfinite(counts) | (counts < 0) | (counts != np.round(counts))
    if wrong.any():
        raise ValueError(
            f"Counts of cases are whole numbers from 0 on; got {counts[wrong].flat[0]:g}. "
            "Correct it."
        )
    tables, which = np.unique(counts.reshape(4, -1), axis=1, return_inverse=True)
    support = np.array([_support(*table) for table in tables.T.tolist()])
    return support[which.ravel()].reshape(counts.shape[1:])


def _support(a: float, b: float, c: float, d: float) -> float:
    """Return the support of one table."""
    x, weight = leggauss(int(a + b + c + d) // 2 + 1)  # exact for such a polynomial
    w = (x + 1.0) / 2.0
    none, cause = np.log1p(-w)[:, None], np.log1p(-w)[None]  # background and cause fail to act
    present = np.log(-np.expm1(none + cause))
    log_density = a * present + b * (none + cause) + c * np.log(w)[:, None] + d * none
    top = log_density.max()
    whole = weight[:, None] * weight[None] / 4.0 * np.exp(log_density - top)
    return float(top + np.log(whole.sum()) - betaln(a + c + 1.0, b + d + 1.0))
