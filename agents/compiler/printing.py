"""Expressions as statements, and the frame that all kernels share: sequences side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from knownminds.agents.sequences import LANES

from .symbols import COSTLY, PARAMETER, Expr, within

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "gt": ">", "eq": "==", "and": "&"}
INLINE = ("add", "sub", "mul", "gt", "eq", "and", "not")  # written in place if they are used once
LONGEST = 60  # characters of an expression that is written in place
KERNEL_CALLS = {
    "exp": "exp_of",
    "log": "log_of",
    "ndtr": "ndtr_of",
    "log_ndtr": "log_ndtr_of",
    "hazard": "hazard_of",
    "sqrt": "sqrt",
    "abs": "abs",
    "select": "pick",
}


class Printer:
    """Writes expressions as statements; an expression that is used twice, or is long, gets a name.

    Parameters
    ----------
    names : expressions that have a name already
    calls : names of functions, by operation
    """

    assignment = "{name} = {text}"

    def __init__(self, names: Mapping[Expr, str], calls: Mapping[str, str] = KERNEL_CALLS):
        self.names = dict(names)
        self.calls = calls
        self.lines: list[str] = []
        self._made = 0

    def write(self, roots: Iterable[Expr]) -> list[str]:
        """Return the text of each root; the statements that it needs are added to `lines`."""
        roots = list(roots)
        order = within(roots, stop=self.names)
        uses = dict.fromkeys(roots, 2)
        for x in order:
            for a in () if x in self.names else x.args:
                uses[a] = uses.get(a, 0) + 1
        for x in order:
            if x in self.names or x.op == "number":
                continue
            text = self.text(x)
            if uses[x] < 2 and x.op in INLINE and len(text) < LONGEST:
                self.names[x] = f"({text})"
            else:
                self._made += 1
                self.names[x] = f"t{self._made}"
                self.lines.append(self.assignment.format(name=f"t{self._made}", text=text))
        return [self.name(x) for x in roots]

    def name(self, x: Expr) -> str:
        """Return the name of an expression."""
        return self.constant(x.value) if x.op == "number" else self.names[x]

    def constant(self, value: float) -> str:
        """Return the text of a number."""
        return repr(float(value))

    def text(self, x: Expr) -> str:
        """Return the text of an operation."""
        args = [self.name(a) for a in x.args]
        if x.op in SIGNS:
            return f"{args[0]} {SIGNS[x.op]} {args[1]}"
        if x.op == "not":
            return f"not {args[0]}"
        if x.op == "hold":
            return args[0]
        if x.op == "lookup":
            return self.looked_up(x, args[0])
        if x.op == "select" and x.args[0].op == "gt" and {*x.args[0].args} == {*x.args[1:]}:
            end = "max" if x.args[1] is x.args[0].args[0] else "min"
            return f"{self.calls.get(end, end)}({args[1]}, {args[2]})"
        return f"{self.calls[x.op]}({', '.join(args)})"

    def looked_up(self, x: Expr, index: str) -> str:
        """Return the text of an entry of a table; an index outside of it gives the first entry."""
        inside = f"({index} >= 0.0) & ({index} < {len(x.value)}.0)"
        return f"{table_name(x)}[int(pick({inside}, {index}, 0.0))]"


def table_name(x: Expr) -> str:
    """Return the name of the table in which an expression looks something up."""
    return f"TABLE_{x.number}"


def tables(roots: Iterable[Expr]) -> list[str]:
    """Return the statements that make the tables in which expressions look something up."""
    looked_up = [x for x in within(roots) if x.op == "lookup"]
    return [f"{table_name(x)} = np.array({list(x.value)!r})" for x in looked_up]


def block(head: str, lines: Iterable[str]) -> list[str]:
    """Return the lines, indented under a head that ends in a colon."""
    return [head, *("    " + line for line in lines)]


def costly(x: Expr) -> bool:
    """Say whether an expression needs more than sums, products and comparisons."""
    return any(y.op in COSTLY for y in within([x]))


def largest(roots: Iterable[Expr], wanted: Iterable[Expr]) -> list[Expr]:
    """Return the wanted parts of expressions that lie in no other wanted part."""
    roots, chosen = list(roots), set(wanted)
    order = within(roots)
    outside = {a for x in order if x not in chosen for a in x.args} | set(roots)
    return [x for x in order if x in chosen and x in outside]


def costly_of_parameters(roots: Iterable[Expr], first: int = 0) -> dict[Expr, str]:
    """Return the costly parts that depend on parameters alone, by the name of their row.

    Names are numbered from `first` on.
    """
    roots = list(roots)
    wanted = [x for x in within(roots) if x.args and x.on == PARAMETER and costly(x)]
    return {x: f"held_{first + k}" for k, x in enumerate(largest(roots, wanted))}


@dataclass(frozen=True)
class Frame:
    """The frame of a kernel around its trials, in every lane.

    Parameters
    ----------
    made : statements that make the arrays to be returned
    rows : how many rows of LANES numbers are carried along the trials, in one buffer `z`. In one
        buffer LLVM can prove that rows do not overlap, and turn loops over lanes into vectors
    begin, end : statements of a lane before and after its trials
    trials : statements of a trial, by the condition for its kind; "" for all trials
    returned : what is returned
    """

    made: list[str]
    rows: int
    begin: list[str]
    trials: list[tuple[str, list[str]]]
    end: list[str]
    returned: str

    def lines(self) -> list[str]:
        """Return the lines of the function, without its head."""
        lanes = f"for i in range({LANES}):"
        loops: list[str] = []
        for condition, lines in self.trials:
            loop = block(lanes, lines)
            if condition:  # entered if any lane has a trial of this kind
                loops += ["lanes = 0", *block(lanes, [f"lanes += {condition}"])]
                loop = block("if lanes > 0:", loop)
            loops += loop
        body = block("for t in range(start[block], start[block + 1]):", loops)
        blocks = [
            *block("if start[block + 1] == start[block]:", ["continue"]),
            "z[:] = 0.0",
            *block(lanes, ["q = row[block, i]", *self.begin]),
            *body,
            *(block(lanes, ["q = row[block, i]", *self.end]) if self.end else []),
        ]
        return [
            *self.made,
            f"z = np.empty({self.rows * LANES})",
            *block("for block in range(len(row)):", blocks),
            f"return {self.returned}",
        ]


def row(k: int) -> str:
    """Return the text of the position of a lane in row k."""
    return f"z[{k * LANES} + i]"
