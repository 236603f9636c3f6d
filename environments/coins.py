"""Coins: a text about tossed coins breaks off, and a number has to complete it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from .answer import Answer, parse_beginning, parse_label
from .chance import Chance, binomial, share_of
from .environment import Environment, Observation, Turn
from .prompt import Message, Prompt, Role, Template, load_templates

if TYPE_CHECKING:
    from .trials import Trials

Face = Literal["heads", "tails"]
Kind = Literal["single", "independent", "dependent"]
Form = Literal["question", "continuation"]
FACES: tuple[str, ...] = get_args(Face)
KINDS: tuple[str, ...] = get_args(Kind)
FORMS: tuple[str, ...] = get_args(Form)
SIZES = (2, 3)
NONE_BEFORE = -1  # the previous number where there was no earlier toss
Context = tuple[int, int, int, int, int]  # the stimulus columns

_COINS = frozenset({"n_coins", "face", "other"})
WANTED = {
    "setup": frozenset({"n_coins"}),
    "fair": _COINS,
    "weighted": _COINS | {"weight"},
    "single": _COINS,
    "independent": _COINS | {"previous"},
    "dependent": _COINS | {"previous"},
    "heads": frozenset[str](),
    "tails": frozenset[str](),
    "question": frozenset({"context"}),
}
REQUIRED = {
    "weighted": ("weight",),
    "single": ("face",),
    "independent": ("face", "previous"),
    "dependent": ("face", "previous"),
    "question": ("context",),
}


class Coins(Environment):
    """How many of some tossed coins show a face; every trial is a context of its own.

    A session goes once through the grid of contexts, in mixed order: the face that is counted,
    how much more often it comes up than the other, and whether there is one toss ("single"), a
    second one that has nothing to do with the first ("independent"), or a second one whose
    number is added to that of the first ("dependent"), whose number is told. That makes 42
    contexts of 2 coins and 54 of 3. Nothing is paid, and no prompt tells of earlier trials.

    The action is how many of the coins of the last toss show the face. What is said is that
    number, or, after a dependent toss, the sum of both tosses. The truth is the same for all
    three kinds: a binomial distribution in which the face has the probability k / (k + 1).

    To draw many answers to the same context, live many sessions: each has a sampling seed of its
    own. Within a session one seed goes with all prompts, so that a context that came again would
    bring the same answer again.

    Trials have the columns coins; face (0 heads, 1 tails, the one that is counted); weight (k);
    kind (0 single, 1 independent, 2 dependent); and previous (the number of the first toss, -1
    where there is none).

    Parameters
    ----------
    n_coins
        2 or 3.
    faces, weights, kinds
        Which part of the grid is asked; all of it in the original. A weight is a whole number
        from 1 on: how many times as often as the other face the counted one comes up.
    form
        "question" asks for the number that completes the text, and the reply has to be that
        number. "continuation" has the text as a message that the participant has begun, which
        breaks off right before the number: for models that can be made to go on with it, as a
        local model can; the answer is what its continuation begins with.
    templates
        A TOML file with wording of your own; None for ours, `coins.toml`.
    """

    name = "coins"
    summary = "how many of 2 or 3 tossed coins show a face, 42 or 54 contexts, no rewards"
    source = "Mondal, Dolamic, Bovet, Cudré-Mauroux and Audiffren 2024, scenario coins"
    stimulus = ("coins", "face", "weight", "kind", "previous")
    n_actions = 3  # and 4 where there are 3 coins
    feedback = False
    retold = False

    def __init__(
        self,
        n_coins: int = 2,
        faces: Sequence[Face] = ("heads", "tails"),
        weights: Sequence[int] = (1, 3, 5),
        kinds: Sequence[Kind] = ("single", "independent", "dependent"),
        form: Form = "question",
        templates: str | None = None,
    ):
        if isinstance(n_coins, bool) or n_coins not in SIZES:
            raise ValueError(f"n_coins is one of {', '.join(map(str, SIZES))}; got {n_coins!r}.")
        if form not in FORMS:
            raise ValueError(f"form is one of {', '.join(FORMS)}; got {form!r}.")
        self.n_coins = int(n_coins)
        self.faces = _part_of("faces", faces, FACES)
        self.kinds = _part_of("kinds", kinds, KINDS)
        self.weights = _weights(weights)
        self.form = form
        self.templates = templates
        self.n_actions = self.n_coins + 1

        self._chances = self._grid()
        self._load_words(templates)

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "n_coins": self.n_coins,
            "faces": list(self.faces),
            "weights": list(self.weights),
            "kinds": list(self.kinds),
            "form": self.form,
            "templates": self.templates,
        }

    @property
    def n_trials(self) -> int:
        """As many as there are contexts."""
        return len(self._chances)

    @property
    def bounds(self) -> dict[str, tuple[int, int] | tuple[float, float]]:
        """What the columns hold over all settings, but for the weights."""
        return {
            "coins": (min(SIZES), max(SIZES)),
            "face": (0, len(FACES) - 1),
            "weight": (1, max(self.weights)),
            "kind": (0, len(KINDS) - 1),
            "previous": (NONE_BEFORE, self.n_coins),
        }

    @property
    def n_draws(self) -> int:
        """One number per context, to put them in order."""
        return self.n_trials

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the contexts in the order in which they are asked."""
        order = np.argsort(uniforms, axis=1)
        columns = np.array(list(self._chances), dtype=np.int64).T
        return {name: c[order] for name, c in zip(self.stimulus, columns, strict=True)}

    def truth(self, observation: Observation) -> NDArray[np.float64]:
        """Return the exact probability of each action, [n_actions].

        Every experiment in which an outcome has to be told, and not chosen, has this method.
        """
        return self._chance(observation).probabilities

    def check(self, trials: Trials) -> None:
        """Raise ValueError at the first trial this experiment cannot have produced."""
        if set(self.stimulus) <= set(trials.frame):
            # Before the actions: how many there are hangs on the number of coins.
            self._check_contexts(trials)
        super().check(trials)

    def render(self, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        """Put the context into words; earlier trials are not told."""
        role: Role = "assistant" if self.form == "continuation" else "user"
        return Prompt((Message(role, self._texts[self._context(observation)]),))

    def parse(self, text: str, observation: Observation) -> Answer:
        """Read the number; one that cannot come out is malformed.

        In the form "continuation" it is what the text begins with, however it goes on.
        """
        if self.form == "continuation":
            return parse_beginning(text, self._numbers(observation))
        return parse_label(text, self._numbers(observation))

    def parse_cut(self, text: str, observation: Observation) -> Answer:
        """Read what a continuation begins with, if that is certain; of a reply, nothing."""
        if self.form == "continuation":
            return parse_beginning(text, self._numbers(observation), cut=True)
        return super().parse_cut(text, observation)

    def say(self, action: int, observation: Observation) -> str:
        """Answer as asked: with the number alone."""
        return self._numbers(observation)[action]

    def read(self, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to its observation; there are no turns in it.

        Raises ValueError if the messages are not a prompt of this environment with these settings.
        """
        context = self._contexts.get(messages[0].content) if len(messages) == 1 else None
        if context is None:
            begun = f" that begins {messages[0].content[:60]!r}" if messages else ""
            raise ValueError(
                f"A prompt of {self.name} is one message, with a context of its grid; got "
                f"{len(messages)}{begun}. Use the settings and templates it was rendered with."
            )
        table = self.design.table
        asked = list(zip(*(table[name].tolist() for name in self.stimulus), strict=True))
        return [], {
            "trial": asked.index(context),
            **dict(zip(self.stimulus, context, strict=True)),
        }

    def _grid(self) -> dict[Context, Chance]:
        """Return all contexts, each with the chances of the number that is asked for."""
        grid = {}
        for face, weight, kind in product(self.faces, self.weights, self.kinds):
            toss = binomial(self.n_coins, share_of(weight))
            for previous in (NONE_BEFORE,) if kind == "single" else toss.outcomes:
                context = (self.n_coins, FACES.index(face), weight, KINDS.index(kind), previous)
                grid[context] = toss.shifted(previous) if kind == "dependent" else toss
        return grid

    def _load_words(self, templates: str | None) -> None:
        words = load_templates(templates or Path(__file__).with_suffix(".toml"), WANTED, REQUIRED)
        self._texts: dict[Context, str] = {}
        self._contexts: dict[str, Context] = {}
        for context in self._chances:
            text = self._text(context, words)
            same = self._contexts.setdefault(text, context)
            if same != context:
                raise ValueError(
                    f"Each context has words of its own; {_told(same)} and {_told(context)} both "
                    f"read {text!r}. Let the templates tell them apart."
                )
            self._texts[context] = text

    def _text(self, context: Context, words: Mapping[str, Template]) -> str:
        _, face, weight, kind, previous = context
        values = {
            "n_coins": self.n_coins,
            "face": words[FACES[face]].text,
            "other": words[FACES[1 - face]].text,
            "weight": weight,
            "previous": previous,
        }
        parts = ("setup", "fair" if weight == 1 else "weighted", KINDS[kind])
        text = " ".join(words[part].render(**values) for part in parts)
        return words["question"].render(context=text) if self.form == "question" else text

    def _context(self, observation: Observation) -> Context:
        coins, face, weight, kind, previous = (int(observation[name]) for name in self.stimulus)
        context = (coins, face, weight, kind, previous)
        if context not in self._chances:
            raise ValueError(f"{_told(context)} is no context of {self!r}.")
        return context

    def _chance(self, observation: Observation) -> Chance:
        return self._chances[self._context(observation)]

    def _numbers(self, observation: Observation) -> list[str]:
        return [str(outcome) for outcome in self._chance(observation).outcomes]

    def _check_contexts(self, trials: Trials) -> None:
        columns = [pd.to_numeric(trials.frame[name], errors="coerce") for name in self.stimulus]
        asked = pd.MultiIndex.from_arrays([column.astype(float) for column in columns])
        wrong = np.flatnonzero(~asked.isin(pd.MultiIndex.from_tuples(list(self._chances))))
        if len(wrong):
            row = trials.frame.iloc[wrong[0]]
            got = ", ".join(f"{name} {row[name]}" for name in self.stimulus)
            raise ValueError(
                f"Trials of {self.name} ask contexts of its grid; {trials.place(wrong[0])} has "
                f"{got}, which is none of {self!r}. Use the settings it was asked with, or leave "
                "such rows out."
            )


def _told(context: Context) -> str:
    return ", ".join(f"{n} {v}" for n, v in zip(Coins.stimulus, context, strict=True))


def _part_of(name: str, given: Any, known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the chosen members in their order in the grid."""
    many = isinstance(given, Iterable) and not isinstance(given, str)
    chosen = list(given) if many else [given]
    strange = [member for member in chosen if member not in known]
    if strange or not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"{name} are one or more of {', '.join(known)}, each once; got {given!r}.")
    return tuple(member for member in known if member in chosen)


def _weights(given: Any) -> tuple[int, ...]:
    chosen = list(given) if isinstance(given, Iterable) else [given]
    whole = all(
        isinstance(weight, int | np.integer) and not isinstance(weight, bool) and weight >= 1
        for weight in chosen
    )
    if not whole or not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(
            f"weights are one or more whole numbers from 1 on, each once; got {given!r}."
        )
    return tuple(sorted(map(int, chosen)))
