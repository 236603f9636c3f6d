"""The text of a simulation: sessions are played in lanes, answer by answer."""

from __future__ import annotations

import numpy as np

from . import expressions as ex
from .answers import form_of
from .expressions import ACTION, STATE, Expr
from .likelihood import JIT, in_lanes
from .printing import Printer, Rows, bare, block
from .program import Kind, Program
from .slopes import lowered

PREFIX = "S_"


def simulation(program: Program) -> list[str]:
    """Return the lines of the function and of its constants.

    ``simulate(theta, lapse, n_actions, row, start, uniforms, *design) -> given``; where numbers
    are given their normal noise stands after the uniforms.
    """
    rows = Rows(PREFIX, program.parameters)
    rows("lapse")
    bodies = [_trial(program, kind, rows) for kind in program.kinds]
    inputs = [f"{name}_" for name in (*(["noise"] if program.law else []), *program.design)]
    fill = rows.begin({**program.start, **program.world_start})
    fill += block("if lapse is not None:", [f"{rows('lapse')} = lapse[q]"])
    blank = block("for i in range(LANES):", ["given[t, i] = -1.0"]) if len(bodies) > 1 else []
    trials = block(
        "for t in range(start[block], start[block + 1]):", [*blank, *in_lanes(program, bodies)]
    )
    body = [
        '"""Play the sequences."""',
        "given = np.empty((start[-1], LANES))",
        f"z = np.empty({PREFIX}ROWS * LANES)",
        *block(
            "for block in range(len(row)):",
            ["z[:] = 0.0", *block("for i in range(LANES):", fill), *trials],
        ),
        "return given",
    ]
    arguments = ", ".join(["theta, lapse, n_actions, row, start, uniforms", *inputs])
    return [*rows.constants(), "", "", JIT, *block(f"def simulate({arguments}):", body)]


def _tables(program: Program) -> dict[str, str]:
    """Return the text of each number that the design holds for a trial."""
    read = {"noise": "noise_[t, i]"}
    for name in program.design:
        shape = program.arrays.get(name)
        if shape is None:
            read[name] = f"{name}_[t, i]"
            continue
        for k, place in enumerate(np.ndindex(shape)):
            read[f"{name}_{k}"] = f"{name}_[t, {', '.join(map(str, place))}, i]"
    return read


def _trial(program: Program, kind: Kind, rows: Rows) -> list[str]:
    """Return the statements of one lane on one trial of this kind."""
    form = form_of(kind.shown, program.actions, drawn=True)
    known: dict[Expr, Expr] = {}
    falls = kind.present is not ex.TRUE
    present = [ex.select(kind.present, ex.ONE, ex.ZERO)] if falls else []
    heads = [lowered(x, known) for x in (*form.heads, *present)]
    played = {s: x for s, x in kind.played.items() if x is not ex.symbol(s, STATE)}
    after = {s: lowered(x, known) for s, x in played.items()}
    rows.hold([*heads, *after.values()])
    answer = {} if program.law else {ACTION: "action"}
    loads, names = rows.loads([*heads, *after.values()], _tables(program), answer)
    printer = Printer(names)
    texts = printer.write(heads, after.values())
    lines = [*loads, *printer.taken()]
    if falls:
        lines.append(f"present = {bare(texts.pop())}")
    lines += [f"share = {rows('lapse')}", *form.draw(texts)]
    if "second = not first" in lines:  # which spares two comparisons
        printer.names |= {ex.equal(ACTION, 0): "first", ex.equal(ACTION, 1): "second"}
    kept = f"{program.kind_column}_[t, i] == {kind.value}.0" if program.kind_column else ""
    lines += [f"kept = {kept}"] if kept else []
    texts = printer.write(list(after.values()))
    lines += printer.taken()
    what = "response" if program.law else "action"
    if falls:
        lines.append(f"{what}_or_none = {what} if present > 0.0 else -1.0")
        what += "_or_none"
    lines.append(f"given[t, i] = {what}{' if kept else given[t, i]' if kept else ''}")
    for (name, _), text in zip(after.items(), texts, strict=True):
        if kept:
            before = names.get(ex.symbol(name, STATE), rows(name))
            lines.append(f"new_{name} = {bare(text)}")
            lines.append(f"{rows(name)} = new_{name} if kept else {before}")
        else:
            lines.append(f"{rows(name)} = {bare(text)}")
    return lines
