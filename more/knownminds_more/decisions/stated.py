"""The base of experiments with stated questions: words, answers by a label, reading back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.design import Design
from knownminds.environments.fields import WORDS, OneOf, Whole, setting
from knownminds.environments.questions import Questions
from knownminds.environments.turn import Observation, Turn
from knownminds.environments.words.answer import Answer, parse_label
from knownminds.environments.words.final_answers import MARKER, marker_of
from knownminds.environments.words.history import REASONINGS, Reasoning
from knownminds.environments.words.prompt import (
    OTHER_WORDS,
    Message,
    Prompt,
    Template,
    load_templates,
)
from knownminds.environments.words.screen import Screen

LABELS = ("K", "M")
Places = Mapping[str, object]  # fills the placeholders of a question, except its number


class StatedQuestions(Questions):
    """Questions that stand alone and are answered by a label; nothing is paid in between.

    A subclass defines the words in the placeholders of its question, the labels of its actions, and
    the list of all possible questions, by which prompts are read back.

    Attributes
    ----------
    noun : The word that may stand before the label in an answer.
    thought : What a simulated participant thinks aloud.
    """

    n_actions = 2
    noun: ClassVar[str] = "option"
    thought: ClassVar[str]
    shipped: Path

    reasoning: Reasoning = setting(
        "none",
        OneOf(REASONINGS),
        '"none" asks for the answer alone; "chain_of_thought" and "step_back" for thoughts first '
        "and the answer in a marked last line.",
        last=True,
    )
    templates: str | None = setting(None, WORDS, OTHER_WORDS, last=True)

    @abstractmethod
    def _places(self, observation: Observation) -> Places:
        """Return the words in the placeholders of a question, except its number."""

    @abstractmethod
    def _labels(self, observation: Observation) -> Sequence[str]:
        """Return the label of each action."""

    @abstractmethod
    def _every(self) -> Iterator[dict[str, Any]]:
        """Yield everything that a trial may show, except its number."""

    def prepare(self) -> None:
        self._words = load_templates(self.templates, self.shipped)
        answer = self._words[f"answer_{self.reasoning}"].text
        self._marker = (marker_of(answer) or MARKER) if self.reasoning != "none" else MARKER
        whole = "\n\n".join((self._words["introduction"].text, self._words["question"].text))
        self._asked = Template(f"{whole}\n{answer}")

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        places = self._places(observation)
        text = self._asked.render(number=int(observation["trial"]) + 1, **places)
        return Prompt((Message("user", text),))

    def screen(self, labels: Any, observation: Observation) -> Screen:
        places = {"number": int(observation["trial"]) + 1, **self._places(observation)}
        question = self._words["question"].render(**places)
        return Screen(self._words["introduction"].text, question, tuple(self._labels(observation)))

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        marked = self.reasoning != "none"
        return parse_label(text, self._labels(observation), marked, self.noun, self._marker)

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        said = self._labels(observation)[choice]
        return said if self.reasoning == "none" else f"{self.thought}\n{self._marker} {said}"

    def read(self, design: Design, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        filled = self._asked.read(messages[0].content) if len(messages) == 1 else None
        if filled is not None:
            number = int(filled.pop("number"))
            seen = self._known.get(frozenset(filled.items()))
            if seen is not None:
                return [], {"trial": number - 1, **seen}
        raise ValueError(
            f"The prompt is not one of {self!r}. Use the settings and templates it was made with."
        )

    @cached_property
    def _known(self) -> dict[frozenset[tuple[str, str]], dict[str, Any]]:
        """The observations by the words that fill the placeholders."""
        names = self._asked.names
        known: dict[frozenset[tuple[str, str]], dict[str, Any]] = {}
        for seen in self._every():
            places = self._places({"trial": 0, **seen})
            key = frozenset((n, str(value)) for n, value in places.items() if n in names)
            if known.setdefault(key, seen) != seen:
                raise ValueError(
                    f"Each question has different words; {known[key]} and {seen} read alike. Let "
                    "the templates tell them apart."
                )
        return known


class ListedQuestions(StatedQuestions):
    """Questions from a list, each asked `repeats` times, in mixed order.

    Attributes
    ----------
    n_numbers : Uniform numbers per question. The first puts it in order. The last decides what is
        named first, if a field `first` records that.
    """

    n_numbers: ClassVar[int] = 2
    _columns: dict[str, NDArray[Any]]

    repeats: int = setting(1, Whole(1), "How often each question is posed.", size=True)

    @abstractmethod
    def _questions(self) -> dict[str, NDArray[Any]]:
        """Return the list, by column, [questions]."""

    def prepare(self) -> None:
        self._columns = self._questions()
        super().prepare()

    @property
    def _n_listed(self) -> int:
        return len(next(iter(self._columns.values())))

    @property
    def n_trials(self) -> int:
        return self.repeats * self._n_listed

    @property
    def n_draws(self) -> int:
        """`n_numbers` uniform numbers per question."""
        return self.n_numbers * self.n_trials

    def tables(self, uniforms: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Return the questions in mixed order."""
        each = uniforms.reshape(len(uniforms), self.n_numbers, -1)
        order = np.argsort(each[:, 0], axis=1) % self._n_listed
        tables = {name: column[order] for name, column in self._columns.items()}
        if "first" in self.fields.shown:
            tables["first"] = (each[:, -1] < 0.5).astype(np.int64)
        return tables

    def _every(self) -> Iterator[dict[str, Any]]:
        named = [{"first": first} for first in (0, 1)] if "first" in self.fields.shown else [{}]
        for k in range(self._n_listed):
            seen = {name: column[k].item() for name, column in self._columns.items()}
            yield from ({**seen, **first} for first in named)
