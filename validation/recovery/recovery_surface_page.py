"""The page of a recovery surface: words, tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from knownminds.validation.engine.monte_carlo import Score
from knownminds.validation.engine.verdicts import (
    HIGHEST_COVERAGE,
    LOWEST_COVERAGE,
    RECOVERABLE_R,
    RECOVERABLE_WIDTH,
    WEAK_R,
    WEAK_WIDTH,
)
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    ERRORS,
    STATUSES,
    Column,
    Finding,
    Page,
    Table,
    about_experiment,
    about_time,
    about_truth,
    listed,
    numbers,
    shown,
    table,
    tone,
)

from .recovery_page import REGION_COLUMNS, RULES, about_region
from .recovery_surface import RecoverySurface


def surface_page(surface: RecoverySurface) -> Page:
    """Return the page of a recovery surface."""
    study, cell = surface.study, surface.study.cells[0]
    subjects, sessions, trials = (numbers(values) for values in zip(*surface.sizes, strict=True))
    usable = any(recovery.failed < recovery.attempted for recovery in surface.recoveries)
    return Page(
        title=f"From which design on can {cell.model} be recovered from {cell.environment}?",
        asked=[
            *about_experiment(cell),
            ("subjects", subjects),
            ("sessions per subject", sessions),
            ("trials per session", trials),
            ("replicates", str(study.replicates)),
            ("model", cell.model),
            ("true values", about_truth(cell)),
            ("fitted by", listed({"method": cell.method} | dict(cell.options))),
            ("seed", str(study.seed)),
            about_time(surface.seconds),
        ],
        findings=_findings(surface),
        sentences=_identifiability(surface),
        notes=[
            *_failures(surface),
            "To be interpreted from a design on: there, and in every design of the grid that is "
            "at least as large in all sizes, the parameter is recoverable. Perhaps: there and in "
            "all of those no clear verdict says that it is not.",
            f"{ERRORS} Failed fits are left out of the scores and counted; flat and boundary "
            "estimates are kept.",
            STATUSES,
            RULES,
        ],
        tables=_tables(surface),
        figures=[
            (
                "Correlation of estimate and truth, with 2 standard errors. Dashed: the limits "
                f"{RECOVERABLE_R} (recoverable) and {WEAK_R} (weak).",
                surface_correlation(surface),
            ),
            (
                "Share of the 90% intervals that hold the truth, with 2 standard errors. Dashed: "
                f"the {LOWEST_COVERAGE:.0%} and {HIGHEST_COVERAGE:.0%} it may lie between.",
                surface_coverage(surface),
            ),
            (
                "Width of the 90% intervals over that of the prior's own, by region of true values "
                "(rows) and design (subjects x sessions x trials): recoverable up to "
                f"{RECOVERABLE_WIDTH}, weak up to {WEAK_WIDTH}.",
                surface_regions(surface),
            ),
        ]
        if usable
        else [],
        command=study.command_line(),
        versions=surface.versions,
    )


def _findings(surface: RecoverySurface) -> list[Finding]:
    largest = max(zip(surface.sizes, surface.recoveries, strict=True), key=lambda pair: pair[0])[1]
    found = []
    for name, answer in zip(surface.parameters, surface.answers(), strict=True):
        told = answer.removeprefix(f"{name}: ").removesuffix(".")
        verdict = largest[name].verdict
        why = f"In the largest design {verdict.word}: {' '.join(verdict.reasons)}"
        found.append(Finding(name, told, why, tone(verdict.word)))
    return found


def _identifiability(surface: RecoverySurface) -> list[str]:
    """Say what sessions of each length cannot tell."""
    told = []
    for (_, _, trials), recovery in zip(surface.sizes, surface.recoveries, strict=True):
        told += [f"One session of {trials} trials: {s}." for s in recovery.identifiability]
    return list(dict.fromkeys(told))


def _failures(surface: RecoverySurface) -> list[str]:
    """Say in which designs fits failed, and why."""
    return [
        f"{' x '.join(map(str, size))} (subjects, sessions, trials): {note}"
        for size, recovery in zip(surface.sizes, surface.recoveries, strict=True)
        for note in recovery.notes
    ]


def _tables(surface: RecoverySurface) -> list[Table]:
    order = list(surface.parameters)
    whole: list[dict[str, Any]] = [
        dict(zip(draw.SIZES, size, strict=True)) | {"s": s, "failed": recovery.failed}
        for size, recovery in zip(surface.sizes, surface.recoveries, strict=True)
        for s in recovery.parameters
    ]
    whole.sort(key=lambda row: order.index(row["s"].name))  # stable: designs keep their order
    design: list[Column] = [("parameter", "{s.name}"), *((n, f"{{{n}}}") for n in draw.SIZES)]
    return [
        table(
            "Designs",
            whole,
            *design,
            ("bias", "{s.bias}"),
            ("RMSE", "{s.rmse}"),
            ("r", "{s.r}"),
            ("90% covers", lambda row: shown(row["s"].coverage["90"])),
            ("failed fits", "{failed:,}"),
            ("verdict", "{s.verdict.word}"),
        ),
        table(
            "Regions of true values (thirds of the prior)",
            [row | {"region": region} for row in whole for region in row["s"].regions],
            *design,
            *REGION_COLUMNS,
            ("verdict", "{region.verdict.word}"),
        ),
    ]


def surface_correlation(surface: RecoverySurface) -> str:
    """Draw r against the size of the design."""
    scores = [[recovery[name].r for recovery in surface.recoveries] for name in surface.parameters]
    figure, axes = _curves(surface, scores, (WEAK_R, RECOVERABLE_R))
    for axis in axes:
        axis.set_ylim(min(0.0, axis.get_ylim()[0]), 1.02)
        axis.set_yticks([0, WEAK_R, RECOVERABLE_R, 1])
    axes[0].set_ylabel("r")
    return draw.svg(figure)


def surface_coverage(surface: RecoverySurface) -> str:
    """Draw the coverage of 90% intervals against the size of the design."""
    scores = [
        [recovery[name].coverage["90"] for recovery in surface.recoveries]
        for name in surface.parameters
    ]
    figure, axes = _curves(surface, scores, (LOWEST_COVERAGE, HIGHEST_COVERAGE))
    for axis in axes:
        axis.set_ylim(min(0.78, axis.get_ylim()[0]), max(1.0, axis.get_ylim()[1]))
    axes[0].set_ylabel("90% intervals cover")
    return draw.svg(figure)


def _curves(
    surface: RecoverySurface, scores: Sequence[Sequence[Score]], limits: tuple[float, float]
) -> tuple[Figure, list[Axes]]:
    figure, axes = draw.panels(len(scores), height=2.5)
    for axis, name, some in zip(axes, surface.parameters, scores, strict=True):
        draw.size_curves(axis, surface.sizes, some)
        draw.entitle(axis, name)
        for value in limits:
            draw.limit(axis, value)
    draw.key(figure, axes[0])
    return figure, axes


def surface_regions(surface: RecoverySurface) -> str:
    """Draw the relative width in each region of true values (rows) of each design (columns)."""
    designs = [" x ".join(map(str, size)) for size in surface.sizes]
    n = len(surface.parameters)
    figure, axes = draw.panels(n, columns=1, height=1.1)
    wide = max(5.0, 1.6 + 0.55 * len(designs))
    figure.set_size_inches(wide, 1.15 * n + 0.7)
    for axis, name in zip(axes, surface.parameters, strict=True):
        each = [recovery[name].regions for recovery in surface.recoveries]
        widths = np.array([[region.relative_width.value for region in one] for one in each]).T
        last = axis is axes[-1]
        rows = [about_region(region) for region in each[0]]
        draw.heat_map(axis, widths, rows, designs if last else [""] * len(designs))
        draw.entitle(axis, name, "left")
    return draw.svg(figure)
