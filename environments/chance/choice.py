"""Choice: a text about a pick among lettered options breaks off right before the letter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal, get_args

from knownminds.environments.fields import OneOf, SomeOf, setting

from .chance import uniform
from .context_grid import NONE, Context, ContextGrid, Values, marks_of_places

Kind = Literal["single", "independent"]
KINDS: tuple[str, ...] = get_args(Kind)
SIZES = (2, 4, 6)
OPTIONS = ("A", "B", "C", "D", "E", "F")


class Choice(ContextGrid):
    """Which of some lettered options is picked at random; every trial is a separate context.

    A session goes once through the contexts of a number of options, in mixed order: one pick
    ("single"), or a second pick that does not depend on the first ("independent"), which may have
    been any option. That makes 3, 5 and 7 contexts for 2, 4 and 6 options. Nothing is paid, and no
    prompt tells of earlier trials. The action is the position of the letter; all letters are
    equally probable.
    """

    name = "choice"
    summary = "which of 2, 4 or 6 lettered options is picked, 3 to 7 contexts, no rewards"
    source = "Mondal, Dolamic, Bovet, Cudré-Mauroux and Audiffren 2024, scenario choice"
    kind_names = KINDS
    shared = ("options",)
    factors: ClassVar = {
        "options": (2, 6, "how many options there are"),
        "kind": (0, 1, "0 single, 1 independent"),
        "previous": (-1, 5, "option that was picked before; -1 where there is none"),
    }
    recorded: ClassVar = {"n_options": "options", "kinds": "kind"}
    scenario = 3
    digits = (1, 1, 1)
    n_actions = 4

    n_options: int = setting(4, OneOf(SIZES), "2, 4 or 6.")
    kinds: tuple[Kind, ...] = setting(KINDS, SomeOf(KINDS), "Which part of the grid is used.")

    @classmethod
    def context_at(cls, values: Values) -> Context:
        options, kind, previous = values
        chance, said = uniform(options), previous if kind else None
        return Context(cls.name, values, chance, said, marks_of_places(chance, said))

    def _all(self) -> Iterator[Values]:
        for kind in self.kinds:
            for previous in (NONE,) if kind == "single" else range(self.n_options):
                yield self.n_options, KINDS.index(kind), previous

    def _parts(self, values: Values) -> tuple[Sequence[str], str, dict[str, Any]]:
        options, kind, previous = values
        *before, last = OPTIONS[:options]
        listed = self._words["and"].render(before=", ".join(before), last=last)
        words = {"n_options": options, "options": listed, "previous": OPTIONS[previous]}
        return ("setup",), KINDS[kind], words

    def _names(self, values: Values) -> Sequence[str]:
        return OPTIONS[: values[0]]
