"""The page of a study that is not finished: what there is of it, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knownminds.validation.engine.study import Batch, Cell, Rows, Study, finished_parts
from knownminds.validation.pages.page import (
    Finding,
    Page,
    Table,
    about_experiment,
    counted,
    listed,
    shown,
    table,
)
from knownminds.validation.recovery.recovery_page import about_subjects
from knownminds.validation.studies import STUDIES, load

if TYPE_CHECKING:
    from knownminds.validation.power.operating_characteristics import Characteristics

GOES_ON = "Run the same command again; it goes on from here."


@dataclass(frozen=True)
class Begun(Study):
    """The finished batches of a study, as a study of its own.

    Parameters
    ----------
    found
        The batches of each of its cells.
    """

    found: Sequence[Sequence[Batch]] = field(default_factory=tuple)

    def units(self, cell: int) -> int:
        """Count the rows of a cell."""
        return sum(len(batch) for batch in self.found[cell])

    def batches(self) -> Iterator[Batch]:
        """Go through all pieces of work."""
        for batches in self.found:
            yield from batches


@dataclass(frozen=True)
class Unfinished:
    """What is there of a study.

    Parameters
    ----------
    folder, study
        Where it is, and what was asked.
    done
        Rows that are there, of each cell.
    steps
        Of a search: the names of the studies within, and what is there of each.
    result
        What the rows that are there say; None where they say nothing yet.
    """

    folder: Path
    study: Study
    versions: Mapping[str, str]
    done: Sequence[int]
    steps: Mapping[str, Unfinished]
    result: Any

    @property
    def of(self) -> list[int]:
        """Rows of each cell in the whole study."""
        return [self.study.units(c) for c in range(len(self.study.cells))]

    @property
    def there(self) -> str:
        """A sentence that counts what is there."""
        if self.steps:
            whole = sum(step.done == step.of for step in self.steps.values())
            are = "is" if whole == 1 else "are"
            return f"{counted(whole, 'step')} of the search {are} finished."
        unit = "fit" if self.study.unit == "subject" else "data set"
        return f"{sum(self.done):,} of {counted(sum(self.of), unit)} are there."

    def __str__(self) -> str:
        """Say what is missing."""
        return f"The study in {self.folder} is not finished. {self.there} {GOES_ON}"


def read_unfinished(folder: str | Path) -> Unfinished:
    """Read what there is of a study, or of a search; nothing is computed anew."""
    place = Path(folder)
    study, identity = Study.read(place)
    finished = finished_parts(place / "parts")
    found: list[list[Batch]] = [[] for _ in study.cells]
    for batch in study.batches():
        if study.part_name(batch) in finished:
            found[batch.cell].append(batch)
    steps = {}
    if study.cells[0].law.get("part_of_search") == "start":
        inner = sorted(file.parent for file in place.glob("*/study.json"))
        # A search confirms last what it found.
        inner.sort(key=lambda one: not one.name.startswith("step"))
        steps = {one.name: read_unfinished(one) for one in inner}
    done = [sum(len(batch) for batch in batches) for batches in found]
    versions = identity["versions"]
    result = None if steps else _result(place, study, found, versions)
    return Unfinished(place, study, versions, done, steps, result)


def _result(
    folder: Path, study: Study, found: Sequence[Sequence[Batch]], versions: Mapping[str, str]
) -> Any:
    kept = [c for c, batches in enumerate(found) if batches]
    summarise = load(STUDIES[study.command].summarise) if study.command in STUDIES else None
    if summarise is None or not kept:
        return None
    begun = Begun(
        study.command,
        tuple(study.cells[c] for c in kept),
        study.replicates,
        study.seed,
        study.unit,
        study.question,
        tuple(study.remarks[c] for c in kept) if study.remarks else (),
        [
            [Batch(new, batch.first, batch.last) for batch in found[old]]
            for new, old in enumerate(kept)
        ],
    )
    return summarise(Rows(begun, folder, versions))


def unfinished_page(unfinished: Unfinished, page: Page | None) -> Page:
    """Return the page of what there is.

    Parameters
    ----------
    page
        That of its result, if the rows say anything yet.
    """
    study, folder = unfinished.study, unfinished.folder
    why = [unfinished.there, GOES_ON]
    if page is not None:
        why.append("All below is of what is there, and may still change.")
    finding = Finding("This study", "is not finished", " ".join(why), "bad")
    there = _steps(unfinished.steps) if unfinished.steps else _cells(unfinished)
    if page is None:
        cell = study.cells[0]
        page = Page(
            title=f"{study.command} of {cell.environment}, not finished",
            asked=[
                *about_experiment(cell),
                ("models", ", ".join(dict.fromkeys(cell.model for cell in study.cells))),
                ("replicates", f"{study.replicates:,}"),
                ("seed", str(study.seed)),
            ],
            findings=[],
            sentences=["Nothing is judged yet: what is there does not say enough."],
            notes=[],
            tables=[],
            figures=[],
            command=study.command_line(),
            versions=unfinished.versions,
        )
    return replace(
        page,
        findings=[finding, *page.findings],
        tables=[there, *page.tables],
        command=f"{page.command} --out {folder}",
    )


def _cells(unfinished: Unfinished) -> Table:
    study = unfinished.study
    rows = zip(study.cells, unfinished.done, unfinished.of, strict=True)
    return table(
        f"What is there, in {'fits' if study.unit == 'subject' else 'data sets'}",
        rows,
        ("design", lambda row: _about(row[0])),
        ("there", "{1:,}"),
        ("of", "{2:,}"),
        ("missing", lambda row: f"{row[2] - row[1]:,}"),
    )


def _about(cell: Cell) -> str:
    size = about_subjects(cell.subjects, cell.sessions, cell.make().n_trials)
    effect = {k: v for k, v in cell.law.items() if k == "effect"}
    known = {"contaminants": cell.options.get("contaminants")}
    return "; ".join(
        word
        for word in (cell.model, size, listed(cell.truth), listed(effect), listed(known))
        if word
    )


def _steps(steps: Mapping[str, Unfinished]) -> Table:
    return table(
        "Steps of the search",
        steps.items(),
        ("step", "{0}"),
        ("size", lambda row: _reached(row[1])[0]),
        ("power so far", lambda row: _reached(row[1])[1]),
        ("data sets", lambda row: f"{sum(row[1].done):,}"),
        ("of", lambda row: f"{sum(row[1].of):,}"),
    )


def _reached(step: Unfinished) -> tuple[str, str]:
    """Return size and power of the design of a step; "-" where nothing is known."""
    if step.result is None:
        return "-", "-"
    from knownminds.validation.power.smallest_design import size_of

    design: Characteristics = step.result.designs[0]
    return f"{size_of(design, step.study.question['find']):,}", shown(design.rejected)
