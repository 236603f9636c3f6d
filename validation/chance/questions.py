"""What `reveal` asks every model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from knownminds.validation.engine.question import Question, asks, frozen_question, option
from knownminds.validation.options import Seed
from knownminds.validation.reading import read_numbers

if TYPE_CHECKING:
    from knownminds.environments.chance.outcome_grid import Asking, BrokenOff, Distractors, Form
    from knownminds.inference.chance.revealed_belief import Source
    from knownminds.llm_adapters.providers.token_sampler import Tokenisation
    from knownminds.validation.chance.revealed import Revealed  # noqa: F401 - named in a string


GRID = ("n_dice", "n_faces", "n_coins", "n_options")  # sizes of the grid


@frozen_question
class RevealQuestion(Question["Revealed"]):
    """What every model is asked, and how its answers are read.

    Parameters
    ----------
    scenarios
        Of dice, coins, choice and preference, all of them if there is none; and of counts and
        linked_coins, which the paper has not.
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
    wordings
        In how many wordings each context is asked, the shipped one first. All that is told of
        beliefs is of the first; what the others move is told beside it.
    truth, tokens, space, leak
        Of a known agent: its parameters; "single", "digits" or "pairs" (byte-pair); the share of
        its outcomes with a space before them; and of what it says that is no outcome.

    Raises
    ------
    ValueError
        If a value does not fit the rules.
    """

    command: ClassVar[str] = "reveal"
    verb: ClassVar[str] = "reveal"
    help: ClassVar[str] = (
        "Read how probable each outcome of chance is to a model, beside what it states."
    )

    scenarios: Sequence[str] = asks(
        Annotated[
            list[str] | None,
            typer.Argument(
                help="dice, coins, choice, preference; all of them if none is named. Beyond the "
                "paper: counts, linked_coins."
            ),
        ],
        default=(),
        untyped=None,
        kw_only=False,
    )
    source: Source | None = option(
        str | None, "exact, top-k or sampled; the best one there is.", default=None
    )
    form: Form | None = option(str | None, "continuation or question.", default=None)
    draws: int = option(int, "Answers to each context, if sampled.", default=50)
    top: int = option(int, "Alternatives told with each token, if top-k.", default=20)
    stated: bool = option(bool, "Ask for probabilities as well.", default=True)
    distractors: Distractors = option(
        str, "published or plausible: the wrong probabilities on offer.", default="published"
    )
    asking: Asking = option(str, "whole or gap: how probabilities are asked for.", default="whole")
    even_faces: bool = option(bool, "Leave odd dice out.", default=False, flag="--even-faces")
    chat: bool = option(
        bool, "Put texts that go on into the chat template.", default=False, flag="--chat"
    )
    signs: bool = option(bool, "Look at what follows a sign behind an outcome (7.5).", default=True)
    threshold: float = option(float, "Least retained mass without a flag.", default=0.5)
    wordings: int = option(
        int, "Wordings in which each context is asked, the shipped one first.", default=1
    )
    only: Mapping[str, int] = option(
        list[str] | None,
        "NAME=VALUE: a parameter of a known mind, or n_dice, ...",
        default=None,
        flag="--set",
        name="values",
        read=partial(read_numbers, "--set"),
    )
    truth: Mapping[str, float] = field(default_factory=dict, kw_only=True)  # by --set as well
    tokens: Tokenisation = option(
        str, "single, digits or pairs: how a known mind is cut.", default="digits"
    )
    space: float = option(float, "Of a known mind: share with a space before.", default=0.5)
    leak: float = option(float, "Of a known mind: share that is no outcome.", default=0.0)
    seed: int = asks(Seed, default=0)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that were typed; of --set, sizes of the grid, and the others."""
        found = super().read(given)
        values = found.pop("only", {})
        found["only"] = {name: int(value) for name, value in values.items() if name in GRID}
        found["truth"] = {name: value for name, value in values.items() if name not in GRID}
        return found

    def __post_init__(self) -> None:
        """Check every value."""
        from knownminds.environments.chance.outcome_grid import ASKINGS, DISTRACTORS, FORMS
        from knownminds.environments.chance.scenarios import SCENARIOS
        from knownminds.inference.chance.revealed_belief import SOURCES
        from knownminds.llm_adapters.providers.token_sampler import TOKENISATIONS
        from knownminds.validation.engine.arguments import one_of

        scenarios = tuple(dict.fromkeys(self.scenarios or SCENARIOS))
        object.__setattr__(self, "scenarios", scenarios)
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
        if self.wordings < 1:
            raise ValueError(f"wordings is a number from 1 on; got {self.wordings}.")

    def environments(self, form: Form) -> tuple[BrokenOff, ...]:
        """Return the experiments of the complete grid that belong to the scenarios."""
        from knownminds.environments import unknown
        from knownminds.environments.chance.scenarios import (
            FURTHER,
            SCENARIOS,
            complete_grid,
            further_grid,
        )

        for name in self.scenarios:
            if name not in (*SCENARIOS, *FURTHER):
                raise ValueError(unknown("scenario", name, (*SCENARIOS, *FURTHER)))
        for name in self.only:
            if name not in GRID:
                raise ValueError(unknown("size", name, GRID))
        asking = self.asking if form == "stated" else "whole"
        grid = complete_grid(form, self.distractors, self.even_faces, asking)
        if any(name in FURTHER for name in self.scenarios):
            grid += further_grid(form, self.distractors, asking)
        chosen = tuple(
            environment
            for environment in grid
            if environment.name in self.scenarios
            and all(environment.settings.get(n, value) == value for n, value in self.only.items())
        )
        if not chosen:
            sizes = ", ".join(f"{name}={value:g}" for name, value in self.only.items())
            raise ValueError(f"The grid of {', '.join(self.scenarios)} has nothing with {sizes}.")
        return chosen

    def reworded(self, form: Form) -> tuple[tuple[BrokenOff, ...], ...]:
        """Return the experiments of `environments` in each further wording.

        Raises
        ------
        ValueError
            If one of them has fewer wordings.
        """
        from knownminds.validation.costs.wordings import wordings

        grid = self.environments(form)
        named = [wordings(place, self.wordings, "--wordings") for place in grid]
        return tuple(
            tuple(
                type(place)(**{**place.settings, "templates": names[k]})
                for place, names in zip(grid, named, strict=True)
            )
            for k in range(1, self.wordings)
        )

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
        told |= {"wordings": self.wordings} if self.wordings > 1 else {}
        return told | {"threshold": self.threshold}
