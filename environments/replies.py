"""Where trials and replies are not one to one: a reply for several trials, or several for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .words.answer import CUT_OFF, Answer, Outcome
from .words.prompt import Message, Prompt

if TYPE_CHECKING:
    from .design import Design
    from .environment import Environment, Observation


class Replies:
    """How replies make up the answers of an experiment; by default each trial has one.

    An experiment of another kind returns a subclass as `Environment.replies`. Two kinds are there:
    a reply that answers several trials (`continues`, `together`, `n_prompts`), which then share a
    prompt, follow each other, ask for numbers and tell of nothing earlier; and an answer that is
    made of several replies (`spoken`, `further`, `joined`, `n_given`), each requested when the one
    before could be read.
    """

    def __init__(self, environment: Environment):
        self.environment = environment

    def continues(self, observation: Observation) -> bool:
        """Say whether the reply to the trial before answers this one too."""
        return False

    def together(self, design: Design, observation: Observation) -> list[Observation]:
        """Return the trials of a session that one reply answers, from this one on."""
        return [observation]

    @property
    def stand_alone(self) -> bool:
        """Whether the question of a trial is known before any other trial is answered."""
        environment = self.environment
        return (
            environment.past == "none"
            and not environment.fields.dependent
            and not environment.ends_early
            and type(self).further is Replies.further
        )

    @property
    def n_prompts(self) -> int:
        """How many questions a session asks at most: its trials, less those that share a reply."""
        return self.environment.n_trials

    def cut(self, text: str, observation: Observation) -> Answer:
        """Read an answer that was cut off at the limit of tokens: by default, nothing."""
        return Answer(Outcome.TRUNCATED, text=text, note=CUT_OFF)

    def spoken(self, text: str) -> list[str]:
        """Return the replies of which the text of an answer is made."""
        return [text]

    def further(self, prompt: Prompt, answer: Answer) -> Prompt | None:
        """Return what is shown next in the same trial; None if nothing is.

        Parameters
        ----------
        prompt
            That of the latest reply.
        answer
            As far as it has come.
        """
        return None

    def joined(self, before: str, reply: str) -> str:
        """Return the text of an answer, of which there was a part before, with one more reply."""
        raise NotImplementedError(f"A trial of {self.environment.name} takes one reply.")

    def n_given(self, messages: Sequence[Message]) -> int:
        """Return how many replies to the present trial a prompt has already."""
        return 0
