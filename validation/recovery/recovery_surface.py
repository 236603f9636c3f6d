"""The recovery surface: from which size of a design on a parameter may be interpreted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from knownminds.validation.engine.engine import read, run
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.reported import Reported
from knownminds.validation.engine.study import Rows, Study
from knownminds.validation.engine.verdicts import OPEN

from .parameter_recovery import (
    Recovery,
    fit_batch,
    recovery_cell,
    recovery_study,
)
from .parameter_recovery import summarise as summarise_cell
from .questions import RecoverOverSizes

Size = tuple[int, int, int]  # subjects, sessions, trials


@dataclass(frozen=True)
class RecoverySurface(Reported):
    """Recoveries over a grid of subjects x sessions x trials."""

    study: Study
    recoveries: tuple[Recovery, ...]
    versions: Mapping[str, str]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(scores.name for scores in self.recoveries[0].parameters)

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Subjects, sessions and trials of each design, in the order of the recoveries."""
        return tuple(size_of(recovery) for recovery in self.recoveries)

    @property
    def seconds(self) -> float:
        """Computing time, summed over processes."""
        return sum(recovery.seconds for recovery in self.recoveries)

    def smallest(self, parameter: str) -> Size | None:
        """Return the smallest design from which on the parameter is recoverable, or None.

        It and every design of the grid that is at least as large in all sizes is; of several such
        designs, the one with the fewest trials in all.
        """
        return self._from(parameter, ("recoverable",))

    def perhaps(self, parameter: str) -> Size | None:
        """Return the smallest design from which on the parameter may be recoverable, or None.

        There, and in every larger one, no clear verdict says that it is not: as `smallest`, but
        verdicts between "recoverable" and another, and designs that are not judged, count as well.
        """
        return self._from(parameter, ("recoverable", "not judged", *OPEN))

    def _from(self, parameter: str, words: Sequence[str]) -> Size | None:
        good = {
            size: recovery[parameter].verdict.word in words
            for size, recovery in zip(self.sizes, self.recoveries, strict=True)
        }
        found = [
            size
            for size in good
            if all(
                fine
                for other, fine in good.items()
                if all(mine <= its for mine, its in zip(size, other, strict=True))
            )
        ]
        return min(found, key=lambda s: (s[0] * s[1] * s[2], s), default=None)

    def to_frame(self) -> pd.DataFrame:
        """One row per design, parameter and region of true values (region "all" first)."""
        rows = []
        for (subjects, sessions, trials), recovery in zip(self.sizes, self.recoveries, strict=True):
            size: dict[str, Any] = {"subjects": subjects, "sessions": sessions, "trials": trials}
            for scores in recovery.parameters:
                whole = {"parameter": scores.name, "region": "all"}
                rows.append(
                    size
                    | whole
                    | {
                        "n": scores.n,
                        "r": scores.r.value,
                        "rmse": scores.rmse.value,
                        "coverage_90": scores.coverage["90"].value,
                        "verdict": scores.verdict.word,
                    }
                )
                for region in scores.regions:
                    part = {"parameter": scores.name, "region": f"{region.low:.3g} to "}
                    part["region"] += f"{region.high:.3g}"
                    rows.append(
                        size
                        | part
                        | {
                            "n": region.n,
                            "relative_error": region.relative_error.value,
                            "relative_width": region.relative_width.value,
                            "coverage_90": region.coverage.value,
                            "verdict": region.verdict.word,
                        }
                    )
        return pd.DataFrame(rows)

    def content(self) -> dict[str, Any]:
        """What `to_json` holds."""
        first = self.recoveries[0]
        smallest = {name: _named(self.smallest(name)) for name in self.parameters}
        perhaps = {name: _named(self.perhaps(name)) for name in self.parameters}
        return {
            "environment": first.cell.environment,
            "model": first.cell.model,
            "method": first.cell.method,
            "seed": self.study.seed,
            "attempted": sum(recovery.attempted for recovery in self.recoveries),
            "failed": sum(recovery.failed for recovery in self.recoveries),
            "smallest": smallest,
            "perhaps": perhaps,
            "surface": [recovery.to_dict() for recovery in self.recoveries],
            "seconds": round(self.seconds, 3),
            "versions": dict(self.versions),
        }

    def __str__(self) -> str:
        """For each parameter r and verdict at each design, and the answer."""
        cell = self.recoveries[0].cell
        lines = [f"recovery surface of {cell.model} in {cell.environment}, {cell.method}"]
        head = "".join(f"{h:>9}" for h in ("subjects", "sessions", "trials"))
        told = [
            [f"r {s.r.value:.2f} {s.verdict.word}" for s in recovery.parameters]
            for recovery in self.recoveries
        ]
        wide = 2 + max(map(len, ("r 0.00 not identified", *(t for row in told for t in row))))
        lines.append(head + "".join(f"{name:>{wide}}" for name in self.parameters))
        for size, row in zip(self.sizes, told, strict=True):
            lines.append("".join(f"{n:>9}" for n in size) + "".join(f"{t:>{wide}}" for t in row))
        return "\n".join([*lines, *self.answers()])

    def answers(self) -> list[str]:
        """Say for each parameter from which design on it may be interpreted."""
        told = []
        for name in self.parameters:
            size, perhaps = self.smallest(name), self.perhaps(name)
            if perhaps is None:
                told.append(f"{name}: not to be interpreted in any of these designs.")
            elif size is None:
                told.append(f"{name}: perhaps to be interpreted from {_told(perhaps)} on.")
            elif perhaps == size:
                told.append(f"{name}: to be interpreted from {_told(size)} on.")
            else:
                told.append(
                    f"{name}: to be interpreted from {_told(size)} on and whether from "
                    f"{_told(perhaps)} on is open."
                )
        return told


def _named(size: Size | None) -> dict[str, int] | None:
    names = ("subjects", "sessions", "trials")
    return None if size is None else dict(zip(names, size, strict=True))


def _told(size: Size) -> str:
    counts = zip(size, ("subject", "session", "trial"), strict=True)
    return " x ".join(f"{k} {what}{'s' * (k != 1)}" for k, what in counts)


def size_of(recovery: Recovery) -> Size:
    """Return subjects, sessions and trials of a recovery."""
    cell = recovery.cell
    return cell.subjects, cell.sessions, cell.make().n_trials


recovery_surface = verb(RecoverOverSizes, __name__)


def compute(question: RecoverOverSizes) -> RecoverySurface:
    """Answer what `recovery_surface` is asked."""
    grids = {name: list(getattr(question, name)) for name in ("subjects", "sessions", "trials")}
    for name, grid in grids.items():
        if len(grid) == 0:
            raise ValueError(f"A surface needs at least one number of {name}; got none.")
    cells = tuple(recovery_cell(question, *sizes) for sizes in product(*grids.values()))
    lengths = [cell.make().n_trials for cell in cells[: len(grids["trials"])]]
    study = recovery_study(cells, question, {**grids, "trials": lengths})
    return run(study, fit_batch, summarise, **question.running)


def read_recovery_or_surface(folder: str | os.PathLike[str]) -> Recovery | RecoverySurface:
    """Read what `recover` left in a folder: a recovery, or a surface of several designs."""
    return read(folder, "recover", summarise_found)


def summarise_found(rows: Rows) -> Recovery | RecoverySurface:
    """Score the only design of a study, or every one of several."""
    return summarise_cell(rows) if len(rows.study.cells) == 1 else summarise(rows)


def summarise(rows: Rows) -> RecoverySurface:
    """Score every design of a finished study."""
    recoveries = tuple(summarise_cell(rows, c) for c in range(len(rows.study.cells)))
    return RecoverySurface(rows.study, recoveries, rows.versions)
