"""Pictures and tables of answers about a collider, for the page of `knownminds score`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from knownminds.inference.causes.alignment import POOLED
from knownminds.inference.causes.markov_violation import COMPLIANT
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import Column, Table, between, table

from .causal_profile import (
    ALL_PARAMETERS,
    MOST_PAIRED,
    PARAMETERS,
    QUANTITIES,
    UNIT,
    CausalProfile,
    complying,
)

# Which tasks share a panel, and what they ask.
PANELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("the effect, given its causes", ("I", "II", "III")),
    ("a cause, given the other", ("IV", "V")),
    ("a cause, the effect present", ("VI", "VII", "VIII")),
    ("a cause, the effect absent", ("IX", "X", "XI")),
)
MOST_DRAWN = 10  # agents, each in a row of panels
MOST_NAMED = 8  # agents with a colour of their own
MOST_ROWS = 60  # of a table
QUIET = "#bbbbbb"
_SHORT = {
    "reasoning_consistency": "consistency",
    "explaining_away": "explaining away\nVII - VI",
    "explaining_away_released": "explaining away\nVIII - VI",
    "markov_violation": "Markov violation\nIV - V",
    "r2": "R2 of the fit",
}
CONSISTENCY = (
    ("consistency", "{reasoning_consistency:.3f}"),
    ("its RMSE", "{consistency_rmse:.3f}"),
)
_NULLS = ("explaining_away", "explaining_away_released", "markov_violation")


ANSWERS_DRAWN = (
    "Answers (means, joined; where there are several with 95% intervals) against the noisy-OR "
    "fitted to them (dashed), by task. Both directions of a task are averaged and written as that "
    "about C1. A slope from IV to V is a Markov violation; a rise from VI to VIII is explaining "
    "away."
)


def causal_figures(profile: CausalProfile) -> list[tuple[str, str]]:
    """Return captions and pictures: answers by task, changes over conditions, alignment."""
    agents = profile.units[profile.agent].nunique()
    drawn = ANSWERS_DRAWN
    if agents > MOST_DRAWN:
        drawn += f" The first {MOST_DRAWN} of {agents} agents."
    found = [(drawn, draw.svg(four_panels(profile)))]
    for factor in dict.fromkeys(profile.differences.get("factor", ())):
        found.append(
            (
                f"Parameters and measures over {factor}: a line per agent, averaged over other "
                "conditions; in black, of several agents, the mean of those with a value "
                "everywhere. Grey: no explaining away (line), and violations of up to "
                f"{COMPLIANT:g} to either side, which pass for none (band).",
                draw.svg(paired_lines(profile, str(factor))),
            )
        )
    if len(profile.alignment):
        units, domains = (profile.alignment[name].nunique() for name in ("agent", "domain"))
        drawn = (
            f"Rank correlation with {profile.reference}, with 95% bootstrap intervals over items."
        )
        if domains > 1:
            drawn += " Filled: all domains; hollow: each domain."
        if units > MOST_ROWS:
            drawn += f" The first {MOST_ROWS} of {units} agents and conditions."
        found.append((drawn, draw.svg(alignment_picture(profile))))
    return found


def four_panels(profile: CausalProfile) -> Figure:
    """Draw answers and predictions over the eleven tasks, a row of four panels per agent."""
    agents = list(dict.fromkeys(profile.units[profile.agent]))[:MOST_DRAWN]
    across = [len(tasks) for _, tasks in PANELS]
    figure = Figure(figsize=(10.5, 2.35 * len(agents) + 0.9), layout="constrained")
    grid = figure.add_gridspec(len(agents), len(PANELS), width_ratios=across)
    looks = dict(zip(_labels(profile), draw.styles(len(_labels(profile))), strict=True))
    held = profile.tasks.set_index([UNIT, "task"])
    handles: dict[str, Any] = {}
    for i, agent in enumerate(agents):
        mine = profile.units[profile.units[profile.agent] == agent]
        for j, (title, tasks) in enumerate(PANELS):
            axis = figure.add_subplot(grid[i, j])
            for k, row in enumerate(mine.to_dict("records")):
                label = _condition(profile, row)
                rows = held.loc[[(row[UNIT], task) for task in tasks]]
                shift = 0.07 * (k - (len(mine) - 1) / 2)
                handles[label] = _answers(axis, rows, looks[label], shift)
            _frame_panel(axis, tasks, profile, last=i == len(agents) - 1, first=j == 0)
            if i == 0:
                draw.entitle(axis, title)
        figure.axes[-len(PANELS)].set_ylabel(agent, fontsize=draw.TITLE)
    if len(handles) > 1:
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside upper center",
            ncols=min(len(handles), 4),
            frameon=False,
            fontsize=draw.SMALL,
        )
    return figure


def paired_lines(profile: CausalProfile, factor: str) -> Figure:
    """Draw each parameter and measure over the levels of a factor, a line per agent."""
    levels = list(dict.fromkeys(profile.units[factor]))
    agents = list(dict.fromkeys(profile.units[profile.agent]))
    figure, axes = draw.panels(len(QUANTITIES), height=2.5, columns=5)
    few = len(agents) <= MOST_NAMED
    looks = draw.styles(len(agents)) if few else [(QUIET, "", "-")] * len(agents)
    for axis, quantity in zip(axes, QUANTITIES, strict=True):
        wide = profile.units.pivot_table(
            index=profile.agent, columns=factor, values=quantity, sort=False
        ).reindex(index=agents, columns=levels)
        for look, (agent, values) in zip(looks, wide.iterrows(), strict=True):
            draw.line(axis, range(len(levels)), values.to_list(), look, str(agent) if few else "")
        mean = wide.dropna().mean()
        if len(agents) > 1:
            axis.plot(range(len(levels)), mean.to_numpy(), color="black", linewidth=2.5, zorder=3)
        _reference_lines(axis, quantity)
        axis.set_xticks(range(len(levels)), [str(level).replace("_", " ") for level in levels])
        turned = sum(map(len, map(str, levels))) > 18
        if turned:
            axis.tick_params(axis="x", labelrotation=30)
        axis.margins(x=0.2)
        draw.entitle(axis, _SHORT.get(quantity, quantity))
    draw.key(figure, axes[0])
    return figure


def alignment_picture(profile: CausalProfile) -> Figure:
    """Draw the rank correlations with the reference, a line per agent and condition."""
    units = list(dict.fromkeys(profile.alignment["agent"]))[:MOST_ROWS]
    domains = [d for d in dict.fromkeys(profile.alignment["domain"]) if d != POOLED]
    figure = Figure(figsize=(7.5, 0.45 * len(units) + 1.1), layout="constrained")
    axis = figure.add_subplot()
    looks = dict(zip(domains, draw.styles(len(domains) + 1)[1:], strict=True))
    rows = profile.alignment.set_index(["agent", "domain"])
    for y, unit in enumerate(units):
        for k, domain in enumerate([POOLED, *domains]):
            if (unit, domain) not in rows.index:
                continue
            row = rows.loc[(unit, domain)]
            colour, marker, _ = looks.get(domain, (draw.BLUE, "o", "-"))
            at = y + 0.16 * (k - len(domains) / 2)
            axis.plot([row["low"], row["high"]], [at, at], color=colour, linewidth=1.4)
            axis.plot(
                row["rho"], at, marker=marker, color=colour, markersize=5,
                markerfacecolor=colour if domain == POOLED else "white",
                linestyle="none", label=domain if y == 0 else None,
            )  # fmt: skip
    axis.set_yticks(range(len(units)), units, fontsize=draw.SMALL)
    axis.set_ylim(len(units) - 0.4, -0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=draw.SMALL)
    axis.set_xlabel("Spearman's rho", fontsize=draw.SMALL)
    draw.key(figure, axis)
    return figure


def causal_tables(profile: CausalProfile) -> list[Table]:
    """Return the tables of fits, measures, alignment, domains and changes."""
    units = profile.units
    whose = ("agent and condition", f"{{{UNIT}}}")
    note = ("note", lambda row: row["note"] or "-")
    return [
        _first_rows(
            "Noisy-OR fits, by least squares",
            units,
            whose,
            ("answers", "{answers:,}"),
            ("without one", "{missing:,}"),
            ("parameters", lambda row: str(row["parameters"] or "-")),
            *_numbers(*PARAMETERS, "mae", "rmse", "r2"),
            note,
        ),
        _first_rows(
            "Measures by agent and condition",
            units,
            whose,
            *CONSISTENCY,
            ("determinacy", "{determinacy:.3f}"),
            ("explaining away VII - VI", "{explaining_away:.3f}"),
            ("VIII - VI", "{explaining_away_released:.3f}"),
            ("Markov violation", "{markov_violation:.3f}"),
            ("complies", lambda row: complying(row["complies"])),
            ("cells that lack an answer", "{incomplete}"),
        ),
        _first_rows(
            "Noisy-ORs by number of parameters",
            profile.fits,
            whose,
            ("parameters", lambda r: f"{r['parameters']}{', chosen' if r['chosen'] else ''}"),
            *_numbers(*ALL_PARAMETERS, "mae", "rmse", "loss", "r2"),
            *CONSISTENCY,
            note,
        ),
        _first_rows(
            f"Alignment with {profile.reference}",
            profile.alignment,
            ("agent and condition", "{agent}"),
            ("domain", "{domain}"),
            ("rho", "{rho:.3f}"),
            ("95%", between),
            ("items", "{items}"),
            ("unmatched", "{unmatched}"),
        ),
        *_tests_and_changes(profile),
    ]


def _tests_and_changes(profile: CausalProfile) -> list[Table]:
    """Return the tables of what differs between domains, agents and conditions."""
    omnibus, pairs, changes = profile.omnibus, profile.pairs, profile.changes
    if len(omnibus):
        omnibus = omnibus.assign(matched=profile.matched["p_adjusted"].to_numpy())
    if len(pairs):
        pairs = pairs[pairs["p_adjusted"] < 0.05]
    if len(changes):
        changes = changes.sort_values(["factor", "change"], ascending=[True, False])
    condition = ("condition", lambda row: row["condition"] or "-")
    return [
        _first_rows(
            "Differences between domains, and between agents",
            omnibus,
            condition,
            ("test", "{family}"),
            ("of", "{of}"),
            ("H", "{statistic:.2f}"),
            ("df", "{freedom}"),
            ("p", "{p_value:.3g}"),
            ("p adjusted", "{p_adjusted:.3g}"),
            ("matched, p adjusted", "{matched:.3g}"),
            ("answers", "{n}"),
        ),
        _first_rows(
            "Pairs that differ",
            pairs,
            condition,
            ("in", "{of}"),
            ("first", "{first}"),
            ("second", "{second}"),
            ("r", "{r:.2f}"),
            ("p adjusted", "{p_adjusted:.3g}"),
        ),
        _first_rows(
            "Changes between conditions, paired over agents",
            profile.differences,
            ("change", "{factor}: {second} - {first}"),
            ("quantity", lambda row: row["quantity"].replace("_", " ")),
            ("mean", "{mean:.3f}"),
            ("95%", between),
            ("p adjusted", "{p_adjusted:.3g}"),
            ("agents", lambda r: f"{r['n']}" + (f", {m} left out" if (m := r["missing"]) else "")),
            ("size", "{size:.2f}"),
            ("changes most", lambda row: row["most"] or "-"),
            ("least", lambda row: row["least"] or "-"),
        ),
        _first_rows(
            "Who changes most",
            changes,
            ("factor", "{factor}"),
            ("agent", "{agent}"),
            ("change", "{change:.2f}"),
            ("most in", lambda row: row["most"].replace("_", " ")),
            ("least in", lambda row: row["least"].replace("_", " ")),
        ),
    ]


def causal_notes(profile: CausalProfile) -> list[str]:
    """Return what a reader of the tables must know."""
    cells = "domain, sense" if profile.released else "domain, sense, direction"
    notes = [
        "A unit is an agent in a condition: all its answers are fitted and measured together. The "
        "noisy-OR with 3 parameters (one strength) or 4 is told, whichever predicts left-out "
        f"tasks better. Cells ({cells}) weigh the same in explaining away and Markov violation; "
        "those that lack an answer are left out and counted.",
    ]
    if profile.scoring == "pooled":
        notes.append(
            "Questions about C2 are answered by the formula of C1: strengths m1 and m2 that differ "
            "tell that effects and causes are judged differently, not that causes differ."
        )
    else:
        notes.append("The strengths m1 and m2 are those of the causes C1 and C2.")
    if profile.released:
        notes.append(
            "As in Dettki (2025): an agent that is several subjects has the mean of each domain, "
            "sense and task, whichever cause was asked about, in place of single answers; what is "
            "said of answers by task, and how many there are, is of single ones."
        )
    notes.append(
        "Consistency falls with noise as well as with inconsistency, and rises with the number of "
        "answers: compare it between units that answered as many questions."
    )
    if len(profile.alignment):
        notes.append(
            "An item of the alignment is a single answer, set against the reference mean of its "
            "domain, sense and task."
            if profile.released
            else "An item of the alignment is a question; repeated answers to it are averaged."
        )
    if len(profile.omnibus):
        notes.append(
            "Differences: Kruskal-Wallis over all answers, as published; p adjusted by Benjamini "
            "and Hochberg over the tests of the same kind and condition. It takes the spread "
            "between tasks for noise, and so rejects too seldom where tasks are far apart; the "
            "matched test compares the same questions (Friedman; of two groups Wilcoxon). Pairs "
            "are adjusted among those of the same agent or domain."
        )
    agents = profile.units[profile.agent].nunique()
    if len(profile.omnibus) and agents > MOST_PAIRED:
        notes.append(f"Pairs were compared only in conditions of up to {MOST_PAIRED} agents.")
    if len(profile.differences):
        notes.append(
            "Changes: p adjusted by Benjamini and Hochberg over all rows. Size: mean absolute "
            "difference in standard deviations of the quantity over all units, so that quantities "
            "can be compared."
        )
    return notes


def _answers(axis: Axes, rows: pd.DataFrame, look: draw.Style, shift: float) -> Any:
    """Draw one unit in one panel and return the line of its answers."""
    colour, marker, _ = look
    x = np.arange(len(rows)) + shift
    mean, low, high = (100.0 * rows[name].to_numpy(dtype=float) for name in ("mean", "low", "high"))
    axis.vlines(x, low, high, color=colour, linewidth=1.2)
    axis.plot(x, 100.0 * rows["fitted"].to_numpy(dtype=float), "--", color=colour, linewidth=1.2)
    (line,) = axis.plot(x, mean, color=colour, marker=marker, markersize=4.5, linewidth=1.2)
    return line


def _frame_panel(
    axis: Axes, tasks: Sequence[str], profile: CausalProfile, *, last: bool, first: bool
) -> None:
    told = dict(zip(profile.tasks["task"], profile.tasks["question"], strict=True))
    labels = list(tasks)
    if last:
        given = (told[task].partition("| ")[2].rstrip(")") for task in tasks)
        labels = [f"{task}\n" + g.replace(", ", "\n") for task, g in zip(tasks, given, strict=True)]
    axis.set_xticks(range(len(tasks)), labels)
    axis.set_xlim(-0.4, len(tasks) - 0.6)
    axis.set_ylim(-3, 103)
    axis.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100"] if first else [""] * 5)
    axis.grid(axis="y", color="#e5e5e5", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=draw.SMALL)


def _reference_lines(axis: Axes, quantity: str) -> None:
    if quantity == "markov_violation":
        axis.axhspan(-COMPLIANT, COMPLIANT, color="#dddddd", zorder=0, linewidth=0)
    elif quantity in _NULLS:
        draw.limit(axis, 0.0, "-")


def _labels(profile: CausalProfile) -> list[str]:
    return list(dict.fromkeys(_condition(profile, r) for r in profile.units.to_dict("records")))


def _condition(profile: CausalProfile, row: dict[Any, Any]) -> str:
    """Name the condition of a unit."""
    return ", ".join(str(row[name]).replace("_", " ") for name in profile.conditions) or "answers"


def _first_rows(title: str, rows: pd.DataFrame, *columns: Column) -> Table:
    """Return the table of the first rows of many."""
    more = f" (the first {MOST_ROWS} of {len(rows):,})" if len(rows) > MOST_ROWS else ""
    return table(f"{title}{more}", rows.head(MOST_ROWS), *columns)


def _numbers(*names: str) -> list[Column]:
    return [(name, f"{{{name}:.3f}}") for name in names]
