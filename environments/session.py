"""The one loop in which a session is lived, whoever chooses: agents, language models, dry runs."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

from .design import Design
from .environment import Choice, Environment, Observation, Turn, answer_columns


class Session:
    """A session that is being lived, trial by trial.

    ``for seen in session: session.take(choice)`` goes through all trials that take place: the loop
    shows each, and `take` is told what was chosen. Whoever stops before the end leaves the loop.

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
        environment, seen = self.environment, self._seen
        action, response = environment.split(choice, environment.asks(seen))
        hidden = environment.concealed_at(int(seen["trial"]))
        self._seen, reward, *_, info = environment.step(choice)
        turn = Turn(seen, action, reward, text, response, info.get("brought", {}))
        given = {name: getattr(turn, name) for name in answer_columns(environment)}
        brought = {name: turn.brought.get(name) for name in environment.fields.feedback}
        self.turns.append(turn)
        self.rows.append({**seen, **hidden, **given, "reward": reward, **brought})
        return turn
