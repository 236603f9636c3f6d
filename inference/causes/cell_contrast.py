"""Differences between the answers to two tasks, averaged over the cells of a design."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import Agent, LogisticCollider, NoisyOr
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Estimate, Measure, SubjectMeasure, Values, t_tests

from .causal_answers import CELL_OF_TASKS, both_directions, causal_answers, cell_name, judgements

NAMED = 3  # cells that are named one by one where many have no answer
COMPLIANT = 0.05  # largest Markov violation, to either side, that passes for none


class CellContrast(SubjectMeasure):
    """Mean answer to one task minus that to another, of raw answers as shares of 1.

    In each cell (domain, sense and direction of the question) the answers to each task are
    averaged; a subject's value is the mean of the differences over the cells, which all weigh the
    same. Cells that were asked but lack an answer to one of the tasks are counted and named, and
    nothing replaces them. With several subjects the test is over subjects, with a single
    one over its cells.

    Parameters
    ----------
    released
        Whether a cell holds the questions about both causes, as in Dettki (2025): its domain and
        sense make it.

    Attributes
    ----------
    plus, minus
        Roman numbers of the two tasks.
    """

    environments = ("collider",)
    source = "Rehder and Waldmann 2017; Dettki 2025"
    bounds = (-1.0, 1.0)
    plus: str
    minus: str

    def __init__(self, released: bool = False):
        self.pooled = released

    def values(self, trials: Trials | pd.DataFrame) -> Values:
        """Return each subject's mean difference over its cells."""
        return self._over_cells(self.by_cell(trials))

    of_each = Measure.of_each  # their interval is not over sessions

    def estimate(self, trials: Trials | pd.DataFrame) -> Estimate:
        """Return the mean over subjects, or over the cells of a single one."""
        cells = self.by_cell(trials)
        if len(cells["subject"].cat.categories) > 1:
            estimate = self.over_subjects(self._over_cells(cells))
        else:
            values = cells["value"].to_numpy()
            tests = t_tests(values[None, :], self.null, bounds=self.bounds)
            estimate = self._estimate(tests, Values(values, ()), "cell")
        counts = {**estimate.excluded, **self._counted(cells), **self.unanswered(trials)}
        return replace(estimate, excluded=counts)

    def reads(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials ask one of the two tasks, [rows]."""
        answers = causal_answers(trials)
        mine = answers.index[answers["task"].isin([self.plus, self.minus])]
        return np.asarray(trials.frame.index.isin(mine))

    def by_cell(self, trials: Trials | pd.DataFrame) -> pd.DataFrame:
        """Return one row per subject and cell in which it was asked one of the tasks.

        Columns subject, cell (domain, sense and direction), plus and minus (mean answers to the
        tasks, NaN without one) and value, their difference.
        """
        answers = causal_answers(trials)
        asking = answers[answers["task"].isin([self.plus, self.minus])]
        if len(asking) == 0:
            raise ValueError(
                f"{self.name} compares the tasks {self.plus} and {self.minus}; the trials have "
                "none of them. Ask both."
            )
        if self.pooled:
            asking = asking.assign(direction="")
        keys = ["subject", *CELL_OF_TASKS]
        means = asking.groupby([*keys, "task"], sort=False)["answer"].mean().unstack("task")
        wide = means.reindex(asking.set_index(keys).index.unique())
        table = pd.DataFrame(
            {
                "subject": wide.index.get_level_values(0),
                "cell": [cell_name(*key[1:]) for key in wide.index],
                "plus": wide[self.plus].to_numpy() if self.plus in wide else np.nan,
                "minus": wide[self.minus].to_numpy() if self.minus in wide else np.nan,
            }
        )
        return table.assign(
            value=table["plus"] - table["minus"],
            subject=pd.Categorical(table["subject"], answers["subject"].unique()),
        )

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the difference of the judgements themselves, before noise and rounding, [n]."""
        pair = [both_directions(task) for task in (self.plus, self.minus)]
        plus, minus = (judgements(model, theta, questions).mean(axis=1) for questions in pair)
        return np.asarray(plus - minus)

    def _over_cells(self, cells: pd.DataFrame) -> Values:
        """Return the mean over the cells of each subject; NaN with a reason where there is none."""
        value = cells.groupby("subject", observed=False)["value"].mean().to_numpy()
        reason = f"no cell with answers to both {self.plus} and {self.minus}"
        return Values(value, tuple("" if k else reason for k in np.isfinite(value)))

    def _counted(self, cells: pd.DataFrame) -> dict[str, int]:
        """Count the cells that lack a task, under a name that says which they are."""
        counts = {}
        for task, column in ((self.plus, "plus"), (self.minus, "minus")):
            lacking = cells[cells[column].isna()]
            names = [cell for cell in cells["cell"].unique() if (lacking["cell"] == cell).any()]
            if names:
                more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
                counts[f"no answer to {task} in {', '.join(names[:NAMED])}{more}"] = len(lacking)
        return counts


class ExplainingAway(CellContrast):
    """VII - VI: P(Ci | E = 1) - P(Ci | E = 1, Cj = 1), from raw answers as shares of 1.

    How much a rational agent explains away depends on what it takes the strengths and the prior
    to be, from 0 (if the effect comes by itself) to 1/2 (rare causes that always work). So there
    is no value that all rational agents have, and no test of one; the interval says whether 0 is
    among the values that the answers allow.

    Parameters
    ----------
    released
        As the published numbers are: VIII - VI, with the other cause known to be absent in the
        first task, of cells that hold the questions about both causes. In a noisy-OR it is never
        smaller, and reaches 1.
    """

    null = float("nan")
    rational = ""
    violator = "mutation_sampler"
    # Stronger causes, a smaller leak, and a longer walk where there is one.
    minus = "VI"

    def __init__(self, released: bool = False):
        super().__init__(released)
        self.plus = "VIII" if released else "VII"
        # Walks so short that they hardly leave the prototypes have no difference VII - VI either.
        direction = {"b": -1.0, "m1": 1.0, "m2": 1.0, "lambda": 1.0}
        self.dial = Dial(direction, reach=4.0 if released else 1.7, steps=25)
        self.name = "explaining_away" + ("_released" if released else "")
        ending = ", from the other cause's absence to its presence" if released else ""
        self.summary = f"judgement of a cause that the other cause takes away{ending}"


class MarkovViolation(CellContrast):
    """IV - V: P(Ci | Cj = 1) - P(Ci | Cj = 0), from raw answers as shares of 1, with its sign.

    As long as nothing is known of their effect, independent causes tell nothing of each
    other: every noisy-OR, whatever its parameters, has 0. An associative reasoner has its share of
    association. Published as a distance; here positive means that causes are taken to go together.

    Parameters
    ----------
    released
        As the published numbers are, of cells that hold the questions about both causes. Where no
        answer is missing it is the same.
    """

    rational = "noisy_or"
    violator = "associative_reasoner"
    # The first moves the associative reasoner, the second the mutation sampler.
    dial = Dial({"k": 1.0, "lambda": -1.0}, reach=6.0, steps=49)
    plus, minus = "IV", "V"

    def __init__(self, released: bool = False):
        super().__init__(released)
        self.name = "markov_violation" + ("_released" if released else "")
        ending = ", of cells with both directions" if released else ""
        self.summary = (
            f"how much the presence of one cause raises the judgement of the other{ending}"
        )

    def truth(self, model: type[Agent], theta: Array) -> Array:
        """Return the difference of the judgements, [n]; 0 where causes are independent."""
        if issubclass(model, NoisyOr | LogisticCollider):
            return np.full(len(theta), self.null)
        return super().truth(model, theta)


def complies(violation: float) -> bool:
    """Say whether a Markov violation is small enough to pass for none."""
    return abs(violation) <= COMPLIANT
