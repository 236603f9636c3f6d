"""The page of a search for the best design: words, tables and figures."""

from __future__ import annotations

from math import isfinite
from typing import Any

from knownminds.agents import AGENTS
from knownminds.validation.engine.monte_carlo import Score
from knownminds.validation.engine.study import Study
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    ERRORS,
    Finding,
    Page,
    Table,
    about_experiment,
    about_time,
    listed,
    shown,
    table,
)

from .best_design import BestDesign, Gain, Tried, about_answer, money, settings_told
from .candidates import PUBLISHED, SHIPPED
from .goals import MORE_IS_BETTER

TOLD = {
    "parameters": "the smallest expected posterior spread of {}",
    "models": "the largest chance of telling {} apart",
    "effect": "the largest power for {}",
}
MEANING = {
    "parameters": (
        "Spread: the posterior standard deviation on the unconstrained scale, in standard "
        "deviations of the prior, mean over the named parameters and over minds. Bits: "
        "the expected information about them (mutual information with the data), by nested Monte "
        "Carlo: both integrals by importance sampling around each data set's mode."
    ),
    "models": (
        "Chance: how often the most probable model, given the data, is the true one, each being "
        "equally probable beforehand. Bits: the expected information about which one it is."
    ),
    "effect": "Power: the share of data sets whose test rejects at 5%.",
}
NAMES = {SHIPPED: "the shipped design", PUBLISHED: "the paper's design"}


def design_page(found: BestDesign) -> Page:
    """Return the page of a search."""
    question, kind = found.question, found.goal.kind
    rounds = "; ".join(f"{n} designs, {k} data sets each" for n, k in found.rounds)
    model = question["model"] if kind != "models" else list(found.goal.names)
    return Page(
        title=f"Which design serves best for {found.goal}?",
        asked=[
            *about_experiment(found.cell),
            ("model", ", ".join(model) if isinstance(model, list) else str(model)),
            ("wanted", TOLD[kind].format(found.goal)),
            *([("minds", f"drawn from {question['from']}")] if question.get("from") else []),
            ("budget", money(found.budget, found.unit)),
            *([("prices", _prices(question))] if found.unit == "dollars" else []),
            ("search", rounds),
            ("fresh run", f"{question['fresh']:,} data sets for each design and cost"),
            ("seed", str(question["seed"])),
            about_time(found.seconds),
        ],
        findings=_findings(found),
        sentences=about_answer(found),
        notes=[f"{ERRORS} {MEANING[kind]}", *_notes(found)],
        tables=[_fresh(found), *_recovery(found), _ranked(found)],
        figures=[(_caption(found), frontier(found))],
        command=Study("design", (found.cell,), question=question).command_line(),
        versions=found.versions,
    )


def _findings(found: BestDesign) -> list[Finding]:
    """Say of each design that the best one is held against whether it is better."""
    return [_finding(found, gain) for gain in found.gains]


def _finding(found: BestDesign, gain: Gain) -> Finding:
    sign = 1.0 if MORE_IS_BETTER[found.goal.kind] else -1.0
    low, high = sorted(sign * end for end in gain.interval)
    word, tone = "no clear gain", "fair"
    if low > 0:
        word, tone = "confirmed", "good"
    elif high < 0:
        word, tone = "not confirmed", "bad"
    told = (
        f"In the fresh run its {found.judged_by} is {gain.score.value:+.3f} (95% interval "
        f"{gain.interval[0]:+.3f} to {gain.interval[1]:+.3f})."
    )
    return Finding(f"The gain over {NAMES[gain.over]} is", word, told, tone)


def _prices(question: Any) -> str:
    if question.get("run"):
        return f"by what the run in {question['run']} took"
    told = {"date": question["date"], "tokens of thought": question["reasoning"]}
    return f"{question['llm']}; {listed(told)}".removesuffix("; ")


def _notes(found: BestDesign) -> list[str]:
    """Say how the search went, and what data sets failed."""
    notes = [
        "All designs of a round have the same minds and random numbers. After each round but the "
        "last the worse half is left out; the shipped design and the paper's stay. The fresh run "
        "has numbers of its own, and does not enter the search."
    ]
    failed = sum(one.measured.failed for one in (*found.tried, *found.fresh))
    if failed:
        notes.append(f"{failed:,} data sets could not be judged and are left out of the means.")
    if found.goal.kind == "parameters" and not found.question.get("from"):
        notes.append(f"The same by recovery: {found.recovery_command(found.winner)}")
    return notes


def _columns(found: BestDesign) -> list[Any]:
    return [
        ("subjects", lambda row: f"{row.subjects:,}"),
        ("sessions", lambda row: f"{row.sessions:,}"),
        ("trials", lambda row: f"{row.trials:,}"),
        ("cost", lambda row: money(row.cost, found.unit)),
        ("data sets", lambda row: f"{row.measured.attempted:,}"),
        (found.judged_by, lambda row: shown(row.score)),
        ("bits", lambda row: shown(row.information)),
        ("settings", lambda row: settings_told(found.differences(row))),
    ]


def _fresh(found: BestDesign) -> Table:
    name = ("design", lambda row: found.role_told(row))
    return table("Fresh run", found.fresh, name, *_columns(found))


def _ranked(found: BestDesign) -> Table:
    name = ("design", lambda row: found.role_told(row))
    return table("The best of the search", found.ranked[:20], name, *_columns(found))


def _recovery(found: BestDesign) -> list[Table]:
    """Say of each parameter how it was recovered in the fresh run, at the whole budget."""
    if found.goal.kind != "parameters":
        return []
    designs = {id(d): d for d in (found.confirmed, *_others(found))}
    rows = [
        (found.role_told(design), name, design.measured)
        for design in designs.values()
        for name in AGENTS[found.cell.model].parameters.names
    ]
    return [
        table(
            "Recovery in the fresh run",
            rows,
            ("design", "{0}"),
            ("parameter", "{1}"),
            ("posterior spread", lambda row: shown(row[2][f"spread_{row[1]}"])),
            ("RMSE", lambda row: shown(_root(row[2][f"squared_error_{row[1]}"]))),
            ("90% covers", lambda row: shown(row[2][f"covered_{row[1]}"])),
        )
    ]


def _others(found: BestDesign) -> list[Tried]:
    """Return the designs of the fresh run at the whole budget, but for the best."""
    roles = [found.of_role(gain.over) for gain in found.gains]
    return [found.fresh_of(design)[-1] for design in roles if design is not None]


def _root(square: Score) -> Score:
    """Return the root of a mean square, by the delta method."""
    root = square.value**0.5
    return Score(root, square.error / (2 * root) if root > 0 else 0.0)


def _caption(found: BestDesign) -> str:
    panels = "Right: the expected information. " if found.goal.kind != "effect" else ""
    left = "Left: " if panels else ""
    return (
        f"{left}{found.judged_by.capitalize()} against cost: designs of the search (dots) and, "
        f"joined, those of the fresh run, with 2 standard errors. {panels}".strip()
    )


def frontier(found: BestDesign) -> str:
    """Draw score and information against cost: all designs, and the fresh run's with errors."""
    names = ["score"] + (["information"] if found.goal.kind != "effect" else [])
    figure, axes = draw.panels(len(names))
    figure.set_size_inches(3.8 * len(names), 3.2)
    designs = [found.winner, *(d for g in found.gains if (d := found.of_role(g.over)))]
    for axis, name in zip(axes, names, strict=True):
        pairs = [(d.cost, d.measured[name].value) for d in found.tried]
        kept = [pair for pair in pairs if isfinite(pair[1])]
        costs, values = ([pair[end] for pair in kept] for end in (0, 1))
        draw.line(axis, costs, values, (draw.GREY, ".", "none"), "searched", 3)
        for design, style in zip(designs, draw.styles(len(designs)), strict=True):
            fresh = found.fresh_of(design)
            scores = [one.measured[name] for one in fresh]
            label = {"best": "best", "shipped": "shipped", "the paper's": "the paper's"}
            told = label[found.role_told(design)]
            draw.curve(axis, [one.cost for one in fresh], scores, style, told)
        axis.set_xscale("log")
        if found.unit == "dollars":
            draw.dollars(axis)
            axis.set_xlabel("dollars")
        else:
            draw.scale(axis, [one.cost for one in found.fresh])
            axis.set_xlabel("trials")
        axis.set_ylabel(found.judged_by if name == "score" else "bits")
    draw.key(figure, axes[0])
    return draw.svg(figure)
