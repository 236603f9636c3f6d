"""Work that few trials need: done in passes of its own, entered if any lane has such a trial."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from . import expressions as ex
from .expressions import ACTION, DATA, SCALAR, SEQUENCE, Expr
from .printing import Printer, Rows, bare, block

WORTH_IT = ("exp", "log", *SCALAR)
ALONE = DATA | SEQUENCE
MOST = (
    4  # passes of a kernel; of more, hardly a trial is spared any, and each is two loops to compile
)


def guarded(
    roots: Iterable[Expr], known: Collection[Expr], ops: Collection[str]
) -> dict[Expr, list[Expr]]:
    """Find the least arms of selections in which such operations stand, by the arm's condition.

    Those are left out that are needed elsewhere too; what is `known` is not looked into.
    """
    arms: dict[tuple[Expr, Expr], None] = {}
    seen: dict[Expr, None] = {}
    stack = list(roots)
    while stack:
        x = stack.pop()
        if x in seen or x in known:
            continue
        seen[x] = None
        if x.op != "select":
            stack += x.args
            continue
        c, a, b = x.args
        stack.append(c)
        for holds, arm in ((c, a), (ex.negation(c), b)):
            inner = [y for found in guarded([arm], known, ops).values() for y in found]
            if has(arm, ops, {*known, *inner}):
                arms[holds, arm] = None
            else:
                stack.append(arm)
    found: dict[Expr, list[Expr]] = {}
    for holds, arm in _by_arm(arms):
        inner = ex.within([arm], stop=known)
        if any(y.op in ops and y not in seen and y not in known for y in inner):
            found.setdefault(holds, []).append(arm)
    return found


def spared(
    roots: Iterable[Expr], known: Collection[Expr], may: Callable[[Expr], bool]
) -> list[tuple[Expr, list[Expr]]]:
    """Find the arms that get passes of their own, by condition: those that `may`, each once.

    Where they would be many, only those that are reckoned one number after the other.
    """
    found: list[tuple[Expr, list[Expr]]] = []
    taken: set[Expr] = set()
    for holds, arms in guarded(roots, known, WORTH_IT).items():
        own = [x for x in arms if by_data(holds) and x not in taken and may(x)]
        taken.update(own)
        if own:
            found.append((holds, own))
    if len(found) <= MOST:
        return found
    return [(holds, own) for holds, own in found if any(has(x, SCALAR) for x in own)]


def _by_arm(arms: Iterable[tuple[Expr, Expr]]) -> Iterable[tuple[Expr, Expr]]:
    """Give each arm one condition: that any of those holds under which it stands."""
    conditions: dict[Expr, list[Expr]] = {}
    for holds, arm in arms:
        conditions.setdefault(arm, []).append(holds)
    for arm, held in conditions.items():
        if any(ex.negation(a) is b for a in held for b in held):
            continue  # it is always needed
        none = ex.TRUE
        for holds in held:
            none = ex.both(none, ex.negation(holds))
        yield ex.negation(none), arm


def has(x: Expr, ops: Collection[str], known: Collection[Expr] = ()) -> bool:
    """Say whether such an operation stands in an expression."""
    return any(y.op in ops and y not in known for y in ex.within([x], stop=known))


def by_data(condition: Expr) -> bool:
    """Say whether columns alone decide, and not by the action, which each trial has."""
    return not condition.on & ~ALONE and all(y is not ACTION for y in ex.within([condition]))


def before(
    holds: Expr,
    arms: dict[Expr, str],
    rows: Rows,
    columns: dict[str, str],
    given: list[str],
    name: str = "given",
) -> list[str]:
    """Return the pass that reckons arms before the trial itself, and leaves them in named rows.

    `given` are the statements by which the number of this `name` says whether a lane needs them.
    """
    count = f"any_{next(iter(arms.values()))}"
    loads, names = rows.loads([holds], columns, {})
    printer = Printer(names)
    (text,) = printer.write([holds])
    there = [*given, *loads, *printer.taken(), f"there = {bare(text)}"]
    count_lines = [*there, f"{count} += 1 if ({name} > 0.0) & there else 0"]

    loads, names = rows.loads([holds, *arms], columns, {})
    printer = Printer(names)
    (text,) = printer.write([holds])
    start = [*given, *loads, *printer.taken(), f"there = {bare(text)}"]
    texts = printer.write(list(arms))
    work = printer.taken()
    work += [f"{rows(arms[x])} = {bare(text)}" for x, text in zip(arms, texts, strict=True)]
    if any(has(arm, SCALAR) for arm in arms):  # one number after the other: only where it is
        work = block(f"if ({name} > 0.0) & there:", work)
    return [
        f"{count} = 0",
        *block("for i in range(LANES):", count_lines),
        *block(f"if {count} > 0:", block("for i in range(LANES):", [*start, *work])),
    ]
