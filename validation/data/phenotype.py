"""Scores of several participants on one scale, as the cognitive benchmark's paper takes them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from knownminds.agents.parameters import Array

from .score_figures import draw_bars, draw_radar
from .score_scale import METRICS, PERFORMANCE, random_score, read_reference, scaled

__all__ = ["METRICS", "PERFORMANCE", "Phenotype", "random_score", "read_reference"]


@dataclass(frozen=True)
class Phenotype:
    """Scores of participants, normalised: 0 is what random answers score, 1 the reference.

    Parameters
    ----------
    participants, metrics
        Their names.
    score, standard_error, low, high
        Of each participant on each metric, with its 95% interval, [participants, metrics]; NaN
        where there is none.
    random, reference
        Scores of random answers and of the reference, [metrics].
    reason
        Why there is no normalised score; empty where there is one, [participants, metrics].
    released
        Whether normalised scores are without sign, as in CogBench.
    """

    participants: tuple[str, ...]
    metrics: tuple[str, ...]
    score: Array
    standard_error: Array
    low: Array
    high: Array
    random: Array
    reference: Array
    reason: tuple[tuple[str, ...], ...]
    released: bool = False

    def to_frame(self) -> pd.DataFrame:
        """One row per participant and metric, see `scaled`."""
        n, m = len(self.participants), len(self.metrics)
        frame = pd.DataFrame({
            "participant": np.repeat(np.array(self.participants, dtype=object), m),
            "metric": np.tile(np.array(self.metrics, dtype=object), n),
            "value": self.score.ravel(), "standard_error": self.standard_error.ravel(),
            "low": self.low.ravel(), "high": self.high.ravel(),
            "random": np.tile(self.random, n), "reference": np.tile(self.reference, n),
            "random_error": 0.0,
            "missing": [why for row in self.reason for why in row],
        })  # fmt: skip
        return scaled(frame, self.released)

    def _matrix(self, column: str) -> Array:
        shape = (len(self.participants), len(self.metrics))
        return self.to_frame()[column].to_numpy(dtype=float).reshape(shape)

    @property
    def normalised(self) -> Array:
        """(score - random) / (reference - random), [participants, metrics]; NaN if missing."""
        return self._matrix("normalised")

    @property
    def normalised_error(self) -> Array:
        """Standard errors on the normalised scale."""
        return self._matrix("normalised_error")

    def bars(self) -> Figure:
        """Draw a panel per metric that anyone has, with a bar from random answers to each."""
        return draw_bars(self.to_frame())

    def radar(self) -> Figure:
        """Draw a radar per participant."""
        return draw_radar(self.to_frame())
