"""The one loop of a session, whoever chooses: agents, language models, dry runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from .design import Design
from .environment import Choice, Environment, Observation, Turn, answer_columns
from .world import World


class Session:
    """A session that takes place, trial by trial.

    ``for seen in session: session.take(choice)`` goes through all trials that happen: the loop
    shows each, and `take` is shown what was chosen. Whoever stops before the end leaves the loop.

    Parameters
    ----------
    environment
        What is played. A copy of it holds the session, so that sessions may share one.
    design
        All that is random about the session.

    Attributes
    ----------
    turns
        The past as its player knows it.
    rows
        The same trials as a record has them: what was seen and concealed, given and paid.
    """

    def __init__(self, environment: Environment, design: Design) -> None:
        self.environment = copy(environment)
        self._seen: Observation | None
        self._seen, _ = self.environment.reset(options={"design": design})
        self.turns: list[Turn] = []
        self.rows: list[dict[str, Any]] = []

    @property
    def over(self) -> bool:
        """Whether the session came to its end."""
        return self._seen is None

    def __iter__(self) -> Iterator[Observation]:
        """Show the present trial, as long as there is one."""
        while self._seen is not None:
            yield self._seen

    def take(self, choice: Choice, text: str = "") -> Turn:
        """Take what was given on the present trial, None if nothing, and go on to the next."""
        if self._seen is None:
            raise RuntimeError(f"The session of {self.environment.name} is over. Begin another.")
        return self._taken(self._seen, int(self._seen["trial"]), choice, text)

    def _taken(self, seen: Observation, trial: int, choice: Choice, text: str) -> Turn:
        """Live the trial that has this number in the design."""
        environment = self.environment
        action, response = environment.split(choice, environment.asks(seen))
        hidden = environment.concealed_at(trial)
        self._seen, reward, *_, info = environment.step(choice)
        turn = Turn(seen, action, reward, text, response, info.get("brought", {}))
        given = {name: getattr(turn, name) for name in answer_columns(environment)}
        brought = {name: turn.brought.get(name) for name in environment.fields.feedback}
        self.turns.append(turn)
        self.rows.append({**seen, **hidden, **given, "reward": reward, **brought})
        return turn


@dataclass(frozen=True)
class Picked:
    """A question that was chosen among those of a session's design.

    Parameters
    ----------
    position : its number in the design, from 0
    information : what its answer was expected to tell, in nats; None where nobody reckoned it
    """

    position: int
    information: float | None = None


# Given the trials so far (as `Session.rows`), the next question; None if the session is to wait.
Pick = Callable[[Sequence[Mapping[str, Any]]], Picked | None]


class ChosenSession(Session):
    """A session whose questions are picked one by one from those of its design.

    Rows have `turn`, the position in time, `picked`, the number of the question in the design, and
    `expected_information`. The number of a trial is that of its question where trials stand alone
    (so that a prompt is read the same way), and its position in time where the past is shown.

    Parameters
    ----------
    environment, design
        As of a `Session`; an experiment that `check_questions` lets pass.
    questions
        How many there are.
    pick
        What picks them.
    """

    def __init__(
        self, environment: Environment, design: Design, questions: int, pick: Pick
    ) -> None:
        check_questions(environment, questions)
        super().__init__(environment, design)
        self._questions, self._pick = questions, pick
        self._own_numbers = environment.past == "none"
        self._picked = Picked(0)
        self._ask()

    @property
    def over(self) -> bool:
        """Whether all questions were posed."""
        return len(self.rows) >= self._questions

    def take(self, choice: Choice, text: str = "") -> Turn:
        """Take what was given on the present question, and go on to the one that is picked."""
        if self._seen is None:
            raise RuntimeError(f"The session of {self.environment.name} is over. Begin another.")
        picked = self._picked
        turn = self._taken(self._seen, picked.position, choice, text)
        self.rows[-1] |= {
            "turn": len(self.rows) - 1,
            "picked": picked.position,
            "expected_information": picked.information,
        }
        self._ask()
        return turn

    def _ask(self) -> None:
        picked = None if self.over else self._pick(self.rows)
        self._seen = None
        if picked is not None:
            self._picked = picked
            seen = self.environment._turn_to(picked.position)
            trial = picked.position if self._own_numbers else len(self.rows)
            self._seen = {**seen, "trial": trial}


def check_questions(environment: Environment, questions: int) -> None:
    """Raise ValueError if so many questions of an experiment cannot be picked one by one.

    A question must not hang on earlier answers, and each must have a separate answer.
    """
    name, most = environment.name, environment.n_trials
    if environment.world.begin is not World.begin or environment.ends_early:
        raise ValueError(
            f"Questions are picked where none hangs on earlier answers; what trials of {name} show "
            "or pay does. Take an experiment that is a list of questions, or a design of it that "
            'is (temporal_discounting with design="grid").'
        )
    if environment.feedback and environment.world.pay is not World.pay:
        raise ValueError(
            f"Questions are picked where nothing is learned; trials of {name} pay rewards. Take an "
            "experiment that is a list of questions."
        )
    if environment.replies.n_prompts != most:
        raise ValueError(
            f"Questions are picked one by one; one reply to {name} answers several. Ask in another "
            "way (its settings say how)."
        )
    if not 1 <= questions <= most:
        raise ValueError(
            f"A session of {name} has {most} questions to pick from; got {questions}. Ask for 1 to "
            f"{most}, or set its size higher."
        )
