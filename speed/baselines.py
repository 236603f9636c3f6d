"""What we measure ourselves against: the same dual-rate learner, written the usual ways."""

from math import exp, log1p

import numpy as np
from numba import njit


def numpy_log_likelihood(theta, context, action, reward):
    """NumPy arrays in a trial loop, the style of most published scripts."""
    alpha_positive, alpha_negative, beta, kappa = theta
    values = np.full((4, 2), 0.5)
    last = np.zeros((4, 2))
    total = 0.0
    for c, a, r in zip(context, action, reward, strict=True):
        logits = beta * values[c] + kappa * last[c]
        logits -= logits.max()
        p = np.exp(logits) / np.sum(np.exp(logits))
        total += np.log(p[a])
        surprise = r - values[c, a]
        rate = np.where(surprise > 0, alpha_positive, alpha_negative)
        values[c, a] += rate * surprise
        last[c] = np.eye(2)[a]
    return total


@njit(nogil=True, error_model="numpy", fastmath={"contract"})
def scalar_log_likelihood(theta, context, action, reward, offsets):
    """Numba, one learner after another, log-likelihood alone."""
    out = np.zeros(len(theta))
    for i in range(len(theta)):
        alpha_positive, alpha_negative, beta, kappa = theta[i]
        value = np.full((4, 2), 0.5)
        last = np.full(4, -1)
        for t in range(offsets[i], offsets[i + 1]):
            c, a = context[t], action[t]
            x = beta * (value[c, a] - value[c, 1 - a])
            if last[c] >= 0:
                x += kappa if last[c] == a else -kappa
            out[i] += min(x, 0.0) - log1p(exp(-abs(x)))
            surprise = reward[t] - value[c, a]
            value[c, a] += (alpha_positive if surprise > 0 else alpha_negative) * surprise
            last[c] = a
    return out
