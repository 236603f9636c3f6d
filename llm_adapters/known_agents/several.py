"""Known agents of several experiments behind one name: each prompt finds its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain

from knownminds.calling import Sampling
from knownminds.environments import Prompt
from knownminds.environments.record.text_table import counted
from knownminds.llm_adapters.adapter import Failed, Reply

from .synthetic import Synthetic


class SeveralAgents:
    """Known agents of which the first that can read a prompt answers it.

    Of several experiments, those that answer with a number draw it from their distribution,
    whatever the temperature.

    Parameters
    ----------
    players : One for each experiment or wording, at least one.
    further : Returns players that are tried on a prompt which none of these can read; one that can
        stays.
    """

    def __init__(
        self,
        players: Sequence[Synthetic],
        further: Callable[[Prompt], Iterable[Synthetic]] = lambda prompt: (),
    ):
        self.players, self.further = tuple(players), further
        self.agent = self.players[0].agent

    def __repr__(self) -> str:
        agents = ", ".join(dict.fromkeys(type(player.agent).name for player in self.players))
        environments = [player.environment for player in self.players]
        names = {one.name for one in environments}
        where = names.pop() if len(names) == 1 else counted(len(names), "experiment")
        wordings = {one.settings.get("templates") for one in environments}
        return f"{agents} in {where}, {counted(len(wordings), 'wording')}"

    def answer(self, prompt: Prompt, settings: Sampling) -> Reply:
        """Answer the prompt; `Failed` if it is of none of the experiments."""
        names = dict.fromkeys(player.environment.name for player in self.players)
        first = None
        for player in chain(self.players, self.further(prompt)):
            numbers = player.agent.given != "action" and len(names) > 1
            heeded = replace(settings, temperature=None, top_p=None) if numbers else settings
            try:
                reply = player.answer(prompt, heeded)
            except Failed as error:
                if error.then != "skip":
                    raise
                first = first or error
            else:
                if player not in self.players:
                    self.players = (*self.players, player)
                return reply
        if first is not None and len(names) == 1:
            raise first
        raise Failed(
            f"The prompt is of no session of {', '.join(names)}. Use the seed, settings and "
            "templates that these were started with.",
            "skip",
            "prompt",
            charged=False,
        )
