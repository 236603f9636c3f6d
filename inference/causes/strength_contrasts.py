"""What judgements of causal strength follow: power or contrast, and how common the effect is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.environments import CausalStrength
from knownminds.environments.causes.causal_strength import (
    COUNTS,
    PREVENT,
    judged_contrast,
    judged_power,
)
from knownminds.inference.measure import Dial
from knownminds.inference.session_measure import SessionMeasure


class PowerWeight(SessionMeasure):
    """Where answers lie between the contrast (0) and causal power (1).

    The slope of the line through the origin of (answer - contrast) on (power - contrast), over the
    tables of a session in which the two differ, as shares of 1. Noise that is cut off at the ends
    of the scale pulls it a little.
    """

    name = "power_weight"
    summary = "where judgements lie between contrast (0) and causal power (1)"
    source = "Buehner, Cheng and Clifford 2003"
    kind = CausalStrength
    columns = (*COUNTS, "kind", "response")
    reason = "no table in which power and contrast differ"
    violator = "strength_judge"
    dial = Dial({"w": 1.0}, reach=2.0, steps=9)

    def by_session(
        self, session: NDArray[np.int64], trial: NDArray[np.int64], columns: dict[str, Array]
    ) -> Array:
        """Return the slope, [sessions]."""
        contrast = judged_contrast(columns)
        x = judged_power(columns) - contrast
        y = columns["response"] / 100.0 - contrast
        return _slope(session, x, y)


class FrequencyIllusion(SessionMeasure):
    """How much answers rise with how common the effect is, where the cause makes no difference.

    Over the tables of a session whose contrast is 0: the slope of the answers, as shares of 1, on
    the share of cases with the effect (of those without it, where prevention is asked about), each
    less its mean among the tables of its kind. Who goes by contrast or power has 0.
    """

    name = "frequency_illusion"
    summary = "rise of judgements with the effect's frequency where the cause makes no difference"
    source = "Allan and Jenkins 1983; Griffiths and Tenenbaum 2005"
    kind = CausalStrength
    columns = (*COUNTS, "kind", "response")
    reason = "no tables without a contrast that differ"
    null = 0.0
    rational = "power_pc"
    violator = "causal_support"
    dial = Dial({"gain": 1.0}, reach=0.5, steps=14, lowest=-6.0)

    def by_session(
        self, session: NDArray[np.int64], trial: NDArray[np.int64], columns: dict[str, Array]
    ) -> Array:
        """Return the slope, [sessions]."""
        a, b, c, d = (columns[name] for name in COUNTS)
        prevents = columns["kind"] == PREVENT
        share = (a + c) / (a + b + c + d)
        frequent = np.where(prevents, 1.0 - share, share)
        answer = columns["response"] / 100.0
        flat = (a * d == b * c) & np.isfinite(answer)
        group = 2 * session + prevents
        x = frequent - _mean_within(group, frequent, flat)
        y = answer - _mean_within(group, answer, flat)
        return _slope(session, np.where(flat, x, 0.0), np.where(flat, y, 0.0))


def _mean_within(group: NDArray[np.int64], values: Array, kept: NDArray[np.bool_]) -> Array:
    """Return the mean of what is kept of each row's group, [rows]."""
    n = int(group.max(initial=-1)) + 1
    total = np.bincount(group, np.where(kept, values, 0.0), n)
    return np.asarray((total / np.maximum(np.bincount(group, kept, n), 1.0))[group])


def _slope(session: NDArray[np.int64], x: Array, y: Array) -> Array:
    """Return the slope through the origin in each session; NaN where no x differs from 0."""
    n = int(session.max(initial=-1)) + 1
    held = np.isfinite(x + y)
    x, y = np.where(held, x, 0.0), np.where(held, y, 0.0)
    squares = np.bincount(session, x**2, n)
    products = np.bincount(session, x * y, n)
    slope: Array = np.full(n, np.nan)
    np.divide(products, squares, out=slope, where=squares > 1e-12)
    return slope
