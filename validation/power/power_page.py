"""The pages of power studies and of searches for the smallest design: words, tables, figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from matplotlib.ticker import MaxNLocator

from knownminds.agents import AGENTS
from knownminds.validation.engine.monte_carlo import Score, share
from knownminds.validation.engine.study import Cell, Study
from knownminds.validation.pages import figures as draw
from knownminds.validation.pages.page import (
    ERRORS,
    Column,
    Finding,
    Page,
    Table,
    about_experiment,
    about_time,
    counted,
    listed,
    numbers,
    table,
    tone,
)

from .aims import LEVEL, Aim
from .power_study import (
    Power,
    about_design,
    about_losses,
    about_reading,
    about_unit,
    about_units,
    can_be_read,
    dollars_told,
    size_of_design,
)
from .questions import PILOT
from .smallest_design import MASS, SmallestDesign, about_answer, size_of

USUAL = 0.8  # the power that designs are mostly asked for, where the study names none
COMPARISONS = {
    "one": "against its null value",
    "between": "between two groups",
    "paired": "between two conditions of the same subjects",
}
CHARACTERISTICS = (
    "wrong sign",
    "exaggeration",
    "95% width",
    "bias",
    "95% covers",
    "failed",
    "left out",
)
LOST = "Data sets that failed count as misses."
MEANING = (
    "Wrong sign and exaggeration (mean estimated size over true size) are those of the data sets "
    f"that reject at {LEVEL:.0%} (Gelman and Carlin 2014). Data sets that failed count as misses."
)


def power_page(power: Power) -> Page:
    """Return the page of a power study."""
    study, cell = power.study, power.study.cells[0]
    name, priced = power.name, "dollars" in cell.options
    sizes = [size_of_design(design) for design in power.designs]
    subjects, sessions, trials = (numbers(values) for values in zip(*sizes, strict=True))
    step = cell.law.get("part_of_search")
    part = [f"One step ({step}) of a search for the smallest design; the command is that of all."]
    return Page(
        title=_title(study.question, power.aim),
        asked=[
            *_asked(study.question, study.cells),
            ("subjects" + _per(power.comparison, "group"), subjects),
            ("sessions per subject" + _per(power.comparison, "condition"), sessions),
            ("trials per session", trials),
            ("data sets", f"{study.replicates:,} per design"),
            ("seed", str(study.seed)),
            about_time(power.seconds),
        ],
        findings=_unread(power),
        sentences=[
            *(part if step else []),
            *_best(power, name),
            *about_design(cell),
            *about_units(power.designs),
            *about_losses(power.designs),
        ],
        notes=[f"{ERRORS} {MEANING if power.aim.tests else LOST}"],
        tables=[
            table(
                "Designs",
                [(size_of_design(design), design) for design in power.designs],
                *((size, f"{{0[{k}]}}") for k, size in enumerate(draw.SIZES)),
                *_characteristics(power.aim, name),
                *([("dollars", lambda row: dollars_told(row[1]))] if priced else []),
            )
        ],
        figures=[
            (
                f"Share of data sets that reject ({name}), mean width of the 95% intervals, and "
                "exaggeration of the effects that are found, with 2 standard errors. Dashed: "
                f"{USUAL:.0%}, and no exaggeration."
                if power.aim.tests
                else f"{name.capitalize()} and mean width of the 95% intervals, with 2 standard "
                f"errors. Dashed: {USUAL:.0%}.",
                power_curves(power),
            )
        ]
        if len(power.designs) > 1
        else [],
        command=study.command_line(),
        versions=power.versions,
    )


def smallest_design_page(found: SmallestDesign) -> Page:
    """Return the page of a search for the smallest design."""
    question, first = found.question, found.steps[0]
    word = "confirmed" if found.confirmed else "not confirmed"
    answer = Finding("The answer is", word, about_answer(found), tone(word))
    if found.size is None:
        name = f"No number of {found.find} up to {found.most:,}"
        answer = Finding(name, f"reaches {found.target:.0%} {found.name}", found.message, "bad")
    tried = [*found.steps, *([found.design] if found.design else [])]
    others = [name for name in draw.SIZES if name != found.find]
    return Page(
        title=_title(question, Aim.of(first.cell.options), found.find),
        asked=[
            *_asked(question, [first.cell]),
            ("wanted", f"the smallest number of {found.find} with {found.target:.0%} {found.name}"),
            ("considered", f"up to {found.most:,} {found.find}"),
            *((name, str(size_of(first, name))) for name in others),
            (
                "data sets",
                f"{first.attempted} per step, {question['replicates']:,} to confirm",
            ),
            ("seed", str(question["seed"])),
            about_time(found.seconds),
        ],
        findings=[answer],
        sentences=[
            *(
                [about_reading(found.design)]
                if found.design and not can_be_read(found.design)
                else []
            ),
            *about_design(first.cell),
            about_unit(first),
            *about_losses(tried),
        ],
        notes=[
            f"Confirmed: the {found.name} of the fresh run reaches {found.target:.0%} within two "
            f"of its Monte-Carlo errors. In the search {found.name} is taken to rise as "
            "Phi(a + b sqrt(size)).",
            f"{ERRORS} {MEANING if Aim.of(first.cell.options).tests else LOST}",
        ],
        tables=[_tried(found)],
        figures=[
            (
                f"Left: {found.name} of the designs that were tried, those of one size taken "
                "together (circles), and of the fresh run (square), with 2 standard errors; "
                "dashed, the target. Right: the way of the search. Shaded: the "
                f"{MASS:.0%} interval of the answer.",
                search_path(found),
            )
        ],
        command=Study("power", (first.cell,), question=question).command_line(),
        versions=found.versions,
    )


def _title(question: Mapping[str, Any], aim: Aim, find: str = "") -> str:
    effect = _effect(question)
    if aim.width is not None:
        return (
            f"How many {find} make the 95% interval of {effect} narrower than {aim.width:g}?"
            if find
            else f"How often is the 95% interval of {effect} narrower than {aim.width:g}?"
        )
    if aim.rope is not None:
        return (
            f"How many {find} show {effect} to lie within {aim.rope:g} of the null value?"
            if find
            else f"How often is shown {effect} to lie within {aim.rope:g} of the null value?"
        )
    return f"How many {find} detect {effect}?" if find else f"How often is {effect} detected?"


def _effect(question: Mapping[str, Any]) -> str:
    effect = " and ".join(
        f"the pilot's {name}" if size == PILOT else f"{name} = {size:g}"
        for name, size in question["effect"].items()
    )
    return effect if question["comparison"] == "one" else f"a difference of {effect}"


def _asked(question: Mapping[str, Any], cells: Sequence[Cell]) -> list[tuple[str, str]]:
    cell = cells[0]
    names = AGENTS[cell.model].parameters.names
    held = {name: value for name, value in question["set"].items() if name in names}
    spread = "none: all sessions are those of one mind"
    if any(cell.subjects > 1 for cell in cells):
        given = listed(question["spread"])
        spread = "the model's group_sd" + (f", but {given}" if given else "")
    means = f"those of the priors{', but ' + listed(held) if held else ''}"
    if question.get("from"):
        means = spread = f"drawn from {question['from']}"
    sd = question["effect_sd"]
    return [
        *about_experiment(cell),
        ("model", cell.model),
        ("effect", _effect(question) + (f", drawn with sd {sd:g}" if sd else "")),
        ("tested", COMPARISONS[question["comparison"]]),
        ("estimator", question["estimator"].replace("_", "-")),
        ("group means", means),
        ("spread between subjects", spread),
    ]


def _per(comparison: str, part: str) -> str:
    within = {"between": "group", "paired": "condition"}
    return f" in each {part}" if within.get(comparison) == part else ""


def _best(power: Power, name: str) -> list[str]:
    """Name the design with the fewest trials that reaches the usual power and can be read."""
    good = [d for d in power.designs if d.rejected.value >= USUAL]
    unread = [about_reading(d) for d in power.designs if not can_be_read(d)]
    if len(power.designs) == 1:
        return [f"The {name} is {power.designs[0].rejected}.", *unread]
    if not good:
        return [f"None of these designs has {USUAL:.0%} {name}.", *unread]
    sound = [d for d in good if can_be_read(d)]
    if not sound:
        return [
            f"Designs with at least {USUAL:.0%} {name}: {len(good)}, but the size of the effect "
            "cannot be read from any of them.",
            *unread,
        ]
    best = min(sound, key=lambda d: (prod(size_of_design(d)), size_of_design(d)))
    sizes = zip(size_of_design(best), draw.SIZES, strict=True)
    told = " x ".join(counted(n, noun.removesuffix("s")) for n, noun in sizes)
    return [
        f"Of the designs with at least {USUAL:.0%} {name} from which the size of the effect can be "
        f"read, {told} has the fewest trials: {best.rejected}.",
        *unread,
    ]


def _unread(power: Power) -> list[Finding]:
    """Say above all else that no design with the usual power tells how large the effect is."""
    good = [d for d in power.designs if d.rejected.value >= USUAL]
    if not good or any(can_be_read(d) for d in good):
        return []
    high = good[0].bias.value > 0
    best = max(good, key=lambda d: d.coverage.value)
    word = "biased high" if high else "biased low"
    return [Finding("The estimate of the effect is", word, about_reading(best), "bad")]


def _characteristics(aim: Aim, name: str) -> list[Column]:
    """Return the columns of the rejections of a design, and of what `CHARACTERISTICS` names."""
    fields = ("rejected", "sign_error", "exaggeration", "width", "bias", "coverage")
    heads = [name, *CHARACTERISTICS]
    cells = [*(f"{{1.{field}}}" for field in fields), "{1.failed:,}", "{1.excluded:,}"]
    found: list[Column] = list(zip(heads, cells, strict=True))
    return found if aim.tests else [found[0], *found[3:]]


def _tried(found: SmallestDesign) -> Table:
    named = [("search", step) for step in found.steps]
    named += [("fresh run", found.design)] if found.design else []
    return table(
        "Designs that were tried, in order",
        named,
        ("part", "{0}"),
        (found.find, lambda row: f"{size_of(row[1], found.find):,}"),
        ("data sets", "{1.attempted:,}"),
        *_characteristics(Aim.of(found.steps[0].cell.options), found.name),
    )


def power_curves(power: Power) -> str:
    """Draw power, width of the intervals, and exaggeration against the size of the design."""
    sizes = [size_of_design(design) for design in power.designs]
    names = {"rejected": power.name, "width": "95% width"}
    if power.aim.tests:
        names["exaggeration"] = "exaggeration"
    figure, axes = draw.panels(len(names))
    for axis, (name, told) in zip(axes, names.items(), strict=True):
        scores: list[Score] = [getattr(design, name) for design in power.designs]
        draw.size_curves(axis, sizes, scores)
        draw.entitle(axis, told)
    draw.limit(axes[0], USUAL)
    if power.aim.tests:
        draw.limit(axes[2], 1)
    axes[0].set_ylim(0, 1.02)
    for axis in axes[1:]:
        axis.set_ylim(bottom=0)
    draw.key(figure, axes[0])
    return draw.svg(figure)


def search_path(found: SmallestDesign) -> str:
    """Draw a search: power against size, equal sizes taken together, and size against step."""
    figure, (left, right) = draw.panels(2)
    figure.set_size_inches(7.6, 3.2)
    steps = found.steps
    tried = [size_of(step, found.find) for step in steps]
    together = sorted(set(tried))
    scores = []
    for size in together:
        same = [step for step, its in zip(steps, tried, strict=True) if its == size]
        n = sum(step.attempted for step in same)
        scores.append(share(sum(step.rejected.value * step.attempted for step in same), n))
    search, fresh = draw.styles(2)
    draw.curve(left, together, scores, (*search[:2], "none"), "search")
    draw.line(right, range(1, len(tried) + 1), tried, search)
    sizes = list(together)
    if found.design is not None and found.size is not None:
        look = (*fresh[:2], "none")
        draw.curve(left, [found.size], [found.design.rejected], look, "fresh run", size=7)
        draw.line(right, [len(tried) + 1], [found.size], look, size=7)
        sizes.append(found.size)
    low, high = max(found.low, 1.0), min(found.high, 1.5 * max(sizes))
    if low < high:
        left.axvspan(low, high, color=draw.GREEN, alpha=0.2, linewidth=0, zorder=0)
        right.axhspan(low, high, color=draw.GREEN, alpha=0.2, linewidth=0, zorder=0)
    draw.limit(left, found.target)
    draw.scale(left, sizes, found.size)
    left.set(xlabel=found.find, ylabel=found.name, ylim=(0, 1.02))
    right.set(xlabel="step", ylabel=found.find, yscale="log")
    ticks = draw.spaced(sizes, found.size, log=True)
    right.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    right.minorticks_off()
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    draw.key(figure, left)
    return draw.svg(figure)
