"""How well somebody's answers to some tasks are foretold from the answers to the others."""

from __future__ import annotations

import numpy as np

from knownminds.agents import Agent
from knownminds.agents.parameters import Array
from knownminds.inference.measure import Dial

from .least_squares_reasoner import ReasoningConsistency
from .reasoner_measure import ReasonerMeasure


class Consistency(ReasonerMeasure):
    """R2 of leaving out each task in turn: a noisy-OR fitted to the others predicts its mean.

    Of the noisy-ORs with 3 and 4 parameters the one that predicts better counts. The truth is that
    of judgements without noise: 1 in every noisy-OR. Noisy answers lower the measure, the more the
    fewer there are, so that it tells the number of answers as well as the reasoning. As released
    (see `ReasonerMeasure`), a noisy-OR with two different strengths has less than 1.
    """

    name = "reasoning_consistency"
    described = "R2 of a noisy-OR, fitted without a task, in predicting that task"
    source = "Dettki 2025"
    bounds = (-np.inf, 1.0)
    violator = "mutation_sampler"
    # The first moves the mutation sampler, the second the associative reasoner.
    dial = Dial({"lambda": 1.0, "k": -1.0}, reach=2.0, steps=9)

    def of(self, found: ReasoningConsistency) -> Array:
        """Return R2 of the better number of parameters, [N]."""
        return found.value

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return R2 in judgements without noise, [n]."""
        return self.of_judgements(model, theta)
