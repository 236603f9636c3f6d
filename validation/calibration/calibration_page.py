"""The page of a calibration study: words, table and figure."""

from __future__ import annotations

from knownminds.validation.engine.verdicts import MOST_FAILURES
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    Finding,
    Page,
    Table,
    about_experiment,
    about_time,
    listed,
    status_table,
    table,
    tone,
)

from .calibration import LEVEL, N_RANKS, Calibration
from .rank_uniformity import Uniformity


def calibration_page(calibration: Calibration) -> Page:
    """Return the page of a calibration study."""
    study, cell = calibration.study, calibration.cell
    grouped = cell.method == "hierarchical"
    if "around" in cell.options:
        drawn = "given trials"
    held = f", but {listed(cell.truth)}" if cell.truth else ""
    drawn = "groups from the hyperpriors" if grouped else "each from the model's priors"
    asked = [
        *about_experiment(cell),
        ("trials per session", str(cell.make().n_trials)),
        ("sessions per subject", str(cell.sessions)),
        ("model", cell.model),
        ("posterior", f"of a group of {cell.subjects}" if grouped else "of each subject alone"),
        ("true values", f"{drawn}{held}"),
        ("replicates", f"{study.replicates}, the truth ranked among {N_RANKS} draws"),
        ("seed", str(study.seed)),
        about_time(calibration.seconds),
    ]
    judged = calibration.quantities.items()
    caption = (
        "Share of the ranks below a value minus that value, for each quantity; shaded, where all "
        f"of it lies if the posterior is right (simultaneous over ranks and quantities, "
        f"{1 - LEVEL:.0%}). Squares lie outside."
    )
    return Page(
        title=f"Are the posteriors of {cell.model} in {cell.environment} calibrated?",
        asked=asked,
        findings=[Finding(name, u.word, " ".join(u.reasons), tone(u.word)) for name, u in judged],
        sentences=[*calibration.about_truths, *calibration.missed]
        if judged
        else ["No replicate gave ranks, so nothing is judged."],
        notes=[
            *calibration.notes,
            "If the posterior is right, the truth's rank among its draws is uniform: mean 0.5, "
            "spread 1. A posterior that is too narrow has a spread above 1, one that is too wide "
            "below; a curve that rises first means draws above the truth (biased high). The p "
            "value of gamma decides, at a level shared among the quantities.",
            f"Standard errors in parentheses. Failed replicates have no ranks; above "
            f"{MOST_FAILURES:.0%} of them the others do not speak for all.",
        ],
        tables=[
            *([_ranks(calibration)] if judged else []),
            status_table(calibration.statuses, calibration.attempted, "replicates"),
        ],
        figures=[(caption, rank_differences(calibration))] if judged else [],
        command=study.command_line(),
        versions=calibration.versions,
    )


def _ranks(calibration: Calibration) -> Table:
    bands = {True: "inside", False: "outside", None: "-"}
    return table(
        "Ranks of the truth among the posterior's draws",
        calibration.quantities.items(),
        ("quantity", "{0}"),
        ("ranks", "{1.n:,}"),
        ("mean", "{1.mean:.3f} ({1.mean_error:.3f})"),
        ("spread", "{1.spread:.2f} ({1.spread_error:.2f})"),
        ("gamma", "{1.gamma:.2g}"),
        ("p", "{1.p_value:.3f}"),
        ("95% band", lambda row: bands[row[1].inside_band]),
        ("chi-square", lambda row: _chi_square(row[1])),
        ("p", "{1.chi_square_p:.3f}"),
        ("verdict", "{1.word}"),
    )


def _chi_square(u: Uniformity) -> str:
    return f"{u.chi_square:.1f} ({u.bins} bins)" if u.bins > 1 else "-"


def rank_differences(calibration: Calibration) -> str:
    """Draw the ECDF of the ranks minus the uniform one, with its simultaneous band."""
    figure, axes = draw.panels(len(calibration.quantities), height=2.5)
    for axis, (name, u) in zip(axes, calibration.quantities.items(), strict=True):
        draw.limit(axis, 0, "-")
        draw.entitle(axis, f"{name}\n{u.word}")
        axis.set_xticks([0, 0.5, 1])
        if len(u.points) == 0:
            axis.set_yticks([])
            continue
        axis.fill_between(u.points, u.lower, u.upper, color=draw.GREY, alpha=0.25, linewidth=0)
        axis.plot(u.points, u.difference, color=draw.BLUE, linewidth=1.2)
        out = (u.difference < u.lower) | (u.difference > u.upper)
        axis.plot(u.points[out], u.difference[out], "s", color=draw.ORANGE, markersize=3)
        axis.set_xlabel("rank / 100")
    axes[0].set_ylabel("ECDF - uniform")
    return draw.svg(figure)
