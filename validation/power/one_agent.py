"""One agent with several sessions: one value of all of them, with an error over sessions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from knownminds.agents.parameters import Array
from knownminds.inference import FittedMeasure, SubjectMeasure
from knownminds.inference.left_out_blocks import LeftOutBlocks
from knownminds.inference.measure import UNBOUNDED, Tests, interval_tests
from knownminds.validation.engine.population import Lived


@dataclass(frozen=True)
class AgentValues:
    """The measure of each of R agents, as `score` reads it off the sessions of one agent.

    Parameters
    ----------
    value, error, freedom
        Of all sessions together, its standard error by the jackknife over sessions, and the degrees
        of freedom of that, [R].
    n
        How many sessions have a value, [R].
    """

    value: Array
    error: Array
    freedom: Array
    n: NDArray[np.int64]

    @classmethod
    def of(
        cls, measure: SubjectMeasure, sessions: Lived, threads: int | None = None
    ) -> AgentValues:
        """Read the measure off all sessions of each agent, and off all but some of them."""
        if not isinstance(measure, FittedMeasure):
            _, tests, _ = measure.over_blocks(sessions.trials())
            return cls(tests.mean, tests.standard_error, tests.freedom, tests.n)
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
        error, freedom = left_out.errors(value, without, data.answered.astype(float))
        return cls(value, error, freedom, left_out.n)

    def tests(self, null: float, mass: float, bounds: tuple[float, float]) -> Tests:
        """Test the value of each agent."""
        return interval_tests(self.value, self.error, self.freedom, self.n, null, mass, bounds)

    def tests_against(self, other: AgentValues, mass: float) -> Tests:
        """Test the value of each agent minus that of another one (Satterthwaite 1946)."""
        mine, theirs = self.error**2, other.error**2
        with np.errstate(invalid="ignore", divide="ignore"):
            freedom = (mine + theirs) ** 2 / (mine**2 / self.freedom + theirs**2 / other.freedom)
        error, n = np.sqrt(mine + theirs), np.stack([other.n, self.n])
        difference = self.value - other.value
        return interval_tests(difference, error, freedom, n, 0.0, mass, UNBOUNDED)


def agent_tests(measure: SubjectMeasure, values: list[AgentValues], mass: float) -> Tests:
    """Test the value of one agent, or the difference of two conditions that two agents play."""
    if len(values) == 2:
        return values[1].tests_against(values[0], mass)
    return values[0].tests(measure.null, mass, measure.bounds)
