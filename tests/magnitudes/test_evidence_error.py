"""Errors of evidence, by answering again, against the spread over participants."""

import numpy as np
import pytest

from knownminds.agents import AGENTS, simulate
from knownminds.environments import Trials, make
from knownminds.inference.magnitudes.factor_evidence import factor_evidence
from knownminds.inference.magnitudes.observer_fits import aic_of, fit_observers
from knownminds.validation.magnitudes.evidence_error import evidence_errors


@pytest.mark.long
def test_replays_vary_as_participants_along_a_line_do():
    """30 participants: their spread is known to 13%, and skewed; within half of it."""
    line = [[0.9, 0.05, 0.05]] * 30
    place = make("marker_location", modality="text")
    frame = simulate(AGENTS["linear_observer"], line, place, seed=1).frame
    told = factor_evidence(aic_of(fit_observers(Trials.from_frame(frame), workers=1)))
    errors = evidence_errors(frame, replays=8, seed=1)
    assert errors.index.astype(int).sort_values().tolist() == list(range(30))
    spread = told["bayesian"].std()
    assert 0.5 < np.sqrt((errors["bayesian"] ** 2).mean()) / spread < 1.5
