"""Known agents of several experiments behind one name: each prompt finds its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from knownminds.environments import Prompt
from knownminds.llm_adapters.adapter import Failed, Reply, Sampling

from .synthetic import Synthetic


class SeveralAgents:
    """Known agents of which the first that can read a prompt answers it.

    Agents that answer with a number draw it from their distribution, whatever the temperature.

    Parameters
    ----------
    players
        One for each experiment, at least one.
    """

    def __init__(self, players: Sequence[Synthetic]):
        self.players = tuple(players)
        self.agent = self.players[0].agent

    def __repr__(self) -> str:
        """Name the agents."""
        names = dict.fromkeys(type(player.agent).name for player in self.players)
        return f"known agents of {len(self.players)} cells ({', '.join(names)})"

    def answer(self, prompt: Prompt, settings: Sampling) -> Reply:
        """Answer the prompt; `Failed` if it is of none of the experiments."""
        for player in self.players:
            numbers = player.agent.given != "action"
            heeded = replace(settings, temperature=None, top_p=None) if numbers else settings
            try:
                return player.answer(prompt, heeded)
            except Failed as error:
                if error.then != "skip":
                    raise
        names = dict.fromkeys(player.environment.name for player in self.players)
        raise Failed(
            f"The prompt is of no session of {', '.join(names)}. Use the seed, settings and "
            "templates that these were started with.",
            "skip",
            "prompt",
            charged=False,
        )
