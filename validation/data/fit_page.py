"""The page of a fit: words, tables and figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from knownminds.agents.parameters import Array
from knownminds.environments.record.plots import symbol
from knownminds.validation.engine.question import command_line, in_one
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    STATUSES,
    Finding,
    Page,
    Table,
    counted,
    listed,
    number,
    outcome_table,
    status_table,
    table,
    tone,
)

from .fit import Fit, noun
from .group_fit import NOT_CONVERGED
from .predictive_page import (
    ABOUT_P,
    CHECKED,
    checked_findings,
    checked_table,
    draw_panels,
)
from .rivals_page import ABOUT_ELPD, COMPARED, rival_tables, rivals_figure
from .sampling_page import sampling_section

CONTRASTS = "Contrasts on the natural scale"
DIFFERENCES = "Contrasts with 90% intervals; shaded, what counts as no difference."
ABOUT_CONTRASTS = (
    "A contrast is of the group's typical member, one without deviations of its own, averaged over "
    "the subjects as they are in all other columns. Direction: share of the posterior on its side "
    "of 0. No difference: a tenth of the spread of the model's prior, or as told by --rope."
)


def fit_page(fit: Fit) -> Page:
    """Return the page of a fit."""
    whose = noun(fit.options)
    size = f"{counted(fit.n_subjects, whose)}, {counted(fit.n_trials, 'trial')}"
    options = {k: ", ".join(v) if isinstance(v, list) else v for k, v in fit.options.items()}
    options = {name: value for name, value in options.items() if value != ""}
    asked = [
        ("data", f"{fit.source}: {size}"),
        ("experiment", fit.environment),
        ("model", fit.model),
        ("fitted by", listed({"method": fit.method} | options)),
    ]
    if fit.method == "hierarchical":
        asked.append(("sampling", f"{fit.verdict}; {counted(fit.divergences, 'divergent draw')}"))
    return Page(
        title=f"{fit.model} fitted to {fit.source}",
        asked=asked,
        findings=_sampling_finding(fit)
        + [
            Finding(
                name,
                s.verdict,
                f"Simulated minds who lived these rows again come back with r = {number(s.r, 2)}, "
                f"and {s.coverage:.0%} of their 90% intervals hold the truth.",
                tone(s.verdict),
            )
            for name, s in fit.support.items()
        ]
        + [_contrast_finding(row) for row in fit.contrasts if fit.verdict == "converged"]
        + checked_findings(fit.predictive),
        sentences=[one for one in fit.sentences if not one.startswith(NOT_CONVERGED)],
        notes=_notes(fit),
        tables=_tables(fit),
        figures=_figures(fit),
        sections=sampling_section(fit.traces),
        command=fit_command(fit),
        versions=fit.versions,
    )


def _sampling_finding(fit: Fit) -> list[Finding]:
    """Return the finding that a posterior is not to be used, above all that was made of it."""
    return [
        Finding(
            "sampling",
            "not converged",
            f"Do not use these numbers: {one.removeprefix(NOT_CONVERGED)}",
            "bad",
        )
        for one in fit.sentences
        if one.startswith(NOT_CONVERGED)
    ]


def _notes(fit: Fit) -> list[str]:
    told = ["Estimates on the natural scale; 90% intervals in parentheses.", STATUSES]
    told += [ABOUT_CONTRASTS] if fit.contrasts else []
    told += [ABOUT_P] if fit.predictive else []
    return [*told, ABOUT_ELPD] if fit.rivals else told


def _figures(fit: Fit) -> list[tuple[str, str]]:
    whose = noun(fit.options)
    caption = f"Each {whose}'s estimate and 90% interval; the group value and its interval behind."
    drawn = [(caption, subject_forest(fit))] if fit.parameters else []
    if fit.contrasts:
        drawn.append((DIFFERENCES, contrasts_figure(fit.contrasts)))
    if fit.predictive:
        drawn.append((CHECKED, draw.svg(draw_panels(fit.predictive.panels))))
    if fit.rivals:
        drawn.append((COMPARED, rivals_figure(fit.rivals)))
    return drawn


def _tables(fit: Fit) -> list[Table]:
    whose = noun(fit.options)
    title = f"Models (maximum likelihood, summed over {whose}s)"
    each = [(n, f"{{{n}:.2f}} ({{{n}_low:.2f}} to {{{n}_high:.2f}})") for n in fit.parameters]
    between = [(n, f"{{{n}_lowest:.2f}} to {{{n}_highest:.2f}}") for n in fit.parameters]
    return [
        table(
            "Group",
            {**fit.group, **fit.effects}.items(),
            ("parameter", "{0}"),
            ("estimate", "{1.estimate:.3f}"),
            ("90% interval", "{1.low:.3f} to {1.high:.3f}"),
            ("meaning", "{1.meaning}"),
        ),
        table(
            "What these rows support",
            fit.support.items(),
            ("parameter", "{0}"),
            ("r", "{1.r:.2f}"),
            ("90% covers", "{1.coverage:.0%}"),
            ("reliability here", "{1.reliability:.2f}"),
            ("verdict", "{1.verdict}"),
        ),
        table(
            title,
            fit.comparison.items(),
            ("model", "{0}"),
            ("parameters", "{1[parameters]:.0f}"),
            ("log-likelihood", "{1[log_likelihood]:.1f}"),
            ("AIC", "{1[aic]:.1f}"),
            ("BIC", "{1[bic]:.1f}"),
            ("best for (BIC)", "{1[best_for]:.0f}"),
        ),
        table(
            CONTRASTS,
            fit.contrasts,
            ("contrast", "{name}"),
            ("subjects", "{kind}"),
            ("difference", "{quoted[0]}"),
            ("90% interval", "{quoted[1]}"),
            ("direction", "{quoted[2]}"),
            ("no difference", "within {rope:.3f}"),
            ("share there", "{inside:.0%}"),
            ("verdict", "{verdict}"),
        ),
        *rival_tables(fit.rivals),
        checked_table(fit.predictive),
        status_table(fit.statuses, fit.n_subjects),
        outcome_table(fit.outcomes),
        table(
            "Between which estimates lie, whatever the missing answers",
            fit.bounds,
            (whose, "{subject}"),
            ("missing", "{n_missing}"),
            *between,
        ),
        table(
            "Sampling",
            fit.sampling.items(),
            ("term", "{0}"),
            ("R-hat", "{1[r_hat]:.3f}"),
            ("bulk ESS", "{1[ess_bulk]:.0f}"),
            ("tail ESS", "{1[ess_tail]:.0f}"),
        ),
        table(
            f"{whose.capitalize()}s",
            fit.subjects,
            (whose, "{subject}"),
            ("trials", "{n_trials}"),
            *each,
            ("status", "{status}"),
        ),
    ]


def fit_command(fit: Fit) -> str:
    """Return the command line that fits the data again."""
    options = fit.options
    return command_line(
        "fit",
        *fit.options.get("data", [fit.source]),
        model=fit.model,
        method=fit.method,
        environment=fit.environment,
        seed=options["seed"],
        columns=in_one(options["columns"]),
        set=options.get("settings"),
        formula=options["formula"],
        rope=options.get("rope"),
        unit=",".join(options.get("unit") or ()),
        crossed=",".join(options.get("crossed") or ()),
        correlated=options.get("correlated"),
        fix=options["fixed"],
        fit_lapse=options["fit_lapse"],
        all_trials=options.get("all_trials"),
        pooled=options.get("pooled"),
        against=options.get("against"),
        rivals=options.get("rivals"),
        target_accept=options.get("target_accept"),
        most_minutes=options.get("most_minutes"),
    )


def _contrast_finding(row: Mapping[str, Any]) -> Finding:
    word = {"differs": "differs", "negligible": "no difference", "open": "open"}[row["verdict"]]
    where = {"differs": "outside of", "negligible": "within", "open": "partly within"}
    return Finding(
        row["name"],
        word,
        f"The 90% interval lies {where[row['verdict']]} the region that counts as no difference.",
        "fair" if row["verdict"] == "open" else "good",
    )


def contrasts_figure(rows: Sequence[Mapping[str, Any]]) -> str:
    """Draw each contrast's 90% interval, a panel per parameter, and what is no difference."""
    names = list(dict.fromkeys(row["parameter"] for row in rows))
    most = max(sum(row["parameter"] == name for row in rows) for name in names)
    figure, axes = draw.panels(len(names), height=float(np.clip(1.2 + 0.3 * most, 1.8, 8)))
    for axis, name in zip(axes, names, strict=True):
        own = [row for row in rows if row["parameter"] == name]
        place = np.arange(len(own))[::-1]
        axis.axvspan(-own[0]["rope"], own[0]["rope"], color=draw.GREEN, alpha=0.2, linewidth=0,
                     label="no difference")  # fmt: skip
        axis.axvline(0.0, color=draw.GREEN, linewidth=1.0)
        low, high, middle = ([row[key] for row in own] for key in ("low", "high", "estimate"))
        axis.hlines(place, low, high, color=draw.BLUE, linewidth=1.6)
        axis.plot(middle, place, "o", color=draw.BLUE, markersize=4, label="90% interval")
        axis.set_yticks(place, [row["name"].partition(": ")[2] for row in own])
        axis.set_ylim(-0.7, len(own) - 0.3)
        axis.set_xlabel(f"difference in {symbol(name)}")
    draw.key(figure, axes[0])
    return draw.svg(figure)


def subject_forest(fit: Fit) -> str:
    """Draw every subject's 90% interval, sorted by estimate, and the group value."""
    tall = float(np.clip(0.06 * fit.n_subjects, 2.4, 8))
    figure, axes = draw.panels(len(fit.parameters), height=tall)
    for axis, name in zip(axes, fit.parameters, strict=True):
        frame = fit.subjects.sort_values(name, ignore_index=True)
        place = np.arange(len(frame))
        sure = (frame["status"] == "ok").to_numpy()
        for chosen, colour, marker, label in (
            (sure, draw.BLUE, "o", "ok"),
            (~sure, draw.ORANGE, "s", "other status"),
        ):
            if not chosen.any():
                continue
            some = frame[chosen]
            axis.hlines(
                place[chosen],
                some[f"{name}_low"],
                some[f"{name}_high"],
                color=colour,
                alpha=0.45,
                linewidth=1.2,
            )
            axis.plot(some[name], place[chosen], marker, color=colour, markersize=2.6, label=label)
        group = fit.group[name]
        if np.isfinite(group.estimate):
            axis.axvspan(group.low, group.high, color=draw.GREEN, alpha=0.2, linewidth=0)
            axis.axvline(group.estimate, color=draw.GREEN, linewidth=1.2, label=group.meaning)
        axis.set(xlim=draw.limits(frame[name].to_numpy(), *_ends(frame, name)), xlabel=symbol(name))
        axis.set_yticks([])
    axes[0].set_ylabel(f"{noun(fit.options)}s, sorted")
    draw.key(figure, axes[0])
    return draw.svg(figure)


def _ends(frame: pd.DataFrame, name: str) -> list[Array]:
    """Interval ends, with the longest tenth cut so that one subject does not set the scale."""
    low, high = frame[f"{name}_low"].to_numpy(), frame[f"{name}_high"].to_numpy()
    if not (np.isfinite(low).any() and np.isfinite(high).any()):
        return []
    cut_low, cut_high = np.nanquantile(low, 0.05), np.nanquantile(high, 0.95)
    return [np.maximum(low, cut_low), np.minimum(high, cut_high)]
