"""What designs are worth in so many data sets, gathered part by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents.parameters import Array
from knownminds.validation.engine.monte_carlo import NOTHING, Score, Tally
from knownminds.validation.engine.study import Rows

KEPT = ("score", "information", "right")  # and columns that begin as these do, of parameters
OF_PARAMETERS = ("spread_", "squared_error_", "covered_")


@dataclass(frozen=True)
class Measured:
    """Means over the data sets of a design.

    Parameters
    ----------
    attempted, failed
        Data sets; those that could not be judged, which are left out of the means.
    scores
        Means by name: score, information (bits), and what is known of each parameter.
    messages
        Why data sets failed, each with how often.
    """

    attempted: int
    failed: int
    scores: Mapping[str, Score]
    messages: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def __getitem__(self, name: str) -> Score:
        """Return a mean; nothing where there is none."""
        return self.scores.get(name, NOTHING)

    @property
    def n(self) -> int:
        """Data sets in the means."""
        return self.attempted - self.failed

    def together(self, other: Measured) -> Measured:
        """Return the means over these data sets and others, which are independent of them."""
        n, total = np.array([self.n, other.n]), max(self.n + other.n, 1)
        scores = {}
        for name in self.scores:
            pair = (self.scores[name], other.scores[name])
            known = [(s, k) for s, k in zip(pair, n, strict=True) if k]
            mean = sum(s.value * k for s, k in known) / total if known else np.nan
            error = np.sqrt(sum((s.error * k) ** 2 for s, k in known)) / total
            scores[name] = Score(float(mean), float(error))
        messages = dict(self.messages)
        for message, count in other.messages.items():
            messages[message] = messages.get(message, 0) + count
        return Measured(
            self.attempted + other.attempted,
            self.failed + other.failed,
            scores,
            messages,
            self.seconds + other.seconds,
        )


def gather(rows: Rows, members: Sequence[int]) -> list[Measured]:
    """Gather the designs of a study, each of so many cells in a row, which weigh the same."""
    found, cell = [], 0
    for strata in members:
        parts = [_of_cell(rows, cell + m) for m in range(strata)]
        cell += strata
        scores = {}
        for name in parts[0].scores:
            own = [part.scores[name] for part in parts]
            error = float(np.sqrt(sum(score.error**2 for score in own))) / strata
            scores[name] = Score(float(np.mean([score.value for score in own])), error)
        found.append(
            Measured(
                sum(part.attempted for part in parts),
                sum(part.failed for part in parts),
                scores,
                {m: n for part in parts for m, n in part.messages.items()},
                sum(part.seconds for part in parts),
            )
        )
    return found


def difference(rows: Rows, first: Sequence[int], second: Sequence[int], name: str) -> Score:
    """Return by how much a mean of one design is above that of another, data set by data set.

    Parameters
    ----------
    first, second
        The cells of each, in the same order; those of a pair have the same minds.
    """
    parts = []
    for a, b in zip(first, second, strict=True):
        tally = Tally()
        pairs = zip(rows.tables(cell=a), rows.tables(cell=b), strict=True)
        for mine, theirs in pairs:
            apart = mine[name].to_numpy(dtype=float) - theirs[name].to_numpy(dtype=float)
            usable = (mine["status"] != "failed") & (theirs["status"] != "failed")
            kept = apart[usable.to_numpy() & np.isfinite(apart)]
            tally.add(kept[:, None])
        if tally.n < 2:
            return NOTHING
        parts.append(Score(float(tally.mean[0]), tally.error(np.ones(1))))
    error = float(np.sqrt(sum(part.error**2 for part in parts))) / len(parts)
    return Score(float(np.mean([part.value for part in parts])), error)


def _of_cell(rows: Rows, cell: int) -> Measured:
    """Gather the data sets of a cell; of an effect, those that failed count as not rejecting."""
    effect = rows.study.cells[cell].options["goal"] == "effect"
    tally, failed, seconds = Tally(), 0, 0.0
    messages: dict[str, int] = {}
    names: list[str] = []
    for table in rows.tables(cell=cell):
        seconds += float(table["seconds"].sum())
        broken = table["status"] == "failed"
        failed += int(broken.sum())
        for message, count in table.loc[broken, "message"].value_counts().items():
            messages[str(message)] = messages.get(str(message), 0) + int(count)
        usable = table if effect else table[~broken]
        if "score" not in usable:  # the engine's rows of a batch that failed as a whole
            usable = usable.assign(score=0.0 if effect else np.nan)
        names = names or [name for name in _kept(usable) if not effect or name == "score"]
        if len(usable):
            tally.add(_features(usable, names))
    attempted = rows.study.units(cell)
    if tally.n == 0:
        return Measured(attempted, failed, {"score": NOTHING, "information": NOTHING}, messages)
    weights = np.eye(len(names))
    mean = tally.mean
    scores = {name: Score(float(mean[k]), tally.error(weights[k])) for k, name in enumerate(names)}
    return Measured(attempted, 0 if effect else failed, scores, messages, seconds)


def _kept(table: pd.DataFrame) -> list[str]:
    return [str(n) for n in table if n in KEPT or str(n).startswith(OF_PARAMETERS)]


def _features(table: pd.DataFrame, names: Sequence[str]) -> Array:
    columns: list[Any] = [table[n].to_numpy(dtype=float) for n in names]
    return np.column_stack(columns)
