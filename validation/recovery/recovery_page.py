"""The page of a parameter-recovery study: words, tables and figures."""

from __future__ import annotations

from functools import partial
from math import isfinite

import numpy as np
import pandas as pd

from knownminds.validation.engine.study import Cell
from knownminds.validation.engine.verdicts import (
    CLEAR,
    HIGHEST_COVERAGE,
    LOWEST_COVERAGE,
    MOST_FAILURES,
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
    counted,
    listed,
    number,
    shown,
    status_table,
    table,
)

from .parameter_recovery import (
    MASSES,
    ParameterScores,
    Recovery,
    RegionScores,
    about_unreadable,
)

MOST_POINTS = 1500  # more only blacken the panel and bloat the page
RULES = (
    f"Recoverable: r at least {RECOVERABLE_R}, 90% intervals that cover "
    f"{LOWEST_COVERAGE:.0%} to {HIGHEST_COVERAGE:.0%}, and at most {MOST_FAILURES:.0%} of the fits "
    f"failed or not converged; weak: r at least {WEAK_R}. In a region of true values: 90% "
    f"intervals on the unconstrained scale at most {RECOVERABLE_WIDTH} times as wide as the "
    f"prior's own (relative width); weak: at most {WEAK_WIDTH}. Errors and coverage are no guide "
    "there: an estimate that ignores the data is near all truths in the middle. Where chance "
    f"leaves the word open, a limit being within {CLEAR:g} Monte-Carlo standard errors, the "
    "verdict is between two words."
)

# Of rows with a region of true values.
REGION_COLUMNS: tuple[Column, ...] = (
    ("true value", lambda row: about_region(row["region"])),
    ("fits", "{region.n:,}"),
    ("bias", "{region.bias}"),
    ("relative error", "{region.relative_error}"),
    ("relative width", "{region.relative_width}"),
    ("90% covers", "{region.coverage}"),
)


def recovery_page(recovery: Recovery) -> Page:
    """Return the page of a recovery study."""
    cell, study = recovery.cell, recovery.study
    replicates = f", in each of {study.replicates} replicates" if study.replicates > 1 else ""
    asked = [
        *about_experiment(cell),
        ("trials per session", str(cell.make().n_trials)),
        ("model", cell.model),
        ("true values", f"{about_truth(cell)}{_about_population(cell)}"),
        ("fitted by", listed({"method": cell.method} | dict(cell.options))),
        ("subjects", f"{cell.subjects}{replicates}"),
        ("sessions per subject", str(cell.sessions)),
        ("seed", str(study.seed)),
        about_time(recovery.seconds),
    ]
    figures: list[tuple[str, str]] = []
    if recovery.failed < recovery.attempted:
        figures = [
            ("Estimate against truth, with 90% intervals.", recovery_scatter(recovery)),
            ("Error against truth.", recovery_residuals(recovery)),
            (
                "Coverage of the intervals minus their nominal mass, with 2 standard errors.",
                recovery_coverage(recovery),
            ),
        ]
    return Page(
        title=f"Can {cell.model} be recovered from {cell.environment}?",
        asked=asked,
        findings=[Finding.of(s.name, s.verdict) for s in recovery.parameters],
        sentences=[
            *(f"One session: {sentence}." for sentence in recovery.identifiability),
            *about_unreadable(recovery),
            *recovery.missed,
        ],
        notes=[
            *recovery.notes,
            f"{ERRORS} Failed fits are left out of the scores and counted above; flat and "
            "boundary estimates are kept.",
            STATUSES,
            RULES,
        ],
        tables=_tables(recovery),
        figures=figures,
        command=study.command_line(),
        versions=recovery.versions,
    )


def _about_population(cell: Cell) -> str:
    """Say how subjects of a replicate go together, where they do."""
    if known := cell.law.get("correlation"):
        each = "; ".join(f"{pair} {r:g}" for pair, r in known.items())
        return f"; correlations over subjects: {each}"
    return "; correlations over subjects drawn as well" if cell.law.get("correlated") else ""


def _tables(recovery: Recovery) -> list[Table]:
    parameters = recovery.parameters
    masses = list(parameters[0].coverage)
    return [
        table(
            "Estimates",
            parameters,
            ("parameter", "{name}"),
            ("bias", "{bias}"),
            ("RMSE", "{rmse}"),
            ("r", "{r}"),
            ("concordance", "{concordance}"),
            ("shrinkage", "{shrinkage}"),
        ),
        table(
            "Intervals",
            parameters,
            ("parameter", "{name}"),
            *((f"{mass}% covers", partial(_coverage, mass)) for mass in masses),
            ("mean width of 90%", lambda s: shown(s.width["90"])),
        ),
        table(
            "Correlations over subjects",
            recovery.correlations,
            ("pair", "{name}"),
            ("replicates", "{n}"),
            ("bias", "{bias}"),
            ("RMSE", "{rmse}"),
            ("r", "{r}"),
            ("90% covers", "{coverage}"),
        ),
        table(
            "Regions of true values (thirds of the prior)",
            [{"name": s.name, "region": region} for s in parameters for region in s.regions],
            ("parameter", "{name}"),
            *REGION_COLUMNS,
            ("verdict", "{region.verdict.word}"),
        ),
        status_table(recovery.statuses, recovery.attempted),
    ]


def _coverage(mass: str, scores: ParameterScores) -> str:
    return shown(scores.coverage[mass])


def about_region(region: RegionScores) -> str:
    """Write down the ends of a region of true values."""
    low, high = number(region.low, 2), number(region.high, 2)
    if not isfinite(region.low):
        return f"below {high}"
    return f"{low} to {high}" if isfinite(region.high) else f"above {low}"


def about_subjects(subjects: int, sessions: int, trials: int) -> str:
    """Write down the size of a design."""
    return " x ".join(
        [counted(subjects, "subject"), counted(sessions, "session"), counted(trials, "trial")]
    )


def recovery_scatter(recovery: Recovery) -> str:
    """Draw estimate against truth, one panel per parameter, with 90% intervals lightly."""
    figure, axes = draw.panels(len(recovery.parameters))
    rows = _thinned(recovery.rows)
    for axis, scores in zip(axes, recovery.parameters, strict=True):
        name = scores.name
        true, estimate = rows[f"true_{name}"].to_numpy(), rows[name].to_numpy()
        ends = rows[f"low_90_{name}"].to_numpy(), rows[f"high_90_{name}"].to_numpy()
        low, high = draw.limits(true, estimate)
        faint = float(np.clip(30 / max(len(true), 1), 0.04, 0.35))
        # As pixels inside the SVG: thousands of vector dots make a heavy page.
        axis.vlines(true, *ends, color=draw.BLUE, alpha=faint, linewidth=0.8, rasterized=True)
        axis.plot(
            true,
            estimate,
            "o",
            color=draw.BLUE,
            markersize=2.5,
            alpha=0.6,
            linewidth=0,
            rasterized=True,
        )
        axis.plot([low, high], [low, high], color=draw.GREY, linewidth=1, zorder=0)
        axis.set(xlim=(low, high), ylim=(low, high), xlabel="truth", ylabel="estimate")
        draw.entitle(axis, f"{name}, r = {number(scores.r.value, 2)}")
        axis.set_box_aspect(1)
    return draw.svg(figure)


def recovery_residuals(recovery: Recovery) -> str:
    """Draw error against truth, with the mean error in groups of subjects, ten if they are 100."""
    figure, axes = draw.panels(len(recovery.parameters))
    everyone = recovery.rows[recovery.rows["status"] != "failed"]
    rows = _thinned(recovery.rows)
    for axis, scores in zip(axes, recovery.parameters, strict=True):
        name = scores.name
        true, estimate = rows[f"true_{name}"].to_numpy(), rows[name].to_numpy()
        draw.limit(axis, 0, "-")
        axis.plot(
            true,
            estimate - true,
            "o",
            color=draw.BLUE,
            markersize=2.5,
            alpha=0.4,
            linewidth=0,
            rasterized=True,
        )
        all_true = everyone[f"true_{name}"].to_numpy()
        error = everyone[name].to_numpy() - all_true
        tenths = np.array_split(np.argsort(all_true), max(min(10, len(all_true) // 10), 1))
        middle = [float(all_true[t].mean()) for t in tenths]
        mean = [float(error[t].mean()) for t in tenths]
        axis.plot(middle, mean, color=draw.ORANGE, linewidth=1.6, label="mean in groups")
        axis.set(xlim=draw.limits(true), ylim=draw.limits(error))
        axis.set(xlabel="truth", ylabel="estimate - truth")
        draw.entitle(axis, name)
    axes[0].legend(frameon=False, fontsize=draw.SMALL)
    return draw.svg(figure)


def recovery_coverage(recovery: Recovery) -> str:
    """Draw coverage minus nominal mass, with the band in which 95% of exact intervals would lie."""
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(6.4, 2.9)
    n = max(recovery.parameters[0].n, 1)
    masses = np.array(MASSES)
    grid = np.linspace(0.45, 0.98, 60)
    half = 1.96 * np.sqrt(grid * (1 - grid) / n)
    axis.fill_between(
        grid, -half, half, color=draw.GREY, alpha=0.2, linewidth=0, label="95% by chance"
    )
    draw.limit(axis, 0, "-")
    looks = draw.styles(len(recovery.parameters))
    spread = np.linspace(-0.008, 0.008, len(recovery.parameters))
    for scores, shift, (colour, marker, _) in zip(recovery.parameters, spread, looks, strict=True):
        held = [scores.coverage[f"{mass * 100:g}"] for mass in MASSES]
        axis.errorbar(
            masses + shift,
            np.array([score.value for score in held]) - masses,
            [draw.ERRORS * score.error for score in held],
            fmt=marker,
            color=colour,
            markersize=4,
            linewidth=1,
            label=scores.name,
        )
    axis.set(xlabel="nominal mass of the interval", ylabel="coverage - nominal")
    axis.set_xticks(masses, [f"{mass:.0%}" for mass in MASSES])
    axis.legend(frameon=False, fontsize=draw.SMALL, loc="center left", bbox_to_anchor=(1, 0.5))
    return draw.svg(figure)


def _thinned(rows: pd.DataFrame) -> pd.DataFrame:
    usable = rows[rows["status"] != "failed"]
    step = -(-len(usable) // MOST_POINTS) or 1
    return usable.iloc[::step]
