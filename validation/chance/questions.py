"""Questions of `reveal`: arguments and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from knownminds.validation.engine.question import Question, command_line, frozen_question, option
from knownminds.validation.reading import read_caps, read_numbers

if TYPE_CHECKING:
    from knownminds.environments.chance.outcome_grid import Asking, ContextGrid, Distractors, Form
    from knownminds.inference.chance.revealed_belief import Source
    from knownminds.llm_adapters import Adapter
    from knownminds.llm_adapters.providers.token_sampler import Tokenisation
    from knownminds.llm_adapters.runs.admission import Caps
    from knownminds.validation.chance.revealed import RevealAnswer  # noqa: F401 - named in a string


GRID = ("n_dice", "n_faces", "n_coins", "n_options")  # sizes of the grid


@frozen_question
class RevealQuestion(Question["RevealAnswer"]):
    """Read how probable each outcome of chance is to a model, beside what it states.

    Parameters
    ----------
    llm
        PROVIDER:MODEL, transformers:FOLDER or synthetic:belief_sampler. In Python adapters as well.
        "synthetic:belief_sampler" is an agent whose beliefs are known, seen through a way of
        cutting what it says into tokens.
    earlier
        A folder of an earlier result, to compare with. Its models stand before the others.
    temperature
        0 to 2.
    caps
        NAME=MOST of all experiments of a model: calls, tokens, dollars, ...
    out
        Folder for the results and the report. The ledgers of a provider's model are in it, too.
    scenarios
        dice, coins, choice, preference; all of them if none is named. Beyond the paper: counts,
        linked_coins.
    form
        continuation or question, see `ContextGrid`; None for the former where the source is exact,
        and the latter elsewhere.
    source
        exact, top-k or sampled; the best one there is. "exact": the probability of whole outcomes
        under a local model. "top-k": from the most probable tokens that an interface tells, with
        bounds. "sampled": from counts of answers. A model without log-probabilities is refused.
    draws
        Answers to each context, if sampled. Also of a known agent's top-k tables.
    top
        Alternatives reported with each token, if top-k.
    stated
        Ask for probabilities as well: the five-option question about one outcome of each context.
    distractors
        published or plausible: the wrong probabilities on offer.
    asking
        whole or gap: how probabilities are elicited. "whole" is as the original does, see
        `ContextGrid`.
    even_faces
        Leave odd dice out.
    only
        NAME=VALUE: a parameter of a known agent, or n_dice, n_faces, n_coins, n_options. Sizes of
        the grid to stay with; those that a scenario does not have leave it whole.
    chat
        Put texts that go on into the chat template. A context that a local model continues is then
        a message that it has begun; otherwise the model gets the text alone.
    threshold
        Least retained mass of a context without a flag.
    wordings
        Wordings of each context, the shipped one first. All beliefs in the results are of the
        first; how far the others move them stands beside.
    truth
        Parameters of a known agent.
    tokens
        single, digits or pairs: how the outcomes of a known agent are cut (byte-pair).
    space
        Of a known agent: share of its outcomes with a space before them.
    leak
        Of a known agent: share of what it says that is no outcome.
    progress
        Called with (contexts done, contexts in all).

    Raises
    ------
    ValueError
        If a value does not fit the rules, or a model cannot do what the options need.
    """

    command: ClassVar[str] = "reveal"
    verb: ClassVar[str] = "reveal"
    computed_in: ClassVar[str] = "chance.reveal"

    llm: Sequence[str | Adapter] = option("--llm", default=(), kw_only=False)
    earlier: Sequence[Path] = option("--from", default=())
    base_url: str | None = None
    key_variable: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    caps: Caps | None = option("--cap", read=read_caps, default=None, several=True)
    out: Path | None = None
    scenarios: Sequence[str] = option(argument=True, default=(), kw_only=True)
    source: Source | None = None
    form: Form | None = None
    draws: int = 50
    top: int = 20
    stated: bool = True
    distractors: Distractors = "published"
    asking: Asking = "whole"
    even_faces: bool = False
    chat: bool = False
    threshold: float = 0.5
    wordings: int = 1
    only: Mapping[str, int] = option(
        "--set", read=partial(read_numbers, "--set"), default=(), several=True
    )
    truth: Mapping[str, float] = field(default_factory=dict, metadata={"typed": False})
    tokens: Tokenisation = "digits"
    space: float = 0.5
    leak: float = 0.0
    seed: int = 0
    progress: Callable[[int, int], None] | None = None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that were typed; of --set, sizes of the grid, and the others."""
        arguments = super().read(given)
        values = arguments.pop("only", None) or {}
        arguments["only"] = {name: int(value) for name, value in values.items() if name in GRID}
        arguments["truth"] = {name: value for name, value in values.items() if name not in GRID}
        return arguments

    def __post_init__(self) -> None:
        """Check every value."""
        from knownminds.environments.chance.outcome_grid import ASKINGS, DISTRACTORS, FORMS
        from knownminds.environments.chance.scenarios import SCENARIOS
        from knownminds.inference.chance.revealed_belief import SOURCES
        from knownminds.llm_adapters.providers.token_sampler import TOKENISATIONS
        from knownminds.validation.engine.arguments import one_of

        alone = isinstance(self.llm, str) or hasattr(self.llm, "complete")
        object.__setattr__(self, "llm", (self.llm,) if alone else tuple(self.llm))
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

    def command_line(self) -> str:
        """Return the command line that asks it again; "" for a user's own adapter."""
        if not all(isinstance(model, str) for model in self.llm):
            return ""
        given, usual = self.option_values(), type(self)().option_values()
        options = {name: value for name, value in given.items() if value != usual[name]}
        options |= {} if self.stated else {"no_stated": True}
        options |= {"set": {**self.only, **self.truth}, "from": list(map(str, self.earlier))}
        options |= {"cap": {k: v for k, v in vars(self.caps).items() if v} if self.caps else {}}
        scenarios = options.pop("subject_matter", ())
        left_out = ("out", "stated")
        return command_line(
            "reveal", *scenarios, **{k: v for k, v in options.items() if k not in left_out}
        )

    def environments(self, form: Form) -> tuple[ContextGrid, ...]:
        """Return the experiments of the complete grid that belong to the scenarios."""
        from knownminds.environments import unknown
        from knownminds.environments.chance.scenarios import (
            SCENARIOS,
            complete_grid,
            further,
            further_grid,
        )

        for name in self.scenarios:
            if name not in (*SCENARIOS, *further()):
                raise ValueError(unknown("scenario", name, (*SCENARIOS, *further())))
        for name in self.only:
            if name not in GRID:
                raise ValueError(unknown("size", name, GRID))
        asking = self.asking if form == "stated" else "whole"
        grid = complete_grid(form, self.distractors, self.even_faces, asking)
        if any(name not in SCENARIOS for name in self.scenarios):
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

    def reworded(self, form: Form) -> tuple[tuple[ContextGrid, ...], ...]:
        """Return the experiments of `environments` in each further wording.

        Raises
        ------
        ValueError
            If one of them has fewer wordings.
        """
        from knownminds.validation.costs.wordings import wordings

        grid = self.environments(form)
        named = [wordings(environment, self.wordings, "--wordings") for environment in grid]
        return tuple(
            tuple(
                type(environment)(**{**environment.settings, "templates": names[k]})
                for environment, names in zip(grid, named, strict=True)
            )
            for k in range(1, self.wordings)
        )

    def facts(self, source: Source, form: Form) -> dict[str, Any]:
        """Name the values that count for a model which was read in this way."""
        facts: dict[str, Any] = {"source": source, "form": form}
        facts |= {"draws": self.draws} if source != "exact" else {}
        facts |= {"top": self.top} if source == "top-k" else {}
        facts |= {"even_faces": True} if self.even_faces else {}
        facts |= (
            {"distractors": self.distractors, "asking": self.asking}
            if self.stated
            else {"stated": False}
        )
        facts |= {"wordings": self.wordings} if self.wordings > 1 else {}
        return facts | {"threshold": self.threshold}
