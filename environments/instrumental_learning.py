"""Instrumental learning: four casinos, two slot machines each, and no word on which is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .answer import Answer
from .design import Design
from .environment import Environment, Observation, Turn
from .prompt import Message, Prompt

LETTERS = "ABCDEFGHJKLMNPQRSTVWZ"  # without I, O, U, X and Y, which read like others

History = Literal["prompt", "chat"]
Reasoning = Literal["none", "chain_of_thought", "step_back"]


class InstrumentalLearning(Environment):
    """Two-armed bandits met in mixed order; each arm pays 1 or 0 at a rate of its own.

    Parameters
    ----------
    n_visits
        Visits to each casino, at least 1; 24 in the original.
    win_probability
        For each casino (context) the win probabilities of its two machines (actions 0 and 1).
    history
        "prompt" retells the past in one message; "chat" sends it as past turns.
    reasoning
        "none" asks for the letter alone; "chain_of_thought" and "step_back" for thoughts first
        and the answer in a marked last line.
    templates
        A TOML file with wording of your own; None for ours.
    """

    name = "instrumental_learning"
    summary = "four two-armed bandits in mixed order, wins of 1 or 0"
    source = "Lefebvre, Lebreton, Meyniel, Bourgeois-Gironde and Palminteri 2017, experiment 1"
    stimulus = ("context", "first")
    n_actions = 2

    def __init__(
        self,
        n_visits: int = 24,
        win_probability: Sequence[Sequence[float]] = (
            (0.25, 0.25),
            (0.25, 0.75),
            (0.75, 0.25),
            (0.75, 0.75),
        ),
        history: History = "prompt",
        reasoning: Reasoning = "none",
        templates: str | None = None,
    ):
        self.n_visits = n_visits
        self.win_probability = np.array(win_probability, dtype=float)
        self.history = history
        self.reasoning = reasoning
        self.templates = templates
        self.n_contexts = len(self.win_probability)
        self._contexts = np.repeat(np.arange(self.n_contexts), n_visits)

    @property
    def settings(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {
            "n_visits": self.n_visits,
            "win_probability": self.win_probability.tolist(),
            "history": self.history,
            "reasoning": self.reasoning,
            "templates": self.templates,
        }

    @property
    def n_trials(self) -> int:
        """Visits to all casinos together."""
        return self.n_contexts * self.n_visits

    def draw(self, rng: np.random.Generator) -> Design:
        """Draw the order of visits, what both machines would pay, the order of mention, letters."""
        context = rng.permutation(self._contexts)
        draws = rng.random((self.n_trials, 3))
        payoffs = (draws[:, :2] < self.win_probability[context]).astype(float)
        first = (draws[:, 2] < 0.5).astype(np.int64)
        letters = rng.permutation(len(LETTERS))[: 2 * self.n_contexts]
        labels = [[LETTERS[i], LETTERS[j]] for i, j in letters.reshape(-1, 2).tolist()]
        return Design({"context": context, "payoffs": payoffs, "first": first}, labels)

    def rewards(self, design: Design, actions: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the actions of a whole session pay."""
        payoffs: NDArray[np.float64] = design.table["payoffs"]
        return payoffs[np.arange(len(payoffs)), actions]

    def _begin(self, design: Design) -> None:
        self._payoffs = design.table["payoffs"].tolist()

    def _reward(self, trial: int, action: int) -> float:
        payoff: float = self._payoffs[trial][action]
        return payoff

    def render(self, observation: Observation, turns: Sequence[Turn]) -> Prompt:
        raise NotImplementedError

    def parse(self, text: str, observation: Observation) -> Answer:
        raise NotImplementedError

    def say(self, action: int, observation: Observation) -> str:
        raise NotImplementedError

    def read(self, messages: Sequence[Message]) -> tuple[list[Turn], Observation]:
        raise NotImplementedError
