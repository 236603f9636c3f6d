"""Experiments in which one reply answers several trials, or several replies answer one trial."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from .words.answer import CUT_OFF, Answer, Outcome
from .words.prompt import Message, Prompt

if TYPE_CHECKING:
    from .design import Design
    from .fields import Fields
    from .turn import Observation


class AskingExperiment(Protocol):
    """What replies need of the experiment that asks for them."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def past(self) -> str: ...  # noqa: D102
    @property
    def ends_early(self) -> bool: ...  # noqa: D102
    @property
    def fields(self) -> Fields: ...  # noqa: D102
    @property
    def n_trials(self) -> int: ...  # noqa: D102


class Replies:
    """How replies make up the answers of an experiment; by default each trial has one reply.

    An experiment of another kind returns a subclass as `Environment.replies`. There are two such
    kinds. In the first, a reply answers several trials (`continues`, `together`, `n_prompts`).
    These trials share a prompt, follow each other, ask for numbers and show nothing earlier. In the
    second, an answer is made of several replies (`spoken`, `further`, `joined`, `n_given`). Each is
    requested once the one before could be read.
    """

    environment: AskingExperiment

    def __init__(self, environment: Any):
        self.environment = environment

    def continues(self, observation: Observation) -> bool:
        """Say whether the reply to the trial before answers this trial too."""
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
        """Read an answer that was cut off at the limit of tokens; by default, nothing is read."""
        return Answer(Outcome.TRUNCATED, text=text, note=CUT_OFF)

    def spoken(self, text: str) -> list[str]:
        """Return the replies that make up the text of an answer."""
        return [text]

    def further(self, prompt: Prompt, answer: Answer) -> Prompt | None:
        """Return the next prompt of the same trial; None if there is none.

        Parameters
        ----------
        prompt : The prompt of the latest reply.
        answer : The answer, as far as it has come.
        """
        return None

    def joined(self, before: str, reply: str) -> str:
        """Return the text of an answer after one more reply; `before` is the text so far."""
        raise NotImplementedError(f"A trial of {self.environment.name} takes one reply.")

    def n_given(self, messages: Sequence[Message]) -> int:
        """Return how many replies to the present trial a prompt already holds."""
        return 0
