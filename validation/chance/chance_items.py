"""Questions about chance: contexts of a grid, and questions about them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from knownminds.environments import Observation, Prompt, Session, session_stream
from knownminds.environments.chance.context_grid import LETTERS, NONE, ContextGrid
from knownminds.inference.chance.revealed_belief import DescribedContext, context_name, set_ups_of
from knownminds.llm_adapters.runs.participant import RUN


class ChanceItem(NamedTuple):
    """A context, or a question about it.

    Parameters
    ----------
    environment : the experiment that it belongs to
    observation : what the experiment shows
    set_up : the outcomes that may come, or the letters
    prompt : as a participant gets it
    context : name of the context, also of a question
    outcome : position of the outcome that a question is about; -1 for none
    options : the probabilities that a question offers, [5]; none for a context
    correct : position of the right one; -1 for none
    """

    environment: ContextGrid
    observation: Observation
    set_up: DescribedContext
    prompt: str | Prompt
    context: str
    outcome: int = NONE
    options: tuple[float, ...] = ()
    correct: int = NONE


def contexts_of(environments: Iterable[ContextGrid], *, plain: bool) -> list[ChanceItem]:
    """Return all contexts of some experiments.

    Parameters
    ----------
    plain : Whether the text alone is the prompt, without any chat template around it.
    """
    items = []
    for environment in environments:
        set_ups = set_ups_of(environment)
        for trial, (context, set_up) in enumerate(zip(environment.contexts, set_ups, strict=True)):
            values = dict(zip(environment.factors, context.values, strict=True))
            cell = int(environment.cells(np.array([context.values]))[0])
            none = {"asked": NONE, "correct": NONE, "arrangement": NONE}
            observation = {"trial": trial, **values, "cell": cell, **none}
            prompt: str | Prompt = environment.render((), observation, [])
            if plain and isinstance(prompt, Prompt):
                prompt = prompt.messages[-1].content
            items.append(ChanceItem(environment, observation, set_up, prompt, set_up.name))
    return items


def questions_of(environments: Iterable[ContextGrid], seed: int) -> list[ChanceItem]:
    """Return one question about each context, as the first session with this seed has them."""
    items = []
    for environment in environments:
        design = environment.draw(session_stream(seed, *RUN, 0))
        session = Session(environment, design)
        for observation in session:
            items.append(question_about(environment, observation))
            session.take(0)
    return items


def question_about(environment: ContextGrid, observation: Observation) -> ChanceItem:
    """Return the question that an experiment of stated probabilities shows."""
    name = context_name(environment.factors, [observation[n] for n in environment.factors])
    correct, outcome = int(observation["correct"]), int(observation["asked"])
    set_up = DescribedContext(
        name=f"{name}, outcome {outcome}, letter {LETTERS[correct]}",
        outcomes=LETTERS,
        truth=environment.truth(observation),
        scenario=environment.name,
    )
    return ChanceItem(
        environment,
        observation,
        set_up,
        environment.render((), observation, []),
        name,
        outcome,
        tuple(map(float, environment.options(observation))),
        correct,
    )
