"""One agent with several sessions: one value of all of them, with an error over sessions."""

from __future__ import annotations

import numpy as np

from knownminds.inference import FittedMeasure, SubjectMeasure
from knownminds.inference.analysis import AgentValues
from knownminds.inference.left_out_blocks import LeftOutBlocks
from knownminds.validation.engine.population import PlayedSessions


def agent_values(
    measure: SubjectMeasure, sessions: PlayedSessions, threads: int | None = None
) -> AgentValues:
    """Read the measure off all sessions of each agent, and off all but some of them."""
    if not isinstance(measure, FittedMeasure):
        return AgentValues.of(measure, sessions.trials())
    agents = sessions.n_subjects
    answers = sessions.data(measure.model, apart=True).n_trials
    data = sessions.data(measure.model)
    value = measure.values_of(data, workers=threads).value
    owner = np.tile(np.arange(agents), len(answers) // agents)
    block = sessions.session * agents + sessions.subject
    left_out = LeftOutBlocks.of(sessions.subject, block, owner, answers > 0, np.isfinite(value))
    without = np.full(agents * left_out.most, np.nan)
    for rows, labels in left_out.copies():
        names, position = np.unique(labels, return_inverse=True)
        copies = sessions.rows(rows, position, len(names)).data(measure.model)
        without[names] = measure.values_of(copies, workers=threads).value
    error, freedom, _ = left_out.errors(value, without, data.answered.astype(float))
    return AgentValues(value, error, freedom, left_out.n)
