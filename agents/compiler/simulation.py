"""The text of a simulation: sessions are played in lanes, and answers and rewards are returned.

If the actions are given, the simulation follows what recorded sessions brought.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from knownminds.agents.sequences import LANES
from knownminds.environments.world import World

from .definition import Definable
from .printing import Frame, Printer, block, costly_of_parameters, row
from .symbols import (
    DATA,
    PARAMETER,
    STATE,
    Expr,
    Symbols,
    make,
    merged,
    number,
    select,
    symbol,
    within,
)
from .tracing import Definition, Shapes, State, TracedAnswer, Trial, WorldTrial, entries


def _shares(answer: TracedAnswer) -> Any:
    """Return the probability of each action."""
    parts = list(answer.parts.values())
    if answer.stated:
        return Symbols.of(parts)
    u = Symbols.of([0.0, parts[0]] if len(parts) == 1 else parts)
    weights = np.exp(u - np.maximum.reduce(u))
    return weights / weights.sum()


class Simulation:
    """A model in the world of an experiment; without a model, the world with given actions.

    ``simulate(theta, lapse, n_actions, row, start, uniforms, *tables) -> out[columns, places,
    LANES]``. If answers are numbers, their normal noise comes after the uniforms. Without a model
    the actions take the place of the uniforms.

    Attributes
    ----------
    columns : names of the returned columns; "action" or "response", or both, first, and last
        "present", whether a trial happens, if some may fall away
    tables : the tables of the design that are read
    remembers : whether the world remembers anything from trial to trial
    depends : whether the answers depend on that memory
    """

    def __init__(
        self, model: type[Definable] | None, world: type[World], shapes: Shapes, actions: int
    ):
        # These symbols belong to the graph of this run.
        self._u, self._second = symbol("uniform number", DATA), symbol("second number", DATA)
        self._noise, self._rate = symbol("normal number", DATA), symbol("lapse rate", DATA)
        self.actions = actions
        self.definition = None if model is None else Definition(model, actions)
        anew = model is None or world.span not in model.separate
        no_action = self.definition is not None and self._gives_no_action(world, shapes)
        action = number(-1.0) if no_action else symbol("action", DATA)
        self.passage = WorldTrial(world, shapes, action, anew)
        self.remembers = bool(self.passage.start)
        self.given: dict[str, Expr] = {}
        after: State = {}
        if self.definition is not None:
            after = self._played(self.definition, shapes)
        self.state = self._state(after)
        brought = {**self.passage.shown, **self.passage.paid}
        self.brought = {n: x for n, x in brought.items() if n not in self.given}
        self.falls = self.passage.present is not number(1.0)
        self.columns = (*self.given, *self.brought, *(["present"] if self.falls else []))
        self.names = entries(shapes)
        of_world = {symbol(name, STATE) for name in self.passage.start}
        answered = [*self.given.values(), self.passage.present, *after.values()]
        self.depends = bool(of_world & within(answered).keys())
        read = within([*self._roots(), *(x for x, _ in self.state.values())])
        self._read = [x for x in read if x.op == "symbol" and x.on == DATA]
        self.tables = tuple(
            dict.fromkeys(self.names[x.value][0] for x in self._read if x.value in self.names)
        )
        self._check_read(model, world)

    def _gives_no_action(self, world: type[World], shapes: Shapes) -> bool:
        assert self.definition is not None
        shown = WorldTrial(world, shapes, number(-1.0)).shown
        (first, *_) = self.definition.answers(*[lambda: Trial(shown, shapes)] * 2)
        return first.law is not None

    def _played(self, definition: Definition, shapes: Shapes) -> State:
        """Write down the answer, and return what the model remembers afterwards."""
        shown = self.passage.shown
        action, response = symbol("action", DATA), symbol("response", DATA)
        answers = definition.answers(
            lambda: Trial(shown, shapes), lambda: Trial({**shown, "action": action}, shapes)
        )
        either = definition.model.given == "either"
        joint = not either and any(answer.law is not None for answer in answers)
        for answer in answers:
            if answer.law is None:
                self.given["action"] = self._action(answer, joint)
            else:
                self.given["response"] = self._number(answer)
        if either:
            acts = definition.acts(lambda: Trial(shown, shapes))
            self.given["action"] = select(acts, self.given["action"], -1.0)
            self.given["response"] = select(acts, -np.inf, self.given["response"])
        known = {**shown, "action": action, "response": response, **self.passage.paid}
        return definition.after(lambda: Trial(known, shapes))

    def _action(self, answer: TracedAnswer, joint: bool) -> Expr:
        """Return the action whose cumulative probability exceeds the uniform number.

        If a number is given as well, one uniform decides on lapses of both.
        """
        u: Any = self._u
        rate: Any = self._rate
        shares, below, action = _shares(answer), number(0.0), number(0.0)
        for k in range(self.actions - 1):
            below, any_of = below + shares[k], (k + 1) / self.actions
            bound = (1.0 - rate) * below + rate * any_of
            if joint:
                bound = select(u < rate, rate * any_of, rate + (1.0 - rate) * below)
            action = action + select(u < bound, 0.0, 1.0)
        return action

    def _number(self, answer: TracedAnswer) -> Expr:
        """Return the response at the second uniform number."""
        assert answer.law is not None
        law = answer.law(**answer.parts)
        lapses = make("gt", self._rate, self._u)
        drawn = merged(lambda: {"plain": law.at(self._noise), "lapse": law.lapse_at(self._second)})
        return select(lapses, drawn["lapse"], drawn["plain"])

    def _state(self, after: State) -> dict[Expr, tuple[Expr, Expr]]:
        """Return what is remembered at first and after a trial, as far as it matters."""
        present, start = self.passage.present, self.definition.start if self.definition else {}
        state = {
            symbol(n, STATE): (start[n], select(present, x, symbol(n, STATE)))
            for n, x in after.items()
        }
        for name, x in self.passage.after.items():
            state[symbol(name, STATE)] = (self.passage.start[name], x)
        while True:
            outputs = [*self.given.values(), present]
            outputs += [*self.passage.shown.values(), *self.passage.paid.values()]
            needed = {x for x in within([*outputs, *(y for _, y in state.values())]) if x in state}
            if len(needed) == len(state):
                return state
            state = {s: pair for s, pair in state.items() if s in needed}

    def _roots(self) -> list[Expr]:
        outputs = [*self.given.values(), *self.brought.values(), self.passage.present]
        return [*outputs, *(x for _, x in self.state.values())]

    def _check_read(self, model: type[Definable] | None, world: type[World]) -> None:
        internal = {self._u, self._second, self._noise, self._rate}
        internal |= {symbol("action", DATA), symbol("response", DATA)}
        odd = [x.value for x in self._read if x.value not in self.names and x not in internal]
        if odd:
            reader = world.__name__ if model is None else f"{model.name} in {world.__name__}"
            raise ValueError(
                f"{reader} reads {odd[0]!r}, which no table of the design holds and no trial "
                "shows. Choose another experiment, or add it to the tables."
            )

    @property
    def roots(self) -> list[Expr]:
        """All expressions that a trial computes."""
        return [*self._roots(), *(x for x, _ in self.state.values())]

    def lines(self) -> list[str]:
        """Return the lines of the function."""
        joint = "response" in self.given
        arguments = ["theta", "lapse", "n_actions", "row", "start", "uniforms"]
        arguments += (["noise"] if joint else []) + [f"{name}_all" for name in self.tables]
        n = len(self.columns)
        rows, begin, trial, copied = self._trial(joint)
        return [
            "@compiled()",  # nothing may be rounded differently from NumPy
            *block(
                f"def simulate({', '.join(arguments)}):",
                [
                    '"""Play the sequences."""',
                    *Frame(
                        [f"out = np.empty(({n}, start[-1], {LANES}))"],
                        rows, begin, [("", trial), ("", copied)], [], "out",
                    ).lines(),
                ],
            ),
        ]  # fmt: skip

    def _trial(self, joint: bool) -> tuple[int, list[str], list[str], list[str]]:
        """Return how many rows are carried, and the statements before, in and after a trial.

        What comes back has rows too, and a loop of its own copies them: a loop that stores into
        `out` beside `z` is not turned into vectors.
        """
        once = costly_of_parameters(self._roots())
        parts = within(self._roots(), stop=once)
        parameters = list(self.definition.parameters) if self.definition else []
        used = [symbol(p, PARAMETER) for p in parameters]
        named = {x: f"{x.value}_i" for x in (*used, *self.state) if x in parts or x in self.state}
        named |= once
        if self._rate in parts:
            named[self._rate] = "lapse_rate_i"
        places = {x: row(k) for k, x in enumerate(named)}
        of_first = {
            self._u: "uniforms[t, 0, i]" if joint else "uniforms[t, i]",
            self._second: "uniforms[t, 1, i]",
            self._noise: "noise[t, i]",
        }
        columns = {x: self._place(x) for x in self._read if x.value in self.names}

        begin = Printer(
            {symbol(p, PARAMETER): f"theta[q, {k}]" for k, p in enumerate(parameters)}
            | {x: text.replace("[t", "[start[block]") for x, text in columns.items()}
            | {self._rate: "lapse[q]"}
        )
        texts = begin.write([self.state[x][0] if x in self.state else x for x in named])
        begin.lines += [f"{places[x]} = {t}" for x, t in zip(named, texts, strict=True)]

        names_of = {x: f"{x.value.replace(' ', '_')}_t" for x in (*columns, *of_first)}
        reads = {**columns, **of_first}
        drawn = [f"{names_of[x]} = {text}" for x, text in reads.items() if x in parts]
        body = Printer({**named, **names_of})
        lines = [*drawn, *(f"{n} = {places[x]}" for x, n in named.items())]
        action, response = symbol("action", DATA), symbol("response", DATA)
        if self.definition is None:
            lines.append("action = uniforms[t, i]")
            body.names[action] = "action"
        for name, x in (("action", action), ("response", response)):
            if name in self.given:
                (text,) = body.write([self.given[name]])
                body.lines.append(f"{name} = {text}")
                body.names[x] = name
        changed = {s: x for s, (_, x) in self.state.items() if x is not s}
        texts = body.write([*self.brought.values(), self.passage.present, *changed.values()])
        n = len(self.brought)
        present = texts[n]
        outputs = [
            f"pick({present} > 0.0, {name}, -1.0)" if self.falls else name for name in self.given
        ]
        outputs += texts[:n] + ([present] if self.falls else [])
        lines += body.lines
        first = len(named)
        lines += [f"{row(first + k)} = {text}" for k, text in enumerate(outputs)]
        stores = zip(changed, texts[n + 1 :], strict=True)
        lines += [f"{places[x]} = {text}" for x, text in stores]
        copied = [f"out[{k}, t, i] = {row(first + k)}" for k in range(len(outputs))]
        return first + len(outputs), begin.lines, lines, copied

    def _place(self, x: Expr) -> str:
        """Return the text of a number that a table holds for a trial."""
        table, index = self.names[x.value]
        return f"{table}_all[t, {''.join(f'{k}, ' for k in index)}i]"
