"""The page of a study of a stopping rule: words, table, figure."""

from __future__ import annotations

from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    ERRORS,
    Page,
    about_experiment,
    about_time,
    table,
)

from .power_page import COMPARISONS
from .sequential import Sequential, sentences


def sequential_page(found: Sequential) -> Page:
    """Return the page of a study of a stopping rule."""
    study, rule, cell = found.study, found.rule, found.effect.cell
    spends = rule.kind == "alpha_spending"
    return Page(
        title=f"What does the stopping rule do to {found.measure}?",
        asked=[
            *about_experiment(cell),
            ("model", cell.model),
            ("effect", f"{found.measure} = {found.effect.effect:g}, and none"),
            ("tested", COMPARISONS[found.comparison]),
            ("rule", str(rule)),
            ("unit", found.unit),
            ("trials per session", str(cell.make().n_trials)),
            ("data sets", f"{study.replicates:,} without an effect and with it"),
            ("seed", str(study.seed)),
            about_time(found.seconds),
        ],
        findings=[],
        sentences=sentences(found),
        notes=[
            f"{ERRORS} Once, at the end: the same data sets, tested a single time at 5% at the "
            "last look. The 95% intervals are those of a single look; after a stop they may cover "
            "less."
        ],
        tables=[
            table(
                "Data sets",
                (found.null, found.effect),
                ("effect", "{effect:g}"),
                ("found", "{rejected}"),
                ("found none", "{accepted}"),
                ("once, at the end", "{fixed}"),
                (found.unit, "{units}"),
                ("bias", "{bias}"),
                ("95% covers", "{coverage}"),
                ("failed", "{failed:,}"),
            ),
            table(
                "Looks",
                tuple(enumerate(rule.looks)),
                (found.unit, "{1:,}"),
                ("level", lambda row: f"{rule.levels[row[0]]:.5f}" if spends else "-"),
                ("stops, no effect", lambda row: str(found.null.stops[row[0]])),
                ("stops, effect", lambda row: str(found.effect.stops[row[0]])),
            ),
        ],
        figures=[
            (
                "Share of data sets that have stopped by each look, without an effect and with it.",
                stops(found),
            )
        ],
        command=study.command_line(),
        versions=found.versions,
    )


def stops(found: Sequential) -> str:
    """Draw the share of data sets that have stopped against the units so far."""
    figure, axes = draw.panels(1)
    styles = draw.styles(2)
    for one, style, name in zip(
        (found.null, found.effect), styles, ("no effect", "effect"), strict=True
    ):
        total, shares = 0.0, []
        for stop in one.stops:
            total += stop.value
            shares.append(total)
        draw.line(axes[0], found.rule.looks, shares, style, name)
    axes[0].set(xlabel=found.unit, ylabel="stopped", ylim=(0, 1.02))
    draw.key(figure, axes[0])
    return draw.svg(figure)
