"""The text of a step agent: a definition as plain Python, one number after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import expressions as ex
from .answers import NOISE
from .expressions import ACTION, DATA, PARAMETER, STATE, Expr
from .printing import Printer, bare, block, local
from .program import Kind, Outcome, Program
from .tracing import merged

BY_NAME = {"exp": "exp_or_inf", "log": "log_or_nan", "sqrt": "root_or_nan", "over": "over"}

# Both arms of a selection are reckoned: what Python refuses is infinite or no number, as in NumPy.
HELPERS = """\
def exp_or_inf(x):
    return exp(x) if x < 709.0 else (np.inf if x >= 709.0 else x)


def log_or_nan(x):
    return log(x) if x > 0.0 else (-np.inf if x == 0.0 else np.nan)


def root_or_nan(x):
    return sqrt(x) if x >= 0.0 else np.nan


def over(x):
    return 1.0 / x if x else np.inf
"""


def stepping(program: Program) -> list[str]:
    """Return the lines of the functions of a step agent.

    ``begin(theta) -> state`` (and with the first trial, where a sequence begins by what is the same
    in all of it), ``respond(theta, state, trial)`` with the numbers of which an answer
    is made, ``update(theta, state, trial, action, reward)``, which changes the state; where numbers
    are given also ``quantile(theta, state, trial, action, noise)``, and where they are given with
    an action, ``report(theta, state, trial, action)`` with what they are made of.
    """
    kinds = program.kinds

    def function(head: str, bodies: list[list[str]]) -> list[str]:
        return ["", "", *_function(program, head, bodies)]

    lines = HELPERS.splitlines()
    head = "begin(theta, trial)" if program.begun_by else "begin(theta)"
    lines += function(head, [_begin(program)])
    answers = [_returned(program, kind.outcome.parts.values()) for kind in kinds]
    lines += function("respond(theta, state, trial)", answers)
    reports = [kind.report for kind in kinds if kind.report is not None]
    if reports:
        told = [_returned(program, report.parts.values()) for report in reports]
        lines += function("report(theta, state, trial, action)", told)
    numbers = [kind.number for kind in kinds if kind.number is not None]
    if numbers:
        drawn = [_returned(program, [_quantile(number)], one=True) for number in numbers]
        lines += function("quantile(theta, state, trial, action, noise)", drawn)
    changes = [_update(program, kind) for kind in kinds]
    return lines + function("update(theta, state, trial, action, reward_t)", changes)


def _function(program: Program, head: str, bodies: list[list[str]]) -> list[str]:
    if head.startswith("begin") or program.kind_column is None:
        return block(f"def {head}:", bodies[0])
    lines = []
    for kind, body in zip(program.kinds, bodies, strict=True):
        lines += block(f'if trial["{program.kind_column}"] == {kind.value}:', body or ["return"])
    return block(f"def {head}:", lines)


def _quantile(outcome: Outcome) -> Expr:
    return merged(lambda: {"": outcome.as_law.at(NOISE)})[""]


def _names(program: Program, roots: Iterable[Expr]) -> tuple[list[str], dict[Expr, str]]:
    """Return statements that read what the roots need, and the names it then has."""
    names = {ACTION: "action", ex.symbol("reward", DATA): "reward_t", NOISE: "noise"}
    places = list(program.start)
    lines = []
    for x in sorted(ex.within(roots), key=lambda x: x.number):
        if x.op != "symbol" or x in names:
            continue
        if x.on == PARAMETER:
            names[x], at = local(x.value), f"theta[{program.parameters.index(x.value)}]"
        elif x.on == STATE:
            names[x], at = local(x.value), f"state[{places.index(x.value)}]"
        else:
            names[x], at = f"{x.value}_t", f'trial["{x.value}"]'
        lines.append(f"{names[x]} = {at}")
    return lines, names


def _written(program: Program, roots: list[Expr]) -> tuple[list[str], list[str]]:
    """Return statements and the texts of the roots."""
    lines, names = _names(program, roots)
    printer = Printer(names, BY_NAME)
    texts = printer.write(roots)
    return lines + printer.taken(), texts


def _returned(program: Program, values: Iterable[Expr], one: bool = False) -> list[str]:
    lines, texts = _written(program, list(values))
    return [*lines, f"return {bare(texts[0])}" if one else f"return ({', '.join(texts)},)"]


def _begin(program: Program) -> list[str]:
    lines, texts = _written(program, list(program.start.values()))
    return [*lines, f"return [{', '.join(texts)}]"]


def _update(program: Program, kind: Kind) -> list[str]:
    changed: Mapping[str, Expr] = {
        name: x for name, x in kind.after.items() if x is not ex.symbol(name, STATE)
    }
    lines, texts = _written(program, list(changed.values()))
    places = list(program.start)
    stores = [
        f"state[{places.index(name)}] = {bare(text)}"
        for name, text in zip(changed, texts, strict=True)
    ]
    return [*lines, *stores] or ["return"]
