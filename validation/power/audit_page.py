"""The page of an audit: words, tables and figures."""

from __future__ import annotations

from math import hypot, isfinite

from knownminds.inference import Measure
from knownminds.validation.engine.monte_carlo import NOTHING, Score
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    ERRORS,
    Finding,
    Page,
    Table,
    about_experiment,
    about_time,
    numbers,
    table,
)

from .aims import LEVEL
from .audit import Audit
from .operating_characteristics import Characteristics
from .power_study import about_losses, about_unit


def audit_page(audit: Audit) -> Page:
    """Return the page of an audit."""
    study, cell, measure = audit.study, audit.study.cells[0], audit.measure
    effects = numbers(entry.cell.law["effect"] for entry in audit.violators)
    return Page(
        title=f"What does {measure.name} do to minds whose true value is known?",
        asked=[
            ("measure", f"{measure.name}: {measure.summary} ({measure.source})"),
            *about_experiment(cell),
            *_minds(measure, effects),
            ("subjects", str(cell.subjects)),
            ("sessions per subject", str(cell.sessions)),
            (
                "trials per session",
                numbers(sorted({entry.trials for entry in audit.entries})),
            ),
            ("data sets", f"{study.replicates:,} for each kind of mind and number of trials"),
            ("seed", str(study.seed)),
            about_time(audit.seconds),
        ],
        findings=[
            Finding.of(f"{trials} trials", verdict) for trials, verdict in audit.verdicts.items()
        ],
        sentences=[
            about_unit(audit.entries[0]),
            *about_losses(audit.entries),
            *audit.missed,
        ],
        notes=[
            f"{ERRORS} Data sets that failed count as not rejecting. Size holds: the test rejects "
            f"in {LEVEL:.0%} of the data sets without an effect, up to 1.96 Monte-Carlo standard "
            "errors. Own s.e.: the mean standard error that the analysis itself reports; it should "
            "equal the sd of the estimates' errors."
        ],
        tables=_tables(audit),
        figures=_figures(audit),
        command=study.command_line(),
        versions=audit.versions,
    )


def _minds(measure: Measure, effects: str) -> list[tuple[str, str]]:
    """Say which minds were looked at."""
    with_it = f"{measure.violator}, {measure.name} = {effects or 'none asked'}"
    if not measure.rational:
        return [("minds", with_it), ("test", "none: the measure has no null value")]
    without = f"{measure.rational}, drawn from its priors"
    return [("minds without the effect", without), ("minds with it", with_it)]


def _tables(audit: Audit) -> list[Table]:
    return [
        table(
            "Size of the test",
            audit.null,
            ("trials", "{trials}"),
            ("rejected", "{rejected}"),
            ("95% by chance", lambda entry: "{:.1%} to {:.1%}".format(*_chance(entry))),
            ("data sets", "{attempted:,}"),
            ("verdict", lambda entry: audit.verdicts[entry.trials].word),
        ),
        table(
            "Operating characteristics",
            audit.entries,
            ("minds", "{cell.model}"),
            ("effect", "{effect:.3f}"),
            ("trials", "{trials}"),
            (f"rejected ({LEVEL:.0%})", "{rejected}"),
            ("bias", "{bias}"),
            ("sd", "{spread}"),
            ("own s.e.", "{standard_error}"),
            ("95% covers", "{coverage}"),
            ("failed", "{failed:,}"),
            ("left out", "{excluded:,}"),
        ),
    ]


def _figures(audit: Audit) -> list[tuple[str, str]]:
    found = []
    if audit.null:
        caption = (
            f"Share of the data sets without an effect in which the test rejects, with 2 standard "
            f"errors. Line: the {LEVEL:.0%} that are promised; shaded: 95% of exact tests by "
            "chance."
        )
        found.append((caption, size_of_test(audit)))
    if audit.violators:
        found.append(
            (
                "By the true value (at the left, minds without the effect): share of data sets "
                "that reject, bias, own standard error over the sd of the errors, and coverage of "
                "95% intervals; with 2 standard errors.",
                power_and_bias(audit),
            )
        )
    return found


def _chance(entry: Characteristics) -> tuple[float, float]:
    """Ends of the band in which an exact test lies with 95% probability."""
    half = 1.96 * (LEVEL * (1 - LEVEL) / entry.attempted) ** 0.5
    return max(LEVEL - half, 0.0), LEVEL + half


def size_of_test(audit: Audit) -> str:
    """Draw how often the test rejects a true null hypothesis, against the number of trials."""
    figure, (axis,) = draw.panels(1)
    low, high = _chance(audit.null[0])
    axis.axhspan(low, high, color=draw.GREY, alpha=0.25, linewidth=0)
    draw.limit(axis, LEVEL, "-")
    trials = [entry.trials for entry in audit.null]
    draw.curve(axis, trials, [entry.rejected for entry in audit.null], draw.styles(1)[0])
    draw.scale(axis, trials)
    top = max(2 * LEVEL, axis.get_ylim()[1])
    axis.set(xlabel="trials", ylabel="rejected without an effect", ylim=(0, top))
    return draw.svg(figure)


def power_and_bias(audit: Audit) -> str:
    """Draw power, bias, and how honest errors and intervals are, against the true value."""
    figure, axes = draw.panels(4)
    trials = sorted({entry.trials for entry in audit.entries})
    for n, style in zip(trials, draw.styles(len(trials)), strict=True):
        mine = sorted((e for e in audit.entries if e.trials == n), key=lambda e: e.effect)
        mine = [entry for entry in mine if isfinite(entry.effect)]
        x = [entry.effect for entry in mine]
        for axis, scores in zip(
            axes,
            (
                [entry.rejected for entry in mine],
                [entry.bias for entry in mine],
                [_honesty(entry) for entry in mine],
                [entry.coverage for entry in mine],
            ),
            strict=True,
        ):
            draw.curve(axis, x, scores, style, f"{n} trials")
    for axis, title, reference in zip(
        axes,
        ("rejected", "bias", "own s.e. / sd", "95% intervals cover"),
        (LEVEL, 0.0, 1.0, 0.95),
        strict=True,
    ):
        draw.limit(axis, reference)
        draw.entitle(axis, title)
        axis.set_xlabel(audit.measure.name)
    axes[0].set_ylim(0, 1.02)
    draw.key(figure, axes[0])
    return draw.svg(figure)


def _honesty(entry: Characteristics) -> Score:
    """Reported standard error over the actual one; both have errors, taken as independent."""
    own, actual = entry.standard_error, entry.spread
    if not own.value > 0 or not actual.value > 0:
        return NOTHING
    ratio = own.value / actual.value
    return Score(ratio, ratio * hypot(own.error / own.value, actual.error / actual.value))
