"""How deterministic the causal links are of which somebody's answers tell."""

from __future__ import annotations

import numpy as np

from knownminds.agents import Agent, NoisyOr
from knownminds.agents.parameters import Array
from knownminds.inference.measure import Dial

from .least_squares_reasoner import ReasoningConsistency
from .reasoner_measure import ReasonerMeasure


class Determinacy(ReasonerMeasure):
    """Leak-adjusted determinacy: mean of the strengths m1 and m2 minus the leak b, from -1 to 1.

    Of the noisy-OR, fitted by least squares, that predicts left-out tasks better: the one with a
    strength for each cause or the one with a single strength. Of other reasoners the truth is that
    of the noisy-OR closest to their judgements; see `ReasonerMeasure` for `released`.
    """

    name = "determinacy"
    described = "mean causal strength minus leak of the fitted noisy-OR"
    source = "Dettki 2025"
    bounds = (-1.0, 1.0)
    violator = "noisy_or"
    dial = Dial({"m": 1.0, "m1": 1.0, "m2": 1.0, "b": -1.0}, reach=4.0, steps=33)

    def of(self, found: ReasoningConsistency) -> Array:
        """Return mean strength minus leak of the better fit, [N]."""
        return np.asarray(found.strengths[:, 1:].mean(axis=1) - found.strengths[:, 0])

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return mean strength minus leak, [n]."""
        if self.scoring == "pooled" or not issubclass(model, NoisyOr):
            return self.of_judgements(model, theta)
        values = dict(zip(model.parameters.names, np.asarray(theta, dtype=float).T, strict=True))
        strengths = [values[name] for name in ("m", "m1", "m2") if name in values]
        return np.asarray(np.mean(strengths, axis=0) - values["b"])
