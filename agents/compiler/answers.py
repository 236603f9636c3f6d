"""How an answer enters a kernel: two actions, several, stated probabilities, numbers.

Each form says what it needs of a definition (`heads`), how its likelihood and the pull on what the
heads are made of are reckoned (`likelihood`, after which `pushes` are known), and how it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from . import expressions as ex
from .expressions import ACTION, DATA, RESPONSE, Expr
from .printing import Rows, bare, block, may_fail
from .program import Outcome
from .slopes import factored
from .tracing import merged

NOISE = ex.symbol("noise", DATA)
Slope = Callable[[Expr], Expr]


class Form(Protocol):
    """What all forms of answers have."""

    heads: list[Expr]
    pushes: dict[Expr, str]  # the names that their symbols have in the text

    def score(self, slope: Slope) -> Expr:
        """Return the slope of the log-likelihood in a parameter, from that of an expression."""

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Return the statements that add the trial, from the text of the heads."""

    def draw(self, texts: list[str]) -> list[str]:
        """Return the statements that give the answer."""


def form_of(outcome: Outcome, actions: int, drawn: bool = False) -> Form:
    """Return the form of an answer; for its likelihood, or for how it is drawn."""
    if outcome.law is not None:
        return Number(outcome, drawn)
    parts = list(outcome.parts.values())
    if outcome.stated:
        return Stated(parts, drawn)
    return OfTwo(parts) if actions == 2 else OfMany(parts)


def _pushes(names: list[str]) -> dict[Expr, str]:
    return {ex.symbol(name, DATA): name for name in names}


def _known(heads: list[Expr], texts: list[str], names: list[str]) -> list[str]:
    """Name the heads; of a trial without an answer nothing is known."""
    lines = []
    for head, text, name in zip(heads, texts, names, strict=True):
        lines.append(f"{name} = {bare(text)}")
        if may_fail(head):
            lines.append(f"{name} = {name} if given > 0.0 else 0.0")
    return lines


def _mixed(rows: Rows, each: str, taken: str) -> list[str]:
    """Mix a probability with lapses, and take it up in the product of all."""
    return [
        f"share = {rows('lapse')}",
        f"mixed = max((1.0 - share) * {taken} + {each} * share, TINY)",
        *_multiplied(rows, "mixed"),
        f"{rows('score_lapse')} += given * ({each} - {taken}) / mixed",
    ]


def _multiplied(rows: Rows, probability: str) -> list[str]:
    return [
        f"product = {rows('product')} / ({probability} if given > 0.0 else 1.0)",
        "large = product > 1.0 / TINY",
        f"{rows('product')} = product * TINY if large else product",
        f"{rows('linear')} += LOG_TINY if large else 0.0",
    ]


class OfTwo:
    """Logistic choice between two actions, by their utilities or the log odds of action 1."""

    def __init__(self, parts: list[Expr]):
        lead = parts[0] if len(parts) == 1 else ex.add([(1.0, parts[1]), (-1.0, parts[0])])
        self.heads = [factored(lead)]
        self.pushes = _pushes(["push"])

    def score(self, slope: Slope) -> Expr:
        """Multiply the push by the slope of the log odds."""
        (push,) = self.pushes
        return ex.multiply([push, factored(slope(self.heads[0]))])

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Take the log once in a while, of the product of the 1 + e**-|x|."""
        lines = ["side = (1.0 if action == 1.0 else 0.0) - (1.0 if action == 0.0 else 0.0)"]
        if may_fail(self.heads[0]):
            lines += _known(self.heads, texts, ["lead"])
            texts = ["lead"]
        return [
            *lines,
            f"x = side * {texts[0]}",
            "e = exp_of_negative(-abs(x))",
            "missed = (e if x > 0.0 else 1.0) / (1.0 + e)",
            *block(
                "if lapse is None:",
                [
                    f"{rows('linear')} += min(x, 0.0)",
                    f"{rows('product')} *= 1.0 + e * given",
                    "push = side * missed",
                ],
            ),
            *block(
                "else:",
                [
                    "taken = 1.0 - missed if x > 0.0 else e / (1.0 + e)",
                    *_mixed(rows, "0.5", "taken"),
                    "push = side * (1.0 - share) * taken * missed / mixed",
                ],
            ),
        ]

    def draw(self, texts: list[str]) -> list[str]:
        """Choose the first action whose cumulative probability exceeds the uniform number."""
        return [
            f"x = {bare(texts[0])}",
            "e = exp_of_negative(-abs(x))",
            "p_0 = (e if x > 0.0 else 1.0) / (1.0 + e)",
            "p_0 = (1.0 - share) * p_0 + 0.5 * share",
            "first = uniforms[t, i] < p_0",
            "second = not first",
            "action = 0.0 if first else 1.0",
        ]


class OfMany:
    """Softmax over the utilities of three actions or more."""

    def __init__(self, parts: list[Expr]):
        self.heads = parts
        self.pushes = _pushes([f"push_{j}" for j in range(len(parts))])

    def score(self, slope: Slope) -> Expr:
        """Sum the pushes of all utilities times their slopes."""
        pairs = zip(self.pushes, self.heads, strict=True)
        return factored(ex.add((1.0, ex.multiply([push, slope(u)])) for push, u in pairs))

    def _weights(self) -> list[str]:
        n = len(self.heads)
        top = "u0"
        for j in range(1, n):
            top = f"max({top}, u{j})"
        return [
            f"top = {top}",
            *(f"e{j} = exp_of_negative(u{j} - top)" for j in range(n)),
            f"whole = {' + '.join(f'e{j}' for j in range(n))}",
        ]

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Take the log once in a while, of the product of the sums of weights."""
        n = len(self.heads)
        own = " + ".join(f"is_{j} * (u{j} - top)" for j in range(n))
        taken = " + ".join(f"is_{j} * e{j}" for j in range(n))
        return [
            *_known(self.heads, texts, [f"u{j}" for j in range(n)]),
            *self._weights(),
            "per = 1.0 / whole",
            *(f"is_{j} = 1.0 if action == {j}.0 else 0.0" for j in range(n)),
            *block(
                "if lapse is None:",
                [
                    f"{rows('linear')} += {own}",
                    f"{rows('product')} *= whole if given > 0.0 else 1.0",
                    "weight = given",
                ],
            ),
            *block(
                "else:",
                [
                    f"taken = ({taken}) * per",
                    *_mixed(rows, repr(1 / n), "taken"),
                    "weight = given * (1.0 - share) * taken / mixed",
                ],
            ),
            *(f"push_{j} = weight * (is_{j} - e{j} * per)" for j in range(n)),
        ]

    def draw(self, texts: list[str]) -> list[str]:
        """Choose the first action whose cumulative probability exceeds the uniform number."""
        n = len(self.heads)
        lines = [f"u{j} = {bare(text)}" for j, text in enumerate(texts)]
        shares = [f"e{j} / whole" for j in range(n)]
        return [*lines, *self._weights(), *_first_above(shares)]


class Stated:
    """An action whose probabilities a definition states itself."""

    def __init__(self, parts: list[Expr], drawn: bool):
        self.n = len(parts)
        if drawn:
            self.heads = parts
        else:
            taken = parts[-1]
            for j in reversed(range(self.n - 1)):
                taken = ex.select(ex.equal(ACTION, j), parts[j], taken)
            self.heads = [taken]
        self.pushes = _pushes(["push"])

    def score(self, slope: Slope) -> Expr:
        """Multiply the push by the slope of the probability of what was chosen."""
        (push,) = self.pushes
        return ex.multiply([push, factored(slope(self.heads[0]))])

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Multiply the probabilities, and take the log once in a while."""
        return [
            *_known(self.heads, texts, ["taken"]),
            *block(
                "if lapse is None:",
                [
                    "mixed = max(taken, TINY)",
                    *_multiplied(rows, "mixed"),
                    "push = given / mixed",
                ],
            ),
            *block(
                "else:",
                [
                    *_mixed(rows, repr(1 / self.n), "taken"),
                    "push = given * (1.0 - share) / mixed",
                ],
            ),
        ]

    def draw(self, texts: list[str]) -> list[str]:
        """Choose the first action whose cumulative probability exceeds the uniform number."""
        lines = [f"u{j} = {bare(text)}" for j, text in enumerate(texts)]
        return [*lines, *_first_above([f"u{j}" for j in range(self.n)])]


def _first_above(shares: list[str]) -> list[str]:
    lines, each = ["below = 0.0", "action = 0.0"], repr(1 / len(shares))
    for share in shares[:-1]:
        lines += [
            f"below += (1.0 - share) * ({share}) + share * {each}",
            "action += 0.0 if uniforms[t, i] < below else 1.0",
        ]
    return lines


class Number:
    """A number that follows a law, or in a lapse any number from 0 to 1."""

    def __init__(self, outcome: Outcome, drawn: bool):
        law = outcome.as_law
        self.heads = list(
            merged(lambda: {"": law.at(NOISE) if drawn else law.log_density(RESPONSE)}).values()
        )
        self.pushes = _pushes(["weight"])

    def score(self, slope: Slope) -> Expr:
        """Multiply the weight by the slope of the log density."""
        (weight,) = self.pushes
        return ex.multiply([weight, factored(slope(self.heads[0]))])

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Add the log density."""
        return [
            f"own = {bare(texts[0])}",
            *block(
                "if lapse is None:",
                ["weight = given", f"{rows('linear')} += own if given > 0.0 else 0.0"],
            ),
            *block(
                "else:",
                [
                    f"share = {rows('lapse')}",
                    "density = exp_of(own)",
                    "mixed = max((1.0 - share) * density + share, TINY)",
                    "logarithm = log_of(mixed)",
                    "slope = (1.0 - density) / mixed",
                    f"{rows('linear')} += logarithm if given > 0.0 else 0.0",
                    f"{rows('score_lapse')} += slope if given > 0.0 else 0.0",
                    "weight = (1.0 - share) * density / mixed",
                ],
            ),
        ]

    def draw(self, texts: list[str]) -> list[str]:
        """Give the response, or the second uniform number in a lapse."""
        return [
            f"response = {bare(texts[0])}",
            "response = uniforms[t, 1, i] if uniforms[t, 0, i] < share else response",
        ]
