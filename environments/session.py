"""The one loop of a session, whoever chooses: agents, language models, dry runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knownminds.environments.record.recording import answer_columns
from knownminds.environments.words.answer import Answer
from knownminds.environments.words.prompt import Prompt

from .design import Design
from .environment import Environment
from .turn import Choice, Observation, Turn, Turns
from .world import TrialTables, World, plain

# Each field has its name and its values by trial, or None if they depend on earlier actions.
_Columns = Sequence[tuple[str, list[Any] | None]]


class Session:
    """A session that is played trial by trial.

    ``for seen in session: session.take(choice)`` goes through all trials that happen. The loop
    shows each trial, and `take` gets the choice. To stop before the end, leave the loop.

    Parameters
    ----------
    environment : The experiment.
    design : Everything random about the session.

    Attributes
    ----------
    turns : The past as its player knows it.
    rows : The same trials as a record has them: what was shown and hidden, given and paid.

    Raises
    ------
    ValueError : If the design lacks the table of a field.
    """

    def __init__(self, environment: Environment, design: Design) -> None:
        self.environment, self.design = environment, design
        self.turns = Turns()
        self.rows: list[dict[str, Any]] = []
        table, fields, world = design.table, environment.fields, environment.world
        self._answers, self._feedback = answer_columns(environment), fields.feedback
        lacks = {*fields.shown, *fields.hidden} - {*fields.dependent, *table}
        if lacks:
            written = inspect.unwrap(type(environment).tables).__code__
            raise ValueError(
                f"`tables` ({Path(written.co_filename).name}, line {written.co_firstlineno}) makes "
                f"a table for each field that no action decides; got {', '.join(table)}, and no "
                f"{', '.join(sorted(lacks))}. Let tables and fields have the same names."
            )
        # These are plain lists, since a loop would spend most of its time on NumPy scalars.
        self._shown, self._hidden = (
            [(name, None if name in fields.dependent else table[name].tolist()) for name in names]
            for names in (fields.shown, fields.hidden)
        )
        self._present = table["present"].tolist() if "present" in table else None
        self._spans = table[world.span].tolist() if world.span else [0] * environment.n_trials
        self._span: Any = None
        self._world, self._drawn = world(), TrialTables(table)
        self._seen: Observation | None = None
        self._turn_to(0)

    @property
    def over(self) -> bool:
        """Whether the session has ended."""
        return self._seen is None

    @property
    def seen(self) -> Observation:
        """The observation of the present trial; RuntimeError after the last one."""
        if self._seen is None:
            raise RuntimeError(f"The session of {self.environment.name} is over. Begin another.")
        return self._seen

    def __iter__(self) -> Iterator[Observation]:
        """Show the present trial, as long as there is one; RuntimeError if it got no choice."""
        while self._seen is not None:
            seen = self._seen
            yield seen
            if self._seen is seen:
                raise RuntimeError(
                    "A trial that is shown takes a choice before the next one: session.take(choice)"
                )

    def render(self) -> Prompt:
        """Put the present trial, and what came before it, into words."""
        return self.environment.render(self.design.labels, self.seen, self.turns)

    def parse(self, text: str) -> Answer:
        """Read an answer to the present trial."""
        return self.environment.parse(self.design.labels, text, self.seen)

    def say(self, choice: Any) -> str:
        """Return an answer to the present trial in the required form."""
        return self.environment.say(self.design.labels, choice, self.seen)

    def take(self, choice: Choice, text: str = "") -> Turn:
        """Take the choice on the present trial, None if there is none, and go on to the next trial.

        Raises
        ------
        RuntimeError : If the session is over.
        ValueError : If the trial does not ask for such a choice.
        """
        seen, environment = self.seen, self.environment
        asked = environment.asks(seen) if environment.given == "either" else environment.given
        action, response = environment.split(choice, asked)
        paid = self._world.pay(self._drawn, -1 if action is None else action)
        reward: float | None = None
        brought: dict[str, float] = {}
        if choice is not None and type(paid) is dict:
            brought = {name: plain(paid[name]) for name in self._feedback}
            reward = plain(paid["reward"])
        elif choice is not None:
            reward = plain(paid)
        turn = Turn(seen, action, reward, text, response, brought)
        row: dict[str, Any] = dict(seen)
        if self._hidden:
            self._at_present(self._hidden, row)
        for name in self._answers:
            row[name] = action if name == "action" else response
        row["reward"] = reward
        for name in self._feedback:
            row[name] = brought.get(name)
        self.turns.append(turn)
        self.rows.append(row)
        self._go_on()
        return turn

    def _go_on(self) -> None:
        """Turn to the trial after the present one."""
        self._turn_to(self._trial + 1)

    def _turn_to(self, trial: int) -> None:
        """Turn to the next trial that happens, from this one on; if there is none, to the end."""
        present, spans, end = self._present, self._spans, len(self._spans)
        while trial < end:
            if present is None or present[trial]:
                if spans[trial] != self._span:
                    self._span = spans[trial]
                    self._world.begin()
                self._drawn.at(trial)
                self._showing = self._world.show(self._drawn)
                if self._showing.get("present", True):
                    break
                while (
                    self._world.falls_for_good
                    and trial + 1 < end
                    and spans[trial + 1] == self._span
                ):
                    trial += 1
            trial += 1
        self._trial = trial
        self._seen = None if trial >= end else self._at_present(self._shown, {"trial": trial})

    def _at_present(self, columns: _Columns, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row with the values of fields on the present trial."""
        for name, column in columns:
            row[name] = plain(self._showing[name]) if column is None else column[self._trial]
        return row


@dataclass(frozen=True)
class PickedQuestion:
    """A question that was chosen among those of a session's design.

    Parameters
    ----------
    position : its number in the design, from 0
    information : the expected information of its answer, in nats; None if it was not computed
    """

    position: int
    information: float | None = None


# A pick gets the trials so far (as `Session.rows`) and returns the next question, or None to wait.
Pick = Callable[[Sequence[Mapping[str, Any]]], PickedQuestion | None]


class ChosenSession(Session):
    """A session whose questions are picked one by one from those of its design.

    Rows have the columns `turn` (the position in time), `picked` (the number of the question in the
    design) and `expected_information`. If trials stand alone, the number of a trial is that of its
    question, so that a prompt is read the same way. If the past is shown, it is its position in
    time.

    Parameters
    ----------
    environment, design : As for a `Session`; the experiment must pass `check_questions`.
    questions : How many questions are asked.
    pick : The function that picks the next question.
    """

    def __init__(
        self, environment: Environment, design: Design, questions: int, pick: Pick
    ) -> None:
        check_questions(environment, questions)
        self._questions, self._pick = questions, pick
        super().__init__(environment, design)
        self._ask()

    @property
    def over(self) -> bool:
        """Whether all questions were asked."""
        return len(self.rows) >= self._questions

    def _go_on(self) -> None:
        self.rows[-1] |= {
            "turn": len(self.rows) - 1,
            "picked": self._picked.position,
            "expected_information": self._picked.information,
        }
        self._ask()

    def _ask(self) -> None:
        """Turn to the question that is picked; the session waits if none is."""
        picked = None if self.over else self._pick(self.rows)
        self._seen = None
        if picked is not None:
            self._picked = picked
            self._turn_to(picked.position)
            if self.environment.past != "none":
                self._seen = {**self.seen, "trial": len(self.rows)}


def check_questions(environment: Environment, questions: int) -> None:
    """Raise ValueError unless so many questions of an experiment can be picked one by one.

    No question may depend on earlier answers, and each must have an answer of its own.
    """
    name, most = environment.name, environment.n_trials
    if environment.world.begin is not World.begin or environment.ends_early:
        raise ValueError(
            f"Questions are picked if none depends on earlier answers; what trials of {name} show "
            "or pay does. Take an experiment that is a list of questions, or a design of it that "
            'is (temporal_discounting with design="grid").'
        )
    if environment.feedback and environment.world.pay is not World.pay:
        raise ValueError(
            f"Questions are picked if nothing is learned; trials of {name} pay rewards. Take an "
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
