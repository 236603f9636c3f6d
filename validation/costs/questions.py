"""Question of `budget`: arguments and options."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from knownminds.validation.engine.question import Question, frozen_question, option
from knownminds.validation.reading import read_day, read_range

if TYPE_CHECKING:
    from knownminds.agents import Model
    from knownminds.environments import Environment
    from knownminds.llm_adapters.runs.prices import Price
    from knownminds.validation.engine.result import Result  # noqa: F401 - named in a string

# A picture of 512 x 512 counts 85 tokens with OpenAI's models at low detail, 255 with gpt-4o, 258
# with Google's, 350 with Anthropic's, and 8,500 with gpt-4o-mini.
IMAGE_TOKENS = (85, 8500)


@frozen_question
class AskBudget(Question["Result"]):
    """Reckon calls, tokens and money of a design from its real prompts.

    A synthetic agent plays some sessions through the real prompts, answers in words, and is
    read by the real parser. Bytes are counted exactly, with all growth of the history. Tokens are
    bracketed from them (see `llm_adapters.prices`). The ends of a range are those of the 95%
    prediction interval (Student's t) for the total of all sessions. So they hold the standard
    error of the dry runs' mean, and the variation from session to session. Dry run i plays the
    session at the address (i,), with parameters drawn from the priors at (i, 0).

    Parameters
    ----------
    llm
        PROVIDER:MODEL, openai:gpt-4o-mini for instance. In Python prices as well.
    model
        A model that answers; the experiment's usual one if none.
    trials
        Trials per session. Each session begins with an empty history.
    power
        Folder of a power study: price its designs.
    reasoning
        LOW-HIGH: tokens of thought before each answer. They are charged as output. Where the
        answer may hold thoughts, the upper end takes them as part of it, so that later prompts
        that repeat the answer send them again.
    image_tokens
        LOW-HIGH: tokens that a picture counts. Each provider reckons it from the size in another
        way; the default holds for all models that we know of.
    batch
        Requests go in batches, at half the price.
    date
        YYYY-MM-DD: the day of the prices. Today if none.
    system
        What a system message says before every prompt.
    dry_runs
        Sessions that the synthetic agent plays.

    Raises
    ------
    ValueError
        For a count below 1, a reversed range, no language model, one without a known price, or
        one that takes no batches.
    """

    command: ClassVar[str] = "budget"
    verb: ClassVar[str] = "budget"
    computed_in: ClassVar[str] = "costs.budget"
    rare: ClassVar[tuple[str, ...]] = (
        "reasoning", "image_tokens", "price", "date", "system", "dry_runs",
    )  # fmt: skip

    environment: Environment | str = option(argument=True, kw_only=False)
    llm: Sequence[str | Price] | str = option("--llm", default=(), kw_only=False)
    model: type[Model] | str = "rescorla_wagner_dual"
    subjects: int | None = None
    sessions: int | None = None
    trials: int | None = None
    power: Path | None = None
    reasoning: tuple[int, int] = option(read=read_range("--reasoning"), default=(0, 0))
    image_tokens: tuple[int, int] = option(read=read_range("--image-tokens"), default=IMAGE_TOKENS)
    price: Sequence[str] = ()
    batch: bool = False
    date: datetime.date | None = option(read=read_day, default=None)
    settings: Mapping[str, Any] | None = option("--set", default=None)
    system: str | None = None
    dry_runs: int = 4
    seed: int = 0
    out: Path | None = None

    def option_values(self) -> dict[str, Any]:
        """The options as they are typed; usual values are not named."""
        from knownminds.validation.engine.arguments import (
            changed_settings,
            resolve_environment,
            resolve_model,
        )

        environment = resolve_environment(self.environment, listed=False)
        llms = [self.llm] if isinstance(self.llm, str) else self.llm
        options = super().option_values() | {
            "subject_matter": environment.name,
            "llm": [one if isinstance(one, str) else one.llm for one in llms],
            "model": resolve_model(self.model).name,
            "set": {**changed_settings(environment), **(self.settings or {})},
            "date": self.date and str(self.date),
            "dry_runs": None if self.dry_runs == 4 else self.dry_runs,
            "out": None,
        }
        for name, usual in (("reasoning", (0, 0)), ("image_tokens", IMAGE_TOKENS)):
            low, high = getattr(self, name)
            options[name] = None if (low, high) == usual else f"{low}-{high}"
        return options
