"""The page of a study of a comparison of models: words, tables, figure."""

from __future__ import annotations

from collections.abc import Callable

from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    ERRORS,
    Page,
    about_experiment,
    about_time,
    listed,
    numbers,
    table,
)
from knownminds.validation.recovery.model_recovery import CRITERIA

from .model_power import USUAL, Found, ModelPower, sentences
from .questions import SIZES

MEANING = (
    "The best model of a data set has the smallest sum of the criterion over subjects. Data sets "
    "that failed or have no single best model count as misses."
)


def model_power_page(found: ModelPower) -> Page:
    """Return the page of a study of a comparison of models."""
    study, cell = found.study, found.study.cells[0]
    title, _ = CRITERIA[found.criterion]
    subjects, sessions, trials = (numbers(values) for values in zip(*found.designs, strict=True))
    minds = f"{found.pilot.model} from {found.pilot.folder}" if found.pilot else "the priors'"
    held = {n: v for one in found.found for n, v in one.cell.truth.items()}
    return Page(
        title=f"How often is the true one of {' and '.join(found.models)} found?",
        asked=[
            *about_experiment(cell),
            ("models", ", ".join(found.models)),
            ("compared by", title),
            ("minds", minds + (f", but {listed(held)}" if held else "")),
            ("subjects", subjects),
            ("sessions per subject", sessions),
            ("trials per session", trials),
            ("data sets", f"{study.replicates:,} of each model per design"),
            ("seed", str(study.seed)),
            about_time(found.seconds),
        ],
        findings=[],
        sentences=sentences(found),
        notes=[f"{ERRORS} {MEANING}"],
        tables=[
            table(
                "Designs",
                found.found,
                *((size, f"{{size[{k}]}}") for k, size in enumerate(SIZES)),
                ("true model", "{cell.model}"),
                ("is best", "{won}"),
                *((f"{name} best", _times(name)) for name in found.models),
                ("undecided", "{undecided:,}"),
                ("failed", "{failed:,}"),
            )
        ],
        figures=[
            (
                "Share of the data sets of each model in which it is best, with 2 standard errors. "
                f"Dashed: {USUAL:.0%}.",
                curves(found),
            )
        ]
        if len(found.designs) > 1
        else [],
        command=study.command_line(),
        versions=found.versions,
    )


def _times(name: str) -> Callable[[Found], str]:
    return lambda one: f"{one.best[name]:,}"


def curves(found: ModelPower) -> str:
    """Draw how often each model is best among its own data sets, a panel for each."""
    figure, axes = draw.panels(len(found.models))
    for axis, name in zip(axes, found.models, strict=True):
        own: list[Found] = [one for one in found.found if one.cell.model == name]
        draw.size_curves(axis, [one.size for one in own], [one.won for one in own])
        draw.entitle(axis, name)
        draw.limit(axis, USUAL)
        axis.set_ylim(0, 1.02)
    draw.key(figure, axes[0])
    return draw.svg(figure)
