"""Differences between the answers to two tasks, averaged over the cells of a design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.agents import LogisticCollider, Model, NoisyOr
from knownminds.agents.parameters import Array
from knownminds.environments import Trials
from knownminds.environments.later import pandas as pd
from knownminds.inference.measure import Dial, Estimate, SubjectMeasure, Values

from .causal_answers import CELL_OF_TASKS, both_directions, causal_answers, cell_name, judgements

NAMED = 3  # so many cells without an answer are named one by one
COMPLIANT = 0.05  # a Markov violation up to this size, to either side, counts as none


@dataclass(eq=False, kw_only=True)
class CellContrast(SubjectMeasure):
    """Mean answer to one task minus that to another, of raw answers as shares of 1.

    In each cell (domain, sense and direction of the question) the answers to each task are
    averaged. A subject's value is the mean of the differences over the cells, which all have the
    same weight. Cells that lack an answer to one of the tasks are counted and named, and nothing
    replaces them. With several subjects the test is over subjects; with a single subject it is over
    its cells.

    Parameters
    ----------
    plus, minus : Roman numbers of the two tasks.
    pooled : Whether a cell has the questions about both causes, as in Dettki (2025), and is made by
        its domain and sense alone.
    has_null : Whether all agents of a model have the null value.
    """

    plus: str
    minus: str
    pooled: bool = False
    has_null: Callable[[type[Model]], bool] | None = None
    environments: tuple[str, ...] = ("collider",)
    source: str = "Rehder and Waldmann 2017; Dettki 2025"
    bounds: tuple[float, float] = (-1.0, 1.0)
    unit: ClassVar[str] = "cell"

    def values(self, trials: Trials) -> Values:
        """Return each subject's mean difference over its cells."""
        value = self.by_cell(trials).groupby("subject", observed=False)["value"].mean().to_numpy()
        return Values.of(value, self._lacking)

    @property
    def _lacking(self) -> str:
        return f"no cell with answers to both {self.plus} and {self.minus}"

    def blocks(self, trials: Trials) -> NDArray[np.int64]:
        """Return the number of each trial's cell within its subject, [rows]."""
        asking = self._asking(trials)
        block = np.full(len(trials), -1)
        cell = asking.groupby(["subject", *CELL_OF_TASKS], sort=False).ngroup()
        block[trials.frame.index.get_indexer(asking.index)] = cell
        return block

    def with_counts(self, estimate: Estimate, trials: Trials) -> Estimate:
        """Return the estimate with counts of cells that lack a task, named by cell."""
        excluded = dict(estimate.excluded)
        if estimate.unit == self.unit and estimate.n:
            excluded.pop(self._lacking, None)
        cells = self.by_cell(trials)
        for task, column in ((self.plus, "plus"), (self.minus, "minus")):
            lacking = cells[cells[column].isna()]
            names = [cell for cell in cells["cell"].unique() if (lacking["cell"] == cell).any()]
            if names:
                more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
                excluded[f"no answer to {task} in {', '.join(names[:NAMED])}{more}"] = len(lacking)
        return super().with_counts(replace(estimate, excluded=excluded), trials)

    def reads(self, trials: Trials) -> NDArray[np.bool_]:
        """Say which trials ask one of the two tasks, [rows]."""
        return np.asarray(trials.frame.index.isin(self._asking(trials).index))

    def _asking(self, trials: Trials | pd.DataFrame) -> pd.DataFrame:
        answers = causal_answers(trials)
        asking = answers[answers["task"].isin([self.plus, self.minus])]
        return asking.assign(direction="") if self.pooled else asking

    def by_cell(self, trials: Trials | pd.DataFrame) -> pd.DataFrame:
        """Return one row per subject and cell that asks one of the tasks.

        The columns are subject, cell (domain, sense and direction), plus and minus (mean answers to
        the tasks, NaN without one) and value, their difference.
        """
        asking = self._asking(trials)
        if len(asking) == 0:
            raise ValueError(
                f"{self.name} compares the tasks {self.plus} and {self.minus}; the trials have "
                "none of them. Ask both."
            )
        keys = ["subject", *CELL_OF_TASKS]
        means = asking.groupby([*keys, "task"], sort=False)["answer"].mean().unstack("task")
        wide = means.reindex(asking.set_index(keys).index.unique())
        wide = wide.reindex(columns=[self.plus, self.minus])
        subjects = causal_answers(trials)["subject"].unique()
        return pd.DataFrame(
            {
                "subject": pd.Categorical(wide.index.get_level_values(0), subjects),
                "cell": [cell_name(*key[1:]) for key in wide.index],
                "plus": wide[self.plus].to_numpy(),
                "minus": wide[self.minus].to_numpy(),
                "value": (wide[self.plus] - wide[self.minus]).to_numpy(),
            }
        )

    def truth(self, model: type[Model], theta: Array) -> Array:
        """Return the difference of the judgements themselves, before noise and rounding, [n]."""
        if self.has_null is not None and self.has_null(model):
            return np.full(len(theta), self.null)
        pair = [both_directions(task) for task in (self.plus, self.minus)]
        plus, minus = (judgements(model, theta, questions).mean(axis=1) for questions in pair)
        return np.asarray(plus - minus)


def explaining_away(released: bool = False) -> CellContrast:
    """VII - VI: P(Ci | E = 1) - P(Ci | E = 1, Cj = 1), from raw answers on a scale from 0 to 1.

    How much a rational agent explains away depends on its strengths and its prior, from 0 (if the
    effect comes by itself) to 1/2 (rare causes that always work). So rational agents share no
    single value, and there is no test of one. The interval says whether the answers are compatible
    with 0.

    Parameters
    ----------
    released : As the published numbers are: VIII - VI, where the other cause is known to be absent
        in the first task, in cells with the questions about both causes. In a noisy-OR it is never
        smaller than VII - VI, and reaches 1.
    """
    ending = ", from the other cause's absence to its presence" if released else ""
    # The dial is stronger causes, a smaller leak, and a longer walk if there is one. Very short
    # walks hardly leave the prototypes, and have no difference VII - VI either.
    direction = {"b": -1.0, "m1": 1.0, "m2": 1.0, "lambda": 1.0}
    return CellContrast(
        name="explaining_away" + ("_released" if released else ""),
        summary=f"judgement of a cause that the other cause takes away{ending}",
        plus="VIII" if released else "VII",
        minus="VI",
        pooled=released,
        violator="mutation_sampler",
        dial=Dial(direction, reach=4.0 if released else 1.7, steps=25),
    )


def markov_violation(released: bool = False) -> CellContrast:
    """IV - V: P(Ci | Cj = 1) - P(Ci | Cj = 0), from raw answers on a scale from 0 to 1, with its
    sign.

    As long as nothing is known of their effect, independent causes tell nothing about each other:
    every noisy-OR has 0, whatever its parameters. An associative reasoner has its share of
    association. Published as a distance; here a positive number means that one cause raises the
    other.

    Parameters
    ----------
    released : As the published numbers are, in cells with the questions about both causes. If no
        answer is missing, it is the same.
    """
    ending = ", of cells with both directions" if released else ""
    what = "how much the presence of one cause raises the judgement of the other"
    return CellContrast(
        name="markov_violation" + ("_released" if released else ""),
        summary=f"{what}{ending}",
        plus="IV",
        minus="V",
        pooled=released,
        rational="noisy_or",
        has_null=lambda model: issubclass(model, NoisyOr | LogisticCollider),
        violator="associative_reasoner",
        # The first parameter moves the associative reasoner, the second the mutation sampler.
        dial=Dial({"k": 1.0, "lambda": -1.0}, reach=6.0, steps=49),
    )


def complies(violation: float) -> bool:
    """Say whether a Markov violation is small enough to count as none."""
    return abs(violation) <= COMPLIANT


CONTRASTS = tuple(
    contrast(released)
    for contrast in (explaining_away, markov_violation)
    for released in (False, True)
)
