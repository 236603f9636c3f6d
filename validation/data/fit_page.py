"""The page of a fit: words, tables and figure."""

from __future__ import annotations

import numpy as np
import pandas as pd

from knownminds.agents.parameters import Array
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
    tone,
)

from .fit import Fit, noun


def fit_page(fit: Fit) -> Page:
    """Return the page of a fit."""
    whose = noun(fit.options)
    size = f"{counted(fit.n_subjects, whose)}, {counted(fit.n_trials, 'trial')}"
    asked = [
        ("data", f"{fit.source}: {size}"),
        ("experiment", fit.environment),
        ("model", fit.model),
        ("fitted by", listed({"method": fit.method} | dict(fit.options))),
    ]
    if fit.method == "hierarchical":
        asked.append(("sampling", f"{fit.verdict}; {fit.divergences} divergent draws"))
    caption = f"Each {whose}'s estimate and 90% interval; the group value and its interval behind."
    return Page(
        title=f"{fit.model} fitted to {fit.source}",
        asked=asked,
        findings=[
            Finding(
                name,
                s.verdict,
                f"Simulated minds who lived these rows again come back with r = {number(s.r, 2)}, "
                f"and {s.coverage:.0%} of their 90% intervals hold the truth.",
                tone(s.verdict),
            )
            for name, s in fit.support.items()
        ],
        sentences=fit.sentences,
        notes=["Estimates on the natural scale; 90% intervals in parentheses.", STATUSES],
        tables=[table for table in _tables(fit) if table[2]],
        figures=[(caption, subject_forest(fit))] if fit.parameters else [],
        command=fit_command(fit),
        versions=fit.versions,
    )


def _tables(fit: Fit) -> list[Table]:
    whose = noun(fit.options)
    group = [
        [name, number(v.estimate), f"{number(v.low)} to {number(v.high)}", v.meaning]
        for name, v in {**fit.group, **fit.effects}.items()
    ]
    support = [
        [name, number(s.r, 2), f"{s.coverage:.0%}", number(s.reliability, 2), s.verdict]
        for name, s in fit.support.items()
    ]
    models = [
        [
            name,
            f"{v['parameters']:.0f}",
            f"{v['log_likelihood']:.1f}",
            f"{v['aic']:.1f}",
            f"{v['bic']:.1f}",
            f"{v['best_for']:.0f}",
        ]
        for name, v in fit.comparison.items()
    ]
    sampling = [
        [name, f"{v['r_hat']:.3f}", f"{v['ess_bulk']:.0f}", f"{v['ess_tail']:.0f}"]
        for name, v in fit.sampling.items()
    ]
    people = [
        [
            row["subject"],
            str(row["n_trials"]),
            *(
                f"{number(row[name], 2)} "
                f"({number(row[f'{name}_low'], 2)} to {number(row[f'{name}_high'], 2)})"
                for name in fit.parameters
            ),
            row["status"],
        ]
        for row in fit.subjects.to_dict("records")
    ]
    gaps = [
        [
            row["subject"],
            str(row["n_missing"]),
            *(
                f"{number(row[f'{name}_lowest'], 2)} to {number(row[f'{name}_highest'], 2)}"
                for name in fit.parameters
            ),
        ]
        for row in fit.bounds.to_dict("records")
    ]
    gap_head = [whose, "missing", *fit.parameters]
    model_head = ["model", "parameters", "log-likelihood", "AIC", "BIC", "best for (BIC)"]
    support_head = ["parameter", "r", "90% covers", "reliability here", "verdict"]
    return [
        ("Group", ["parameter", "estimate", "90% interval", "meaning"], group),
        ("What these rows support", support_head, support),
        (f"Models (maximum likelihood, summed over {whose}s)", model_head, models),
        status_table(fit.statuses, fit.n_subjects),
        outcome_table(fit.outcomes),
        ("Between which estimates lie, whatever the missing answers", gap_head, gaps),
        ("Sampling", ["term", "R-hat", "bulk ESS", "tail ESS"], sampling),
        (f"{whose.capitalize()}s", [whose, "trials", *fit.parameters, "status"], people),
    ]


def fit_command(fit: Fit) -> str:
    """Return the command line that fits the data again."""
    options = fit.options
    return command_line(
        "fit",
        fit.source,
        model=fit.model,
        method=fit.method,
        environment=fit.environment,
        seed=options["seed"],
        columns=in_one(options["columns"]),
        formula=options["formula"],
        unit=",".join(options.get("unit") or ()),
        crossed=",".join(options.get("crossed") or ()),
        fix=options["fixed"],
        fit_lapse=options["fit_lapse"],
        all_trials=options.get("all_trials"),
        pooled=options.get("pooled"),
        target_accept=options.get("target_accept"),
        most_minutes=options.get("most_minutes"),
    )


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
        axis.set(xlim=draw.limits(frame[name].to_numpy(), *_ends(frame, name)), xlabel=name)
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
