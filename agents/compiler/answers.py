"""How an answer enters a kernel: two actions, several, stated probabilities, numbers.

Each form says what it needs of a definition (`heads`), how its likelihood and the pull on what the
heads are made of are reckoned (`likelihood`, after which `pushes` are known), and how it is drawn.
An action with a number is made of both forms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from . import expressions as ex
from .expressions import ACTION, DATA, PARAMETER, RESPONSE, STATE, Expr
from .printing import Rows, bare, block, may_fail
from .program import Kind, Outcome
from .slopes import derivative, factored
from .tracing import merged

NOISE, UNIFORM = ex.symbol("noise", DATA), ex.symbol("uniform", DATA)
Slope = Callable[[Expr], Expr]


class Form(Protocol):
    """What all forms of answers have."""

    heads: list[Expr]
    pushes: dict[Expr, str]  # the names that their symbols have in the text

    def score(self, slope: Slope) -> Expr:
        """Return the slope of the log-likelihood in a parameter, from that of an expression."""

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Return the statements that add the trial, from the text of the heads."""


class Choice(Form, Protocol):
    """What the forms of actions have."""

    def known(self, texts: list[str]) -> list[str]:
        """Return the statements that come first."""

    def alone(self, rows: Rows) -> list[str]:
        """Return those that add the trial where there are no lapses."""

    def taken(self) -> list[str]:
        """Return those that give the probability of what was chosen, `taken`."""

    def pushed(self) -> list[str]:
        """Return those that give the pushes from the `weight` that the model has in a mixture."""

    def draw(self, texts: list[str], joint: bool) -> list[str]:
        """Return the statements that give the action by the uniform number u.

        Where lapses are `joint`, of action and number, u also decides on them.
        """


def form_of(kind: Kind, actions: int) -> Form:
    """Return the form of the likelihood of an answer."""
    if kind.outcome.law is not None:
        return Number(kind.outcome)
    choice = choice_of(kind.outcome, actions)
    return choice if kind.report is None else Both(choice, Number(kind.report), actions)


def choice_of(outcome: Outcome, actions: int, drawn: bool = False) -> Choice:
    """Return the form of an action; for its likelihood, or for how it is drawn."""
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
            lines.append(f"{name} = pick(given > 0.0, {name}, 0.0)")
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
        f"product = {rows('product')} / pick(given > 0.0, {probability}, 1.0)",
        "large = product > 1.0 / TINY",
        f"{rows('product')} = pick(large, product * TINY, product)",
        f"{rows('linear')} += pick(large, LOG_TINY, 0.0)",
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

    def known(self, texts: list[str]) -> list[str]:
        """Reckon with the log odds of what was chosen."""
        lines = ["side = pick(action == 1.0, 1.0, 0.0) - pick(action == 0.0, 1.0, 0.0)"]
        if may_fail(self.heads[0]):
            lines += _known(self.heads, texts, ["lead"])
            texts = ["lead"]
        return [
            *lines,
            f"x = side * {texts[0]}",
            "e = exp_of_negative(-abs(x))",
            "missed = pick(x > 0.0, e, 1.0) / (1.0 + e)",
        ]

    def alone(self, rows: Rows) -> list[str]:
        """Take the log once in a while, of the product of the 1 + e**-|x|."""
        return [
            f"{rows('linear')} += min(x, 0.0)",
            f"{rows('product')} *= 1.0 + e * given",
            "push = side * missed",
        ]

    def taken(self) -> list[str]:
        """Return the statement that gives the probability of what was chosen."""
        return ["taken = pick(x > 0.0, 1.0 - missed, e / (1.0 + e))"]

    def pushed(self) -> list[str]:
        """Return the push by what was missed."""
        return ["push = weight * side * missed"]

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Return both ways."""
        lapsed = [
            *self.taken(),
            *_mixed(rows, "0.5", "taken"),
            "push = side * (1.0 - share) * taken * missed / mixed",
        ]
        return [
            *self.known(texts),
            *block("if lapse is None:", self.alone(rows)),
            *block("else:", lapsed),
        ]

    def draw(self, texts: list[str], joint: bool) -> list[str]:
        """Choose the first action whose cumulative probability exceeds the uniform number."""
        return [
            f"x = {bare(texts[0])}",
            "e = exp_of_negative(-abs(x))",
            "p_0 = pick(x > 0.0, e, 1.0) / (1.0 + e)",
            *_bound("p_0", "0.5", joint),
            "first = u < bound",
            "second = not first",
            "action = pick(first, 0.0, 1.0)",
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

    def known(self, texts: list[str]) -> list[str]:
        """Reckon with the weights of all actions."""
        n = len(self.heads)
        return [
            *_known(self.heads, texts, [f"u{j}" for j in range(n)]),
            *self._weights(),
            "per = 1.0 / whole",
            *(f"is_{j} = pick(action == {j}.0, 1.0, 0.0)" for j in range(n)),
        ]

    def alone(self, rows: Rows) -> list[str]:
        """Take the log once in a while, of the product of the sums of weights."""
        own = " + ".join(f"is_{j} * (u{j} - top)" for j in range(len(self.heads)))
        return [
            f"{rows('linear')} += {own}",
            f"{rows('product')} *= pick(given > 0.0, whole, 1.0)",
            "weight = given",
            *self.pushed(),
        ]

    def taken(self) -> list[str]:
        """Return the statement that gives the probability of what was chosen."""
        own = " + ".join(f"is_{j} * e{j}" for j in range(len(self.heads)))
        return [f"taken = ({own}) * per"]

    def pushed(self) -> list[str]:
        """Return a push for each utility."""
        return [f"push_{j} = weight * (is_{j} - e{j} * per)" for j in range(len(self.heads))]

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Return both ways."""
        lapsed = [
            *self.taken(),
            *_mixed(rows, repr(1 / len(self.heads)), "taken"),
            "weight = given * (1.0 - share) * taken / mixed",
            *self.pushed(),
        ]
        return [
            *self.known(texts),
            *block("if lapse is None:", self.alone(rows)),
            *block("else:", lapsed),
        ]

    def draw(self, texts: list[str], joint: bool) -> list[str]:
        """Choose the first action whose cumulative probability exceeds the uniform number."""
        n = len(self.heads)
        lines = [f"u{j} = {bare(text)}" for j, text in enumerate(texts)]
        shares = [f"e{j} / whole" for j in range(n)]
        return [*lines, *self._weights(), *_first_above(shares, joint)]


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

    def known(self, texts: list[str]) -> list[str]:
        """Reckon with the probability of what was chosen."""
        return _known(self.heads, texts, ["taken"])

    def alone(self, rows: Rows) -> list[str]:
        """Multiply the probabilities, and take the log once in a while."""
        return [
            "mixed = max(taken, TINY)",
            *_multiplied(rows, "mixed"),
            "push = given / mixed",
        ]

    def taken(self) -> list[str]:
        """Return nothing: it is known."""
        return []

    def pushed(self) -> list[str]:
        """Return the push by the probability."""
        return ["push = weight / max(taken, TINY)"]

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Return both ways."""
        lapsed = [
            *_mixed(rows, repr(1 / self.n), "taken"),
            "push = given * (1.0 - share) / mixed",
        ]
        return [
            *self.known(texts),
            *block("if lapse is None:", self.alone(rows)),
            *block("else:", lapsed),
        ]

    def draw(self, texts: list[str], joint: bool) -> list[str]:
        """Choose the first action whose cumulative probability exceeds the uniform number."""
        lines = [f"u{j} = {bare(text)}" for j, text in enumerate(texts)]
        return [*lines, *_first_above([f"u{j}" for j in range(self.n)], joint)]


def _first_above(shares: list[str], joint: bool) -> list[str]:
    lines, n = ["p = 0.0", "action = 0.0"], len(shares)
    for k, share in enumerate(shares[:-1], 1):
        lines += [
            f"p += {share}",
            *_bound("p", repr(k / n), joint),
            "action += pick(u < bound, 0.0, 1.0)",
        ]
    return lines


def _bound(p: str, each: str, joint: bool) -> list[str]:
    """Return the statements that mix a cumulative probability with that of lapses."""
    if not joint:
        return [f"bound = (1.0 - share) * {p} + {each} * share"]
    return [
        f"meant = share + (1.0 - share) * {p}",
        f"any_of = {each} * share",
        "bound = pick(lapses, any_of, meant)",
    ]


class Number:
    """A number that follows a law, or in a lapse what the law says of those."""

    def __init__(self, outcome: Outcome):
        parts = outcome.parts
        fields = {
            name: ex.symbol(f"field {name}", PARAMETER)
            for name, x in parts.items()
            if x.on & (PARAMETER | STATE)
        }
        law = replace(outcome, parts={**parts, **fields}).as_law
        own = merged(lambda: {"": law.log_density(RESPONSE)})[""]
        by = {symbol: parts[name] for name, symbol in fields.items()}
        self._each = merged(lambda: {"": law.lapse_density(RESPONSE)})[""]
        self.heads = [ex.substituted(own, by)]
        if self._each is not ex.ONE:
            self.heads.append(self._each)
        # Slopes of the log density in what the law is made of.
        self._pulls = [
            (parts[name], factored(ex.substituted(derivative(own, {symbol: ex.ONE}, {}), by)))
            for name, symbol in fields.items()
        ]
        self.pushes = _pushes(["weight"])

    def score(self, slope: Slope) -> Expr:
        """Multiply the weight by the slope of the log density."""
        (weight,) = self.pushes
        whole = ex.add((1.0, ex.multiply([pull, slope(x)])) for x, pull in self._pulls)
        return ex.multiply([weight, factored(whole)])

    def known(self, texts: list[str]) -> list[str]:
        """Name the log density."""
        lines = [f"own = {bare(texts[0])}"]
        return lines + ([f"each = {bare(texts[1])}"] if len(texts) > 1 else [])

    def alone(self, rows: Rows) -> list[str]:
        """Add the log density."""
        return ["weight = given", f"{rows('linear')} += pick(given > 0.0, own, 0.0)"]

    def mixed(self, rows: Rows, density: str, each: float = 1.0) -> list[str]:
        """Add the logarithm of a mixture; `each` is the probability of what else is given."""
        lines = [f"share = {rows('lapse')}", f"density = {density}"]
        if len(self.heads) == 1:
            lines += [
                f"mixed = max((1.0 - share) * density + {each!r} * share, TINY)",
                "logarithm = log_of(mixed)",
                f"slope = ({each!r} - density) / mixed",
                "weight = (1.0 - share) * density / mixed",
            ]
        else:  # in a lapse there may be no such number, but a far one otherwise
            lines += [
                f"any_of = {each!r} * each",
                "mixed = max((1.0 - share) * density + any_of * share, TINY)",
                "kept = max(1.0 - share, TINY)",
                "both = log_of(mixed)",
                "alone = own + log_of(kept)",
                "slope = (any_of - density) / mixed",
                "fewer = -1.0 / kept",
                "part = (1.0 - share) * density / mixed",
                "logarithm = pick(each > 0.0, both, alone)",
                "slope = pick(each > 0.0, slope, fewer)",
                "weight = pick(each > 0.0, part, 1.0)",
            ]
        return [
            *lines,
            f"{rows('linear')} += pick(given > 0.0, logarithm, 0.0)",
            f"{rows('score_lapse')} += pick(given > 0.0, slope, 0.0)",
        ]

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Return both ways."""
        return [
            *self.known(texts),
            *block("if lapse is None:", self.alone(rows)),
            *block("else:", self.mixed(rows, "exp_of(own)")),
        ]


class Both:
    """An action and a number; a lapse is one of both."""

    def __init__(self, choice: Choice, number: Number, actions: int):
        self.choice, self.number, self.actions = choice, number, actions
        self.heads = [*choice.heads, *number.heads]
        self.pushes = {**choice.pushes, **number.pushes}

    def score(self, slope: Slope) -> Expr:
        """Add the slopes of both."""
        return factored(ex.add([(1.0, self.choice.score(slope)), (1.0, self.number.score(slope))]))

    def likelihood(self, texts: list[str], rows: Rows) -> list[str]:
        """Add both; where there are lapses, the logarithm of their product's mixture."""
        n = len(self.choice.heads)
        lapsed = [
            *self.choice.taken(),
            *self.number.mixed(rows, "taken * exp_of(own)", 1.0 / self.actions),
            "weight = pick(given > 0.0, weight, 0.0)",
            *self.choice.pushed(),
        ]
        return [
            *self.choice.known(texts[:n]),
            *self.number.known(texts[n:]),
            *block("if lapse is None:", [*self.choice.alone(rows), *self.number.alone(rows)]),
            *block("else:", lapsed),
        ]


def drawn_number(outcome: Outcome) -> list[Expr]:
    """Return a number that is given, and what is given in a lapse."""
    law = outcome.as_law
    return list(merged(lambda: {"at": law.at(NOISE), "lapse": law.lapse_at(UNIFORM)}).values())
