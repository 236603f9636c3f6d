"""Questions that stand alone: nothing is paid, nothing is retold, and a prompt is one message."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .design import Design
from .environment import Environment
from .record.trials import Trials
from .turn import Observation, Turn
from .words.answer import Answer, decimal, parse_label
from .words.prompt import Message, Prompt, Template


class Questions(Environment):
    """An experiment whose trials are independent questions.

    Its words are two tables, unless it writes `render`, `parse` and `say` itself.

    Attributes
    ----------
    wordings : Texts of a question, with a placeholder for each field that they show, and {number}
        for the number of the question, from 1. Of several, the field with the role "wording" says
        which.
    letters : What the answer says, by action.
    """

    feedback = False
    past = "none"
    wordings: ClassVar[tuple[str, ...]] = ()
    letters: ClassVar[Sequence[str]] = ()

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        """Put a question into words."""
        if not self.wordings:
            raise self._without_words()
        which = next((int(observation[name]) for name in self.fields.wording), 0)
        words = {"number": decimal(observation["trial"] + 1)}
        words |= {name: decimal(observation[name]) for name in self.fields.shown}
        return Prompt((Message("user", Template(self.wordings[which]).render(**words)),))

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read which letter the answer names."""
        if not self.letters:
            raise self._without_words()
        return parse_label(text, self.letters)

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        """Answer with the letter of an action."""
        if not self.letters:
            raise self._without_words()
        return self.letters[int(choice)]

    @classmethod
    def has_words(cls) -> bool:
        """Say whether the experiment has words; one without words is for numbers alone."""
        return bool(cls.wordings) or cls.render is not Questions.render

    def _without_words(self) -> ValueError:
        return ValueError(
            f"{self.name} has no words, so language models cannot take part in it, and no text can "
            "be made of it. Write its `wordings` and `letters`, or its render, parse and say."
        )

    def read(self, design: Design, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to its observation; there are no turns in it.

        What the words do not show is taken from the session's design.

        Raises
        ------
        ValueError : If the messages are not a prompt of this session.
        """
        shown = _shown_by_prompt(self, design)
        text = messages[0].content if len(messages) == 1 else ""
        if text not in shown:
            begun = f" that begins {text[:60]!r}" if text else ""
            raise ValueError(
                f"A prompt of {self.name} is one message, with a question of its session; got "
                f"{len(messages)}{begun}. Use the seed, settings and templates it was rendered "
                "with."
            )
        return [], shown[text]


@lru_cache(maxsize=16)  # so many sessions are read at the same time
def _shown_by_prompt(environment: Questions, design: Design) -> dict[str, Observation]:
    """Return the first trial of a session for each prompt, by the words of the prompt."""
    shown: dict[str, Observation] = {}
    for trial in range(environment.n_trials):
        observation = {"trial": trial, **design.at(trial, environment.fields.shown)}
        prompt = environment.render(design.labels, observation, ())
        shown.setdefault(prompt.messages[0].content, observation)
    return shown


def positions_of(trials: Trials, column: str, known: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the positions of the names in a column, [rows]; ValueError if one is unknown."""
    values = trials.frame[column]
    wrong = np.flatnonzero(~values.isin(known))
    if len(wrong):
        raise ValueError(
            f"The column {column!r} names one of {', '.join(known)}, or its position there from "
            f"0; {trials.row_name(wrong[0])} has {values[wrong[0]]!r}. Correct it."
        )
    return np.array([known.index(value) for value in values.tolist()])
