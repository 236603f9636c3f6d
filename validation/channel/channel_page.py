"""The page of a channel round trip: words, tables and the figure."""

from __future__ import annotations

import numpy as np

from knownminds.validation.engine.verdicts import RATES_LEVEL
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    Finding,
    Page,
    Table,
    about_experiment,
    about_time,
    about_truth,
    listed,
    table,
)

from .channel_study import MASS, Channel, Spoken

MOST_POINTS = 300  # of each set of contaminants and panel


def channel_page(channel: Channel) -> Page:
    """Return the page of a channel round trip."""
    study, cell = channel.study, channel.study.cells[0]
    options = {k: v for k, v in cell.options.items() if k != "contaminants"}
    drawable = any(entry.failed < entry.attempted for entry in channel.entries)
    caption = (
        "Estimate from the words against that of the same mind directly. Bars: the bounds, from "
        "the lowest to the highest estimate over all that the missing answers could have been."
    )
    return Page(
        title=f"Does {cell.model} come through the words of {cell.environment} as it is?",
        asked=[
            *about_experiment(cell),
            ("trials per session", str(cell.make().n_trials)),
            ("model", cell.model),
            ("true values", about_truth(cell)),
            ("contaminants", "; ".join(entry.label for entry in channel.entries)),
            ("fitted by", listed({"method": cell.method} | options)),
            ("subjects", f"{cell.subjects}, the same with each set of contaminants"),
            ("sessions per subject", str(cell.sessions)),
            ("seed", str(study.seed)),
            about_time(channel.seconds),
        ],
        findings=[
            Finding.of(f"{entry.label}, {name}", verdict)
            for entry in channel.entries
            for name, verdict in entry.verdicts.items()
        ],
        sentences=[
            f"{entry.label}: {n} of {entry.attempted} without an estimate: {message}."
            for entry in channel.entries
            for message, n in entry.messages.items()
        ],
        notes=[
            "Both paths are lived with the same random numbers, so that no trial may differ: "
            "before the first answer that is not read, from the compiled simulation; after it, "
            "from the step interface with the same answers withheld.",
            "A trial without a readable answer adds nothing to the likelihood. That is right if "
            "answers are missing at random, as these are; the bounds make no such claim. With "
            f"sampling error they reach from the lower end of the {MASS:.0%} interval at the "
            f"lowest estimate to the upper end of that at the highest, and should hold the truth "
            f"at least that often.",
            "Intervals of the rates (Wilson 1927) take trials as independent. Rates are those of "
            f"the dials unless an exact test says otherwise, at {RATES_LEVEL:g} over all of them.",
            "Monte-Carlo standard errors in parentheses. Subjects without an estimate are left "
            "out of coverage and counted.",
        ],
        tables=_tables(channel),
        figures=[(caption, words_against_direct(channel))] if drawable else [],
        command=study.command_line(),
        versions=channel.versions,
    )


def _tables(channel: Channel) -> list[Table]:
    rates = [
        {"label": entry.label, **row}
        for entry in channel.entries
        for row in entry.rates.to_dict("records")
        if row["count"] or row["expected"]
    ]
    covers = f"{MASS:.0%} covers"
    return [
        table(
            "Trials",
            channel.entries,
            ("contaminants", "{label}"),
            ("trials", "{trials:,}"),
            ("not read", "{missing:,}"),
            ("differ", "{differing:,}"),
            ("subjects", "{attempted:,}"),
            ("failed", "{failed:,}"),
        ),
        table(
            "Outcomes",
            rates,
            ("contaminants", "{label}"),
            ("outcome", "{outcome}"),
            ("by the dials", "{expected:.1%}"),
            ("trials", "{count:,}"),
            ("share", "{share:.1%}"),
            (
                "95% interval",
                lambda row: "{low:.1%} to {high:.1%}".format(**row) if row["of"] else "-",
            ),
        ),
        table(
            f"Intervals at {MASS:.0%} that hold the truth",
            [(entry, held) for entry in channel.entries for held in entry.parameters],
            ("contaminants", "{0.label}"),
            ("parameter", "{1.name}"),
            (f"direct, {covers}", "{1.direct}"),
            (f"in words, {covers}", "{1.plain}"),
            (f"bounds, {covers}", "{1.bounds}"),
            ("width in words", "{1.plain_width}"),
            ("width of bounds", "{1.bounds_width}"),
        ),
    ]


def words_against_direct(channel: Channel) -> str:
    """Draw each parameter's estimate from words against the direct one, with its bounds."""
    names = [held.name for held in channel.entries[0].parameters]
    figure, axes = draw.panels(len(names))
    for axis, name in zip(axes, names, strict=True):
        seen = []
        looks = draw.styles(len(channel.entries))
        for entry, (colour, marker, _) in zip(channel.entries, looks, strict=True):
            if entry.failed == entry.attempted:
                continue
            direct, words, low, high = _points(entry, name)
            seen += [direct, words]
            # As pixels inside the SVG: thousands of vector marks make a heavy page.
            axis.vlines(direct, low, high, color=colour, alpha=0.4, linewidth=0.8, rasterized=True)
            axis.plot(
                direct,
                words,
                marker,
                color=colour,
                markersize=2.5,
                alpha=0.7,
                linewidth=0,
                label=entry.label,
                rasterized=True,
            )
        low_end, high_end = draw.limits(*seen)
        axis.plot([low_end, high_end], [low_end, high_end], color=draw.GREY, linewidth=1, zorder=0)
        axis.set(xlim=(low_end, high_end), ylim=(low_end, high_end))
        axis.set(xlabel="directly", ylabel="in words")
        draw.entitle(axis, name)
        axis.set_box_aspect(1)
    draw.key(figure, axes[0], columns=2)
    return draw.svg(figure)


def _points(entry: Spoken, name: str) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Estimates directly and in words, and bounds, of some of the subjects."""
    rows = entry.rows[entry.rows["status"] != "failed"]
    rows = rows.iloc[:: -(-len(rows) // MOST_POINTS) or 1]
    columns = (f"direct_{name}", name, f"lowest_{name}", f"highest_{name}")
    return [rows[column].to_numpy(dtype=float) for column in columns]
