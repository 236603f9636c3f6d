"""What designs are worth in so many data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knownminds.validation.engine.scores import NOTHING, Score, mean
from knownminds.validation.engine.study import Rows

SCORES = ("score", "information", "right")  # and columns that begin as these do, of parameters
OF_PARAMETERS = ("spread_", "squared_error_", "covered_")


@dataclass(frozen=True)
class Measured:
    """Means over the data sets of a design.

    Parameters
    ----------
    attempted, failed : Data sets; those that could not be judged, which are left out of the means.
        Of an effect they count as not rejecting.
    scores : Means by name: score, information (bits), and what is known of each parameter.
    """

    attempted: int
    failed: int
    scores: Mapping[str, Score]

    def __getitem__(self, name: str) -> Score:
        return self.scores.get(name, NOTHING)

    @property
    def n(self) -> int:
        """Data sets in the means."""
        return self.attempted - self.failed

    def together(self, other: Measured) -> Measured:
        """Return the means over these data sets and others, which are independent of them."""
        total = max(self.n + other.n, 1)
        scores = {}
        for name in self.scores:
            pairs = [(m[name], m.n) for m in (self, other) if m.n]
            value = sum(score.value * n for score, n in pairs) / total if pairs else np.nan
            error = np.sqrt(sum((score.error * n) ** 2 for score, n in pairs)) / total
            scores[name] = Score(float(value), float(error))
        attempted, failed = self.attempted + other.attempted, self.failed + other.failed
        return Measured(attempted, failed, scores)


def gather(rows: Rows, designs: int) -> list[Measured]:
    """Gather the designs of a study, each of as many cells, which weigh the same."""
    strata = len(rows.study.cells) // designs
    measured = []
    for design in range(designs):
        parts = [_of_cell(rows, design * strata + m) for m in range(strata)]
        scores = {name: _averaged([part[name] for part in parts]) for name in parts[0].scores}
        attempted = sum(part.attempted for part in parts)
        measured.append(Measured(attempted, sum(part.failed for part in parts), scores))
    return measured


def difference(rows: Rows, first: Sequence[int], second: Sequence[int], name: str) -> Score:
    """Return by how much a mean of one design is above that of another, data set by data set.

    Parameters
    ----------
    first, second : The cells of each, in the same order; those of a pair have the same agents.
    """
    parts = []
    for a, b in zip(first, second, strict=True):
        pair = [rows.of(cell).set_index("replicate") for cell in (a, b)]
        values = [frame.loc[frame["status"] != "failed", name].astype(float) for frame in pair]
        parts.append(mean((values[0] - values[1]).dropna()))
    return _averaged(parts) if all(np.isfinite(part.error) for part in parts) else NOTHING


def _averaged(scores: Sequence[Score]) -> Score:
    """Return the mean of independent scores."""
    error = float(np.sqrt(sum(score.error**2 for score in scores))) / len(scores)
    return Score(float(np.mean([score.value for score in scores])), error)


def _of_cell(rows: Rows, cell: int) -> Measured:
    table = rows.of(cell)
    effect = rows.study.cells[cell].analysis.goal == "effect"
    broken = table["status"] == "failed"
    usable = table if effect else table[~broken]
    if effect:
        usable = usable.reindex(columns=["score"]).fillna(0.0)
    names = [str(n) for n in usable if n in SCORES or str(n).startswith(OF_PARAMETERS)]
    scores = {name: mean(usable[name].to_numpy(dtype=float)) for name in names}
    nothing = {"score": NOTHING, "information": NOTHING}
    return Measured(len(table), 0 if effect else int(broken.sum()), scores or nothing)
