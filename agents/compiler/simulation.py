"""The text of a simulation: sessions are played in lanes, answer by answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import expressions as ex
from .answers import choice_of, drawn_number
from .expressions import ACTION, RESPONSE, SCALAR, STATE, Expr
from .likelihood import JIT, in_lanes
from .passes import before, guarded, has, spared
from .printing import Printer, Rows, bare, block
from .program import Kind, Program
from .slopes import lowered

PREFIX = "S_"


def simulation(program: Program) -> list[str]:
    """Return the lines of the function and of its constants.

    ``simulate(theta, lapse, n_actions, row, start, uniforms, *design) -> given``; where numbers
    are given their normal noise stands after the uniforms, and where they are given with actions,
    ``given, told`` comes back.
    """
    rows = Rows(PREFIX, program.parameters)
    rows("lapse")
    number = program.given != "action"
    bodies = [_trial(program, kind, rows) for kind in program.kinds]
    inputs = [f"{name}_" for name in (*(["noise"] if number else []), *program.design)]
    fill = [
        f"{rows(f'{name}_all')} = {name}_[start[block], i] if trials else 0.0"
        for name in program.begun_by
    ]
    blocks = ["trials = start[block + 1] > start[block]"] if fill else []
    fill += rows.begin({**program.start, **program.world_start})
    fill += block("if lapse is not None:", [f"{rows('lapse')} = lapse[q]"])
    blank = block("for i in range(LANES):", ["given[t, i] = -1.0"]) if len(bodies) > 1 else []
    trials = block(
        "for t in range(start[block], start[block + 1]):", [*blank, *in_lanes(program, bodies)]
    )
    told = ["told = np.empty((start[-1], LANES))"] if program.given == "both" else []
    body = [
        '"""Play the sequences."""',
        "given = np.empty((start[-1], LANES))",
        *told,
        f"z = np.empty({PREFIX}ROWS * LANES)",
        *block(
            "for block in range(len(row)):",
            [*blocks, "z[:] = 0.0", *block("for i in range(LANES):", fill), *trials],
        ),
        "return given, told" if told else "return given",
    ]
    arguments = ", ".join(["theta, lapse, n_actions, row, start, uniforms", *inputs])
    return [*rows.constants(), "", "", JIT, *block(f"def simulate({arguments}):", body)]


def _tables(program: Program) -> dict[str, str]:
    """Return the text of each number that the design holds for a trial."""
    read = {"noise": "noise_[t, i]", "uniform": "uniforms[t, 1, i]"}
    for name in program.design:
        shape = program.arrays.get(name)
        if shape is None:
            read[name] = f"{name}_[t, i]"
            continue
        for k, place in enumerate(np.ndindex(shape)):
            read[f"{name}_{k}"] = f"{name}_[t, {', '.join(map(str, place))}, i]"
    return read


def _trial(program: Program, kind: Kind, rows: Rows) -> list[str]:
    """Return the statements of a trial of this kind, in all lanes."""
    choice = None if program.law else choice_of(kind.shown, program.actions, drawn=True)
    law = kind.shown if program.law else kind.reported
    known: dict[Expr, Expr] = {}
    falls = kind.present is not ex.TRUE
    present = [ex.select(kind.present, ex.ONE, ex.ZERO)] if falls else []
    heads = [lowered(x, known) for x in (*(choice.heads if choice else ()), *present)]
    numbers = [lowered(x, known) for x in drawn_number(law)] if law else []
    played = {s: x for s, x in kind.played.items() if x is not ex.symbol(s, STATE)}
    after = {s: lowered(x, known) for s, x in played.items()}
    later = [*numbers, *after.values()]
    rows.hold([*heads, *later])
    passes = _rare(program, kind, rows, [*heads, *later])
    loads, names = rows.loads([*heads, *later], _tables(program), {ACTION: "action"})
    printer = Printer(names)
    texts = printer.write(heads, later)
    lines = [*loads, *printer.taken()]
    if falls:
        lines.append(f"present = {bare(texts.pop())}")
    lines.append(f"share = {rows('lapse')}")
    lines.append(f"u = uniforms[t, {'0, ' if law else ''}i]")
    lines += ["lapses = u < share"] if law else []
    if choice:
        lines += choice.draw(texts, joint=law is not None)
    if "second = not first" in lines:  # which spares two comparisons
        printer.names |= {ex.equal(ACTION, 0): "first", ex.equal(ACTION, 1): "second"}
    kept = f"{program.kind_column}_[t, i] == {kind.value}.0" if program.kind_column else ""
    lines += [f"kept = {kept}"] if kept else []
    rare = rare_number(numbers[0]) if law else None
    if rare:
        texts = printer.write([rare.usual, numbers[1], *rare.holds], after.values())
        lines += [*printer.taken(), *_number(texts)]
    outputs = {"given": "response" if program.law else "action"}
    outputs |= {"told": "response"} if program.given == "both" else {}
    for output, what in outputs.items():
        if falls:
            lines.append(f"{what}_or_none = pick(present > 0.0, {what}, -1.0)")
            what += "_or_none"
        told = f"pick(kept, {what}, {output}[t, i])" if kept else what
        lines.append(f"{output}[t, i] = {told}")
    if rare and rare.holds:
        return passes + _in_passes(program, rows, lines, (texts[2], numbers[0]), after, kept)
    changed = _changed(rows, printer, names, after, kept)
    return passes + block("for i in range(LANES):", lines + changed)


def _rare(program: Program, kind: Kind, rows: Rows, roots: list[Expr]) -> list[str]:
    """Return passes for what stands under conditions on tables alone, and waits for no answer."""
    there = f"{program.kind_column}_[t, i] == {kind.value}.0" if program.kind_column else "True"
    lines: list[str] = []
    kept: dict[Expr, tuple[str, str]] = {}
    for holds, own in spared(roots, rows.held, lambda x: not _waits(x)):
        named = {x: f"rare_{len(kept) + k}" for k, x in enumerate(own)}
        given = [f"any_given = 1.0 if {there} else 0.0"]
        lines += before(holds, named, rows, _tables(program), given, "any_given")
        kept |= {x: (name, rows(name)) for x, name in named.items()}
    rows.kept |= kept
    return lines


def _waits(x: Expr) -> bool:
    """Say whether an expression hangs on the answer."""
    return any(y is ACTION or y is RESPONSE for y in ex.within([x]))


def _number(texts: list[str]) -> list[str]:
    """Return the statements that give a response, from the texts of one that is meant and any."""
    return [
        f"response = {bare(texts[0])}",
        f"any_number = {bare(texts[1])}",
        "response = pick(lapses, any_number, response)",
    ]


def _changed(
    rows: Rows, printer: Printer, names: dict[Expr, str], after: dict[str, Expr], kept: str
) -> list[str]:
    """Return the statements that change what is remembered."""
    texts = printer.write(list(after.values()))
    lines = printer.taken()
    for (name, _), text in zip(after.items(), texts, strict=True):
        if kept:
            before = names.get(ex.symbol(name, STATE), rows(name))
            lines.append(f"new_{name} = {bare(text)}")
            lines.append(f"{rows(name)} = pick(kept, new_{name}, {before})")
        else:
            lines.append(f"{rows(name)} = {bare(text)}")
    return lines


@dataclass(frozen=True)
class Rare:
    """A number without what few trials need, and where they do: no condition, or one."""

    usual: Expr
    holds: list[Expr]


def rare_number(number: Expr) -> Rare:
    """Take out of a number the arms of selections that have to be reckoned lane by lane."""
    arms = guarded([number], (), SCALAR)
    usual = ex.substituted(number, {x: ex.ZERO for found in arms.values() for x in found})
    if not arms or has(usual, SCALAR):
        return Rare(number, [])
    none = ex.TRUE
    for holds in arms:
        none = ex.both(none, ex.negation(holds))
    return Rare(usual, [ex.negation(none)])


def _in_passes(
    program: Program, rows: Rows, lines: list[str], rare: tuple[str, Expr], after: dict[str, Expr],
    kept: str,
) -> list[str]:  # fmt: skip
    """Return a loop that answers, one for the numbers that are rare, and one that goes on."""
    text, number = rare
    flag = rows("rare")
    there = [f"there = ({bare(text)}) & (u >= share)", *(["there = there & kept"] if kept else [])]
    answering = [*lines, *there, f"{flag} = pick(there, 1.0, 0.0)", "rare += 1 if there else 0"]
    output = "given" if program.law else "told"
    action = [] if program.law else ["action = given[t, i]"]
    given = {ACTION: "action"}
    loads, names = rows.loads([number], _tables(program), given)
    printer = Printer(names)
    (own,) = printer.write([number])
    alone = [*action, *loads, *printer.taken(), f"{output}[t, i] = {bare(own)}"]
    loads, names = rows.loads(list(after.values()), _tables(program), given)
    changes = _changed(rows, Printer(names), names, after, kept)
    held = [f"kept = {kept}"] if kept else []
    each = "for i in range(LANES):"
    return [
        "rare = 0",
        *block(each, answering),
        *block("if rare > 0:", block(each, block(f"if {flag} > 0.0:", alone))),
        *(block(each, [*held, *action, *loads, *changes]) if changes else []),
    ]
