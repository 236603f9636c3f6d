"""The words of an experiment: prompts, answers, and what people are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from knownminds.environments.configured import Configured
from knownminds.environments.replies import Replies
from knownminds.environments.turn import Observation, Turn

from .answer import Answer
from .prompt import Message, Prompt
from .screen import Screen

if TYPE_CHECKING:
    from knownminds.environments.design import Design

Past = Literal["none", "part", "all"]
_WORDS = ("render", "parse", "say", "read")


class Wording(Configured):
    """How trials are put into words, and answers read from them.

    `render` makes what a player sees in words, and `parse` reads the player's words. Methods take
    the `labels` of the session's design first, since nothing else of a design may show in words.
    `read` takes the whole design, where it looks up what the words do not say. An experiment for
    numbers alone has no `render`, `parse`, `say` and `read`.

    Attributes
    ----------
    past : What a prompt shows of earlier trials: "all"; a "part", such as the last ten (a model
        that remembers more has to keep the rest itself); or "none". With "none" each trial stands
        alone, and `read` finds no turns in its prompt.
    """

    past: ClassVar[Past] = "all"

    @property
    def pictures(self) -> bool:
        """Whether prompts show pictures, so that the participant must be able to see."""
        return False

    @property
    def replies(self) -> Replies:
        """How replies make up answers; by default each trial has one."""
        return Replies(self)

    def labels(self, uniforms: NDArray[np.float64]) -> Any:
        """Return the names that one session uses, given uniforms[n_draws]; JSON-able."""
        return ()

    def recalled(self, turns: Sequence[Turn], observation: Observation) -> Sequence[Turn]:
        """Return the earlier turns that the prompt of a trial shows."""
        return () if self.past == "none" else turns

    def render(self, labels: Any, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        """Put the present trial, and what came before it, into words."""
        raise self._without_words()

    def parse(self, labels: Any, text: str, observation: Observation) -> Answer:
        """Read an answer; an answer that cannot be read has an outcome and no action.

        If a reply answers several trials, the answer to this trial is returned.
        """
        raise self._without_words()

    def say(self, labels: Any, choice: Any, observation: Observation) -> str:
        """Return an answer in the required form: the text of a cooperative participant.

        If one reply answers several trials, `choice` is a tuple with the number of each.
        """
        raise self._without_words()

    def read(self, design: Design, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        """Take a rendered prompt back to turns and observation: the inverse of `render`.

        If trials share a prompt, the observation is that of the first one.
        """
        raise self._without_words()

    def screen(self, labels: Any, observation: Observation) -> Screen:
        """Return what is shown to a person who answers this trial by hand.

        Raises
        ------
        ValueError : If the experiment, or the experiment with these settings, cannot be shown to
            people.
        """
        raise ValueError(
            f"{self.name} does not say what people are shown, so no page can be made of it. "
            "Write its screen, or make it a Retelling, which has one."
        )

    def feedback_text(self, labels: Any, turn: Turn) -> str:
        """Return what a person is shown after an answer; "" if nothing is shown."""
        return ""

    @classmethod
    def has_words(cls) -> bool:
        """Say whether the experiment has words; one without words is for numbers alone."""
        return any(getattr(cls, name) is not getattr(Wording, name) for name in _WORDS)

    def _without_words(self) -> ValueError:
        missing = [name for name in _WORDS if getattr(type(self), name) is getattr(Wording, name)]
        if missing != [*_WORDS]:
            there = [name for name in _WORDS if name not in missing]
            return ValueError(
                f"The words of {self.name} are {', '.join(_WORDS)}; it has {', '.join(there)}, and "
                f"no {' and no '.join(missing)}. Write what is missing."
            )
        return ValueError(
            f"{self.name} has no words, so language models cannot take part in it, and no text "
            f"can be made of it. Write its {', '.join(_WORDS)}."
        )
