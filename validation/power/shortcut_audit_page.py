"""The page of an audit of shortcuts: what each reaches in each experiment."""

from __future__ import annotations

import numpy as np

from knownminds.validation.engine.monte_carlo import Score
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Page, shown, table

from .shortcut_audit import FOUND, LEVEL, MARGIN, ShortcutAudit

_MOST = 24  # bars of the figure


def shortcut_audit_page(audit: ShortcutAudit) -> Page:
    """Return the page of an audit of shortcuts."""
    found = audit.table
    looks, habits = (found[found["kind"] == kind] for kind in ("look", "habit"))
    tables = []
    if len(looks):
        tables.append(
            table(
                "Numbers: what is looked at in place of what is asked",
                looks,
                ("experiment", "{environment}"),
                ("stimuli", "{stimuli}"),
                ("shortcut", "{shortcut}"),
                ("r", "{r:.2f}"),
                ("score", lambda row: shown(Score(row["gain"], row["gain_error"]))),
                ("NRMSE", lambda row: f"{np.sqrt(max(1 - row['gain'], 0)):.2f}"),
                ("verdict", "{verdict}"),
            )
        )
    if len(habits):
        tables.append(
            table(
                "Actions: rules that look at nothing",
                habits,
                ("experiment", "{environment}"),
                ("shortcut", "{shortcut}"),
                ("score", "{score:.3f}"),
                ("at random", "{chance:.3f}"),
                ("gain", lambda row: shown(Score(row["gain"], row["gain_error"]))),
                ("verdict", "{verdict}"),
            )
        )
    return Page(
        title="What does each shortcut reach?",
        asked=[
            ("experiments", str(len(audit.study.cells))),
            ("sessions", f"{audit.study.replicates:,} of each"),
            ("seed", str(audit.study.seed)),
        ],
        findings=[],
        sentences=[],
        notes=[
            "Standard errors over sessions in parentheses. Looks: 1 - squared error of the line "
            "through what is looked at, by a slope from the other sessions, over that of the mean "
            "of a window. Habits: mean performance of a trial. A shortcut tells something if its "
            f"gain is above 0 (of looks {MARGIN:g}, a correlation of .1) at {LEVEL:g} for all of "
            "an experiment together."
        ],
        tables=tables,
        figures=[("Score of each look", _figure(audit))] if len(looks) else [],
        command=audit.study.command_line(),
        versions=audit.versions,
    )


def _figure(audit: ShortcutAudit) -> str:
    looks = audit.table[audit.table["kind"] == "look"].nlargest(_MOST, "gain")[::-1]
    names = [
        f"{row['environment']}{', ' + row['stimuli'] if row['stimuli'] else ''}: {row['shortcut']}"
        for row in looks.to_dict("records")
    ]
    figure, (axis,) = draw.panels(1)
    figure.set_size_inches(7.2, 1.0 + 0.24 * len(names))
    places = np.arange(len(names))
    told = (looks["verdict"] == FOUND).to_numpy()
    axis.barh(places, looks["gain"].clip(lower=0), color=np.where(told, "C0", "0.75").tolist())
    axis.set_yticks(places, names, fontsize=8)
    axis.set_xlim(0, 1)
    axis.set_xlabel("share of squared error taken away")
    return draw.svg(figure)
