"""What is asked about chance: contexts of a grid, and questions about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from knownminds.environments import Observation, Prompt, session_stream, unknown
from knownminds.environments.chance.outcome_grid import (
    ASKINGS,
    DISTRACTORS,
    FORMS,
    LETTERS,
    NONE,
    Asking,
    BrokenOff,
    Distractors,
    Form,
)
from knownminds.environments.chance.scenarios import SCENARIOS, complete_grid
from knownminds.inference.chance.revealed_belief import (
    LITTLE_MASS,
    SOURCES,
    SetUp,
    Source,
    context_name,
    set_ups_of,
)
from knownminds.llm_adapters.providers.token_sampler import TOKENISATIONS, Tokenisation
from knownminds.llm_adapters.runs.participant import RUN
from knownminds.validation.engine.arguments import one_of

GRID = ("n_dice", "n_faces", "n_coins", "n_options")  # sizes of the grid


@dataclass(frozen=True)
class RevealQuestion:
    """What every model is asked, and how its answers are read.

    Parameters
    ----------
    scenarios
        Of dice, coins, choice and preference.
    form
        "continuation" or "question", see `BrokenOff`; None for the former where the source is
        exact, and the latter elsewhere.
    source
        "exact": the probability of whole outcomes under a local model. "top-k": from the most
        probable tokens that an interface tells, with bounds. "sampled": from counts of answers.
        None for the best one that a model has; one without log-probabilities is refused.
    draws
        Answers to each context, of sampled beliefs, and of a known agent's top-k tables.
    top
        Alternatives that are told with each token.
    stated
        Whether the five-option question about one outcome of each context is asked as well.
    distractors
        Its wrong options: "published" or "plausible".
    asking
        How it is asked: "whole", as the original does, or "gap", see `BrokenOff`.
    even_faces
        Whether only dice with an even number of faces are thrown.
    only
        Sizes of the grid to stay with: n_dice, n_faces, n_coins, n_options; those that a scenario
        does not have leave it whole.
    chat
        Whether a context that a local model continues stands in its chat template, as a message
        that it has begun; otherwise the model gets the text alone.
    signs
        Whether an exact reading looks at what follows a sign behind an outcome ("7.5").
    threshold
        Least retained mass of a context that is not flagged.
    truth, tokens, space, leak
        Of a known agent: its parameters; "single", "digits" or "pairs" (byte-pair); the share of
        its outcomes with a space before them; and of what it says that is no outcome.

    Raises
    ------
    ValueError
        If a value does not fit the rules.
    """

    scenarios: tuple[str, ...] = tuple(SCENARIOS)
    form: Form | None = None
    source: Source | None = None
    draws: int = 50
    top: int = 20
    stated: bool = True
    distractors: Distractors = "published"
    asking: Asking = "whole"
    even_faces: bool = False
    only: Mapping[str, int] = field(default_factory=dict)
    chat: bool = False
    signs: bool = True
    threshold: float = LITTLE_MASS
    truth: Mapping[str, float] = field(default_factory=dict)
    tokens: Tokenisation = "digits"
    space: float = 0.5
    leak: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check every value."""
        object.__setattr__(self, "scenarios", tuple(dict.fromkeys(self.scenarios)))
        for name in ("only", "truth"):
            object.__setattr__(self, name, dict(getattr(self, name) or {}))
        if self.form is not None:
            one_of("form", self.form, [name for name in FORMS if name != "stated"])
        if self.source is not None:
            one_of("source", self.source, SOURCES)
        one_of("distractors", self.distractors, DISTRACTORS)
        one_of("asking", self.asking, ASKINGS)
        one_of("tokens", self.tokens, TOKENISATIONS)
        if self.draws < 1 or self.top < 1:
            raise ValueError(f"draws and top are at least 1; got {self.draws} and {self.top}.")

    def environments(self, form: Form) -> tuple[BrokenOff, ...]:
        """Return the experiments of the complete grid that belong to the scenarios."""
        for name in self.scenarios:
            if name not in SCENARIOS:
                raise ValueError(unknown("scenario", name, SCENARIOS))
        for name in self.only:
            if name not in GRID:
                raise ValueError(unknown("size", name, GRID))
        chosen = tuple(
            environment
            for environment in complete_grid(
                form,
                self.distractors,
                self.even_faces,
                self.asking if form == "stated" else "whole",
            )
            if environment.name in self.scenarios
            and all(environment.settings.get(n, value) == value for n, value in self.only.items())
        )
        if not chosen:
            sizes = ", ".join(f"{name}={value:g}" for name, value in self.only.items())
            raise ValueError(f"The grid of {', '.join(self.scenarios)} has nothing with {sizes}.")
        return chosen

    def facts(self, source: Source, form: Form) -> dict[str, Any]:
        """Name the values that count for a model which was read in this way."""
        told: dict[str, Any] = {"source": source, "form": form}
        told |= {"draws": self.draws} if source != "exact" else {}
        told |= {"top": self.top} if source == "top-k" else {}
        told |= {"even_faces": True} if self.even_faces else {}
        told |= (
            {"distractors": self.distractors, "asking": self.asking}
            if self.stated
            else {"stated": False}
        )
        return told | {"threshold": self.threshold}


class ChanceItem(NamedTuple):
    """A context, or a question about it, as it is asked.

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

    environment: BrokenOff
    observation: Observation
    set_up: SetUp
    prompt: str | Prompt
    context: str
    outcome: int = NONE
    options: tuple[float, ...] = ()
    correct: int = NONE


def contexts_of(environments: Iterable[BrokenOff], *, plain: bool) -> list[ChanceItem]:
    """Return all contexts of some experiments.

    Parameters
    ----------
    plain
        Whether the text alone is the prompt, without any chat template around it.
    """
    items = []
    for environment in environments:
        set_ups = set_ups_of(environment)
        for trial, (context, set_up) in enumerate(zip(environment.contexts, set_ups, strict=True)):
            values = dict(zip(environment.own, context.values, strict=True))
            cell = int(environment.cells(np.array([context.values]))[0])
            none = {"asked": NONE, "correct": NONE, "arrangement": NONE}
            observation = {"trial": trial, **values, "cell": cell, **none}
            prompt: str | Prompt = environment.render(observation, [])
            if plain and isinstance(prompt, Prompt):
                prompt = prompt.messages[-1].content
            items.append(ChanceItem(environment, observation, set_up, prompt, set_up.name))
    return items


def questions_of(environments: Iterable[BrokenOff], seed: int) -> list[ChanceItem]:
    """Return one question about each context, as the first session with this seed has them."""
    items = []
    for environment in environments:
        design = environment.draw(session_stream(seed, *RUN, 0))
        observation: Observation | None = environment.reset(options={"design": design})[0]
        while observation is not None:
            items.append(question_about(environment, observation))
            observation = environment.step(0)[0]
    return items


def question_about(environment: BrokenOff, observation: Observation) -> ChanceItem:
    """Return the question that an experiment of stated probabilities shows."""
    name = context_name(environment.own, [observation[n] for n in environment.own])
    correct, asked = int(observation["correct"]), int(observation["asked"])
    set_up = SetUp(
        name=f"{name}, outcome {asked}, letter {LETTERS[correct]}",
        outcomes=LETTERS,
        truth=environment.truth(observation),
        scenario=environment.name,
    )
    return ChanceItem(
        environment,
        observation,
        set_up,
        environment.render(observation, []),
        name,
        asked,
        tuple(map(float, environment.options(observation))),
        correct,
    )
