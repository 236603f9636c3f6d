"""What hangs on columns alone is reckoned once, when data are read: its text in NumPy."""

from __future__ import annotations

from . import expressions as ex
from .expressions import Expr
from .likelihood import Likelihood
from .printing import Printer, bare, block, table_name

BY_NAME = {"exp": "np.exp", "log": "np.log", "sqrt": "np.sqrt", "abs": "np.abs", "over": "1.0 / "}


class ArrayPrinter(Printer):
    """Writes expressions of whole columns."""

    def _text(self, x: Expr) -> str:
        parts = [self._name(a) for a in x.args]
        match x.op:
            case "select":
                return f"np.where({', '.join(map(bare, parts))})"
            case "max" | "min":
                return f"np.{x.op}imum({', '.join(map(bare, parts))})"
            case "not":
                return f"~({parts[0]})"
            case "lookup":
                (place,) = parts
                inside = f"({place} >= 0.0) & ({place} < {len(x.value)}.0)"
                return f"{table_name(x.value)}[np.where({inside}, {place}, 0.0).astype(np.int64)]"
        return super()._text(x)


def preparation(made: Likelihood) -> list[str]:
    """Return the lines of ``prepared(*columns)``, flat columns to those of the likelihood."""
    program = made.program
    order = ex.within(made.once)
    names = {x: f"{x.value}_t" for x in order if x.op == "symbol"}
    printer = ArrayPrinter(names, BY_NAME)
    texts = printer.write(list(made.once))
    given = "response_t > -1e300" if program.law else "action_t >= 0.0"
    kept = [
        f"{name} = np.where(given, {bare(text)}, 0.0)"
        for name, text in zip(made.once.values(), texts, strict=True)
    ]
    raw = {c: f"{c}_t" for c in program.columns} | {"given": "given.astype(float)"}
    found = ", ".join(raw.get(c, c) for c in made.columns)
    body = [f"given = {given}", *printer.taken(), *kept, f"return ({found},)"]
    arguments = ", ".join(f"{c}_t" for c in program.columns)
    return block(f"def prepared({arguments}):", body)
