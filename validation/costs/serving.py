"""`serve`: a known agent behind an OpenAI-compatible address."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from knownminds.agents import AGENTS
from knownminds.environments import Environment, Prompt
from knownminds.llm_adapters import Synthetic
from knownminds.llm_adapters.known_agents.serve import Served
from knownminds.llm_adapters.known_agents.several import SeveralAgents
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.validation.benchmarks.plan import read_plan
from knownminds.validation.benchmarks.registry import PAPERS
from knownminds.validation.engine.arguments import resolve_environment, set_to
from knownminds.validation.engine.question import verb
from knownminds.validation.engine.usual_models import usual_model

from .connect import known_agent
from .questions import AskServe
from .wordings import wordings_of

INSTRUCTION = 2000  # characters of a prompt in which the number of trials is looked for

serve = verb(AskServe, __name__)


def compute(question: AskServe) -> Served:
    """Answer `serve`; it is the caller who lets it run, and closes it."""
    where: dict[str, Any] = {
        "host": question.host,
        "port": question.port,
        "model": question.name,
        "api_key": _key(question.key_variable),
    }
    if question.environment in PAPERS:
        return Served(None, _players(question), **where)
    for name in ("plan", "small"):
        if getattr(question, name):
            raise ValueError(f"--{name} is of a benchmark; got an experiment. Leave it out.")
    environment = resolve_environment(question.environment, question.trials)
    return Served(None, _in_all_words(question, environment), **where)


def _in_all_words(question: AskServe, environment: Environment) -> SeveralAgents:
    """Return the agent in every wording and, where no number of trials is named, with any."""

    def players(of: Environment) -> list[Synthetic]:
        how: dict[str, Any] = {
            "contaminants": question.contaminants,
            "seed_is_session": question.seed_is_session,
        }
        return [
            Synthetic(known_agent(question.agent, one, question.truth), one, question.seed or 0,
                      *RUN, **how)
            for one in wordings_of(of).values()
        ]  # fmt: skip

    def of_other_sizes(prompt: Prompt) -> Iterator[Synthetic]:
        """Go through players of sessions as long as a number in the instruction says."""
        told = re.findall(r"\d+", prompt.messages[0].content[:INSTRUCTION])
        for size in dict.fromkeys(map(int, told)):
            try:
                yield from players(set_to(environment, {str(environment.size): size}))
            except ValueError:  # no session of so many
                continue

    open_size = question.trials is None and environment.size is not None
    return (
        SeveralAgents(players(environment), of_other_sizes)
        if open_size
        else SeveralAgents(players(environment))
    )


def until_interrupted(question: AskServe, served: Served) -> None:
    """Serve until an interrupt, which then says how many calls were answered."""
    try:
        if question.tell is not None:
            question.tell(
                f"{served.agent} at {served.base_url} as {question.name}; Ctrl-C ends it."
            )
        served.run()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{served.calls} calls were answered, of which nothing is kept; the same command "
            "serves again."
        ) from None
    finally:
        served.close()


def _players(question: AskServe) -> SeveralAgents:
    """Return the agent in each cell of a benchmark that it can play, as `benchmark` lets it play.

    Where no model is named, it is the usual one of each cell.
    """
    plan = read_plan(str(question.environment), question.plan, small=question.small,
                     seed=question.seed)  # fmt: skip
    players = []
    for cell in plan.cells:
        name = usual_model(cell.environment) if question.model is None else question.agent.name
        if AGENTS[name].plays(cell.environment):
            players.append(
                Synthetic(
                    known_agent(AGENTS[name], cell.environment, question.truth),
                    cell.environment,
                    plan.seed,
                    *RUN,
                    contaminants=question.contaminants,
                    seed_is_session=question.seed_is_session,
                    stream=cell.stream(f"synthetic:{name}"),
                )
            )
    if not players:
        raise ValueError(
            f"{question.agent.name} plays no experiment of {question.environment}. Name another "
            "model, or none for the usual ones."
        )
    return SeveralAgents(players)


def _key(variable: str | None) -> str | None:
    """Read a key that requests must bear; None if they need none."""
    key = None if variable is None else os.environ.get(variable, "").strip()
    if key == "":
        raise ValueError(f"The key is read from the variable {variable}, which is empty. Set it.")
    return key
